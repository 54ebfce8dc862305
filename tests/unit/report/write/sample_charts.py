"""One chart of every kind with figures that add up (X·R = N); drawings, not measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from loadlens.model.report import Chart, Column, Table


def rows(names: str, *values: Iterable[Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple(dict(zip(names.split(), row, strict=True)) for row in values)


def load_curve() -> Chart:
    return Chart(
        kind="load_curve",
        anchor="chart-load",
        headline="The capacity is 240 /s; beyond 1.3 users further ones wait",
        datasets={
            "steps": rows(
                "users x x_lo x_hi r r_lo r_hi",
                (1, 181, 176, 186, 5.5, 5.4, 5.7),
                (2, 232, 226, 238, 8.6, 8.4, 8.9),
                (10, 241, 237, 245, 41.5, 40.8, 42.2),
                (100, 236, 222, 250, 424, 391, 457),
            ),
            "fit": rows("users x r", (1, 181, 5.5), (1.33, 240, 5.5), (10, 240, 41.7), (100, 240, 417)),
            "published": rows("users x r", (10, 240, 42), (20, 250, 80), (100, 240, 210)),
            "knee": rows("users label", (1.33, "knee 1.3 users (1.2–1.4)")),
            "plateau": rows("users x x_lo x_hi label", (1.33, 240, 236, 244, "capacity 240 /s")),
        },
        options={"x_label": "users in the closed loop", "time_label": "mean response time"},
        caption="5 trials a step · circle: measured, rule: 95 % interval · dashed: model",
    )


WORKERS = ("workers=1", "workers=2", "workers=4")
ENTITIES = {name: i for i, name in enumerate(WORKERS, 1)}
USERS = (1, 5, 10, 15, 20)
HASH_S = 0.218
THINK_S = 0.150


def closed(users: int, workers: int) -> tuple[float, float]:
    """Throughput and response time of a machine repairman model, as an exact recursion over states."""
    weights = [1.0]
    for busy in range(1, users + 1):
        weights.append(weights[-1] * ((users - busy + 1) / THINK_S) / (min(busy, workers) / HASH_S))
    total = sum(weights)
    rate = sum(w / total * min(n, workers) / HASH_S for n, w in enumerate(weights))
    return rate, users / rate - THINK_S


def ladder(count: int = 3, users: tuple[int, ...] = USERS) -> Chart:
    steps: list[tuple[Any, ...]] = []
    fit: list[tuple[Any, ...]] = []
    for index in range(count):
        workers, name = 2**index, f"workers={2**index}"
        for n in users:
            x, r = closed(n, workers)
            wobble = 1 + 0.03 * math.sin(7 * n + workers)
            x, r = x * wobble, r / wobble
            steps.append((name, n, x, x * 0.97, x * 1.03, r * 1e3, r * 960, r * 1040))
        for n in range(users[0], users[-1] + 1):
            x, r = closed(n, workers)
            fit.append((name, n, x, r * 1e3))
    return Chart(
        kind="load_curve",
        anchor="chart-alone",
        headline="Each worker adds 4.6 registrations/s and no more.",
        datasets={
            "steps": rows("series users x x_lo x_hi r r_lo r_hi", *steps),
            "fit": rows("series users x r", *fit),
            "predicted": rows("users x r", (20, 9.1, 2050)),
        },
        options={"trials": 3, "rate_label": "registrations/s", "x_label": "users"},
        caption="3 trials a case · circle: measured, rule: 95 % interval · triangle: predicted",
        entities=ENTITIES if count == 3 else None,
    )


def small_multiples() -> Chart:
    steps: list[tuple[Any, ...]] = []
    for index in range(6):
        for n in (1, 2, 5, 10, 20, 50):
            x, r = closed(n, index + 1)
            steps.append((f"workers={index + 1}", n, x, x * 0.97, x * 1.03, r * 1e3, r * 960, r * 1040))
    return Chart(
        kind="load_curve",
        anchor="chart-panels",
        headline="Six workers carry 26 registrations/s, six times as many as one.",
        datasets={"steps": rows("panel users x x_lo x_hi r r_lo r_hi", *steps)},
        options={"trials": 3, "rate_label": "registrations/s", "x_label": "users"},
        caption="3 trials a case · panels share their scales",
    )


def quantiles(trials: int = 5) -> Chart:
    return Chart(
        kind="quantiles",
        anchor="chart-quantiles",
        headline="99 % are answered within 39.0 ms; from there on the evidence ends at 99.9 %.",
        datasets={
            "curve": rows(
                "metric nines ms lo hi",
                ("response", 1, 0.3, 0.3, 0.3),
                ("response", 2, 2.1, 2.0, 2.2),
                ("response", 10, 9.3, 8.7, 10),
                ("response", 100, 39, 35, 44),
                ("response", 1000, 92, 70, None),
                ("service", 1, 0.3, 0.3, 0.3),
                ("service", 2, 2.0, 1.9, 2.1),
                ("service", 10, 8.1, 7.7, 8.6),
                ("service", 100, 24, 22, 27),
                ("service", 1000, 41, 34, 53),
            ),
            "ends": rows(
                "metric nines ms label",
                ("response", 1000, 92, "response time (from due)"),
                ("service", 1000, 41, "service time (from sent)"),
            ),
            "cut": rows("nines label", (1000, "beyond: not measured")),
            "objective": rows("nines ms label", (100, 50, "objective: p99 < 50 ms")),
        },
        options={"trials": trials, "time_label": "time"},
        caption="5 trials, 1.2 M requests · band: 95 % interval",
        entities={"response": 1, "service": 2},
    )


def heat(seconds: int = 60) -> Chart:
    cells: list[tuple[Any, ...]] = []
    cpu: list[tuple[Any, ...]] = []
    for t in range(seconds):
        stall = 40 <= t < 46
        for b in range(24):
            centre = 17 if stall else 8 + 2 * math.sin(t / 6)
            n = 900 * math.exp(-(((b - centre) / 1.6) ** 2)) + 90 * math.exp(-(((b - 19) / 0.8) ** 2))
            if round(n) >= 1:
                cells.append((t, t + 1, 10 ** (b / 8), 10 ** ((b + 1) / 8), round(n)))
        missed = 12 <= t < 17
        cpu.append((t, t + 1, 20.0 if stall else None if missed else 78 + 6 * math.sin(t / 6)))
    return Chart(
        kind="heat",
        anchor="chart-heat",
        headline="Six seconds stand still while the CPU has nothing to do.",
        datasets={
            "cells": rows("t t2 lo hi n", *cells),
            "cpu": rows("t t2 cpu", *cpu),
            "shade": rows("t t2 label", (0, 8, "warm-up, cut")),
            "events": rows("t label", (40, "checkpoint")),
        },
        options={"cores": 4},
        caption="trial block-1 · every request is in one cell · CPU of the server's processes",
    )


def resources() -> Chart:
    readings: list[tuple[Any, ...]] = []
    for t in range(60):
        gone = 30 <= t < 36
        readings += [
            (t, "CPU, cores", "api", None if gone else min(1, 0.2 + t / 12), 1),
            (t, "CPU, cores", "db", None if gone else 0.1 + 0.02 * math.sin(t), None),
            (t, "memory, MiB", "api", None if gone else 220 + t * 1.4, None),
            (t, "memory, MiB", "db", None if gone else 80, None),
            (t, "threads", "api", None if gone else (12 if t < 6 else 200), 200),
            (t, "disk writes, MiB/s", "db", None if gone else 2 + 1.5 * math.sin(t), None),
        ]
    return Chart(
        kind="resources",
        anchor="chart-resources",
        headline="The CPU of api is full from second 10 on; its threads stand at their limit.",
        datasets={
            "readings": rows("t resource process value limit", *readings),
            "shade": rows("t t2 label", (0, 8, "warm-up, cut")),
        },
        options={"resources": ["CPU, cores", "memory, MiB", "threads", "disk writes, MiB/s"]},
        caption="trial block-1 · one reading a second · dotted: limit",
        entities={"api": 1, "db": 2},
    )


def density() -> Chart:
    curve = []
    for step in range(190):
        d = 1.3 + step * 0.01
        share = 90 * math.exp(-(((d - 1.954) / 0.12) ** 2)) + 16 * math.exp(-(((d - 2.771) / 0.05) ** 2))
        curve.append((10**d, share))
    return Chart(
        kind="density",
        anchor="chart-density",
        headline="One request in ten waits 500 ms longer than the rest.",
        datasets={
            "density": rows("ms share", *curve),
            "components": rows(
                "ms label", (90, "90.0 % at 90 ms"), (590, "10.0 % at 590 ms: +500 ms (499–501)")
            ),
            "quantiles": rows("ms label", (90, "p50"), (530, "p90 unstable"), (634, "p99")),
        },
        options={"time_label": "response time"},
        caption="5 trials, 50,000 requests · vertical rules: median of each population",
    )


def published() -> Chart:
    return Chart(
        kind="published",
        anchor="chart-published",
        headline="Three of four ratios agree; 4 workers at 5 users gain less here.",
        datasets={
            "rows": rows(
                "case published point low high shape",
                ("1 worker, 1 user", 1, 1, 1, 1, "reference"),
                ("1 worker, 5 users", 3.85, 4.1, 3.9, 4.3, "agrees"),
                ("1 worker, 20 users", 17.3, 18.8, 17.1, 20.7, "agrees"),
                ("4 workers, 5 users", 1.1, 1.9, 1.7, None, "differs"),
                ("4 workers, 10 users", 0.2, 2.9, 2.7, 3.1, "impossible"),
                ("4 workers, 20 users", None, 4.6, 4.2, 5.0, "not published"),
            )
        },
        options={"x_label": "mean response time of register, as a multiple of 1 worker and 1 user"},
        caption="circle: measured, 3 trials a case · diamond: published",
    )


def bystander() -> Chart:
    return Chart(
        kind="bystander",
        anchor="chart-bystander",
        headline="The health check waits for the hash: 6.4 ms at 1 user, 2.3 s at 20.",
        datasets={
            "probe": rows(
                "level users ms lo hi",
                ("1 worker", 1, 6.4, 5.9, 6.9),
                ("1 worker", 5, 341, 322, 361),
                ("1 worker", 10, 910, 850, 975),
                ("1 worker", 20, 2310, 2180, 2450),
                ("4 workers", 1, 2.1, 1.9, 2.3),
                ("4 workers", 5, 17, 12, 24),
                ("4 workers", 10, 104, 91, 119),
                ("4 workers", 20, 371, 338, 407),
            ),
            "model": rows(
                "level users ms",
                ("1 worker", 1, 6),
                ("1 worker", 5, 388),
                ("1 worker", 20, 2350),
                ("4 workers", 1, 2),
                ("4 workers", 5, 16),
                ("4 workers", 10, 102),
                ("4 workers", 20, 389),
            ),
            "published": rows(
                "users ms", (1, 6.25), (5, 338), (20, 2340), (5, 13), (10, 110), (15, 158), (20, 360)
            ),
            "predicted": rows("users ms", (20, 9)),
            "idle": rows("ms label", (1.8, "idle service 1.8 ms")),
        },
        options={
            "x_label": "users of the expensive endpoint (POST /register)",
            "time_label": "mean response time of the probe GET /health",
        },
        caption="3 trials a case · dashed: model · diamond: published · triangle: predicted for hash=threads",
        entities={"1 worker": 1, "4 workers": 3},
        table=Table(
            columns=(Column("level", align="left"), Column("users"), Column("probe", "ms")),
            rows=(
                ("1 worker", 1, 6.4),
                ("1 worker", 20, 2310.0),
                ("4 workers", 1, 2.1),
                ("4 workers", 20, 371.0),
            ),
        ),
    )


def demand() -> Chart:
    one, five = "register, 1 worker, 1 user", "register, 1 worker, 5 users"
    return Chart(
        kind="demand",
        anchor="chart-demand",
        headline="At 5 users 671 of 936 ms pass before the handler begins.",
        datasets={
            "parts": rows(
                "case part ms",
                (one, "CPU, user", 214),
                (one, "CPU, system", 4),
                (one, "lock", 3),
                (one, "outside the handler", 2),
                (five, "CPU, user", 216),
                (five, "CPU, system", 5),
                (five, "wait for CPU", 6),
                (five, "lock", 14),
                (five, "network", 1),
                (five, "outside the handler", 671),
                (five, "unexplained", 23),
            ),
            "totals": rows("case ms lo hi", (one, 223, 219, 227), (five, 936, 901, 972)),
        },
        options={},
        caption="3 trials a case · utilisation law · rule: 95 % interval of the total",
    )


def comparison() -> Chart:
    return Chart(
        kind="comparison",
        anchor="chart-compare-published-throughput-all",
        headline="requests/s in published: 39.4 /s (farm=one) to 67.0 /s (farm=three)",
        datasets={
            "rows": rows(
                "case value low high published",
                ("farm=one", 39.4, 38.9, 39.9, 43.2),
                ("farm=three", 67.0, 64.1, 70.2, 72.83),
                ("farm=four (held out)", 80.1, None, None, None),
            )
        },
        options={"trials": 3, "unit": "1/s", "x_label": "requests/s"},
        caption="3 trials a case, 95 % intervals · diamond: published",
    )


def predicted() -> Chart:
    return Chart(
        kind="predicted",
        anchor="chart-predicted-throughput",
        headline="throughput as predicted: 1 of 2 inside the interval",
        datasets={
            "rows": rows(
                "case predicted predicted_low predicted_high point low high",
                ("two", 82.0, 78.1, 85.9, 80.4, 79.0, 81.8),
                ("three", 121.0, 117.0, 126.0, 109.0, 104.0, None),
                ("four", 131.0, 120.0, 140.0, None, None, None),
            )
        },
        options={"trials": 3, "unit": "1/s", "x_label": "throughput"},
        caption="triangle: predicted before the case ran, dashed its 95 % interval; circle: measured",
    )


def all_charts() -> tuple[Chart, ...]:
    return (
        load_curve(),
        ladder(),
        quantiles(),
        heat(),
        resources(),
        density(),
        published(),
        bystander(),
        demand(),
        comparison(),
        predicted(),
    )
