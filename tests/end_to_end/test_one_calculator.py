"""One trial through every reader of its record: all digits of all figures are those that `hit` gave."""

from __future__ import annotations

import functools
import html
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches.measuring import Origin

import loadlens
from loadlens.engine import Run
from loadlens.estimate import within_trial
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import counts_from_histograms
from loadlens.live.hit_view import frame
from loadlens.model.finding import Estimate
from loadlens.model.workload import Closed, Plan, Scenario, Step, Stream, Target
from loadlens.present import numbers
from loadlens.report.write.hit_figures import figure
from loadlens.report.write.terminal.hit_summary import Screen, summary
from tests.end_to_end import hitting

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
PATH = "/mm1?mean_ms=1&seed=1"


@dataclass(frozen=True)
class Trial:
    """A hit, what it printed for programs, and its record."""

    result: dict[str, Any]
    record: Path

    def read(self, *arguments: str) -> str:
        """Return the output of a command on the record."""
        return output(*arguments, str(self.record))


@functools.cache
def output(*words: str) -> str:
    """Return what a command prints; it is run once."""
    done = subprocess.run(
        [sys.executable, "-m", "loadlens", *words],
        capture_output=True, text=True, timeout=60, env=hitting.environment(), check=True,
    )  # fmt: skip
    return done.stdout


# At 600/s the shortest decides no p99, the next no p999, and the last each figure.
@pytest.fixture(scope="module", params=[1, 2, 10])
def trial(request: pytest.FixtureRequest, server: Origin, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    record = tmp_path_factory.mktemp("one") / "record"
    rate = ("-r", "600", "--arrivals", "poisson")
    result = hitting.hit(server, PATH, "-d", f"{request.param}s", *rate, "--out", str(record))
    return Trial(result, record)


def test_the_notebook_has_what_hit_printed(trial: Trial) -> None:
    (kept,) = loadlens.open(trial.record).trials

    assert kept.result is not None
    (stream,) = kept.result.streams

    def ends(quantity: Any) -> dict[str, Any]:
        return {name: getattr(quantity, name) for name in ("value", "low", "high", "undecided")}

    def printed(quantity: dict[str, Any]) -> dict[str, Any]:
        return {name: quantity[name] for name in ("value", "low", "high", "undecided")}

    assert ends(stream.throughput_rps) == printed(trial.result["throughput_rps"])
    for kind in ("response_time_s", "service_time_s"):
        for name in (*QUANTILES, "mean"):
            assert ends(getattr(getattr(stream, kind), name)) == printed(trial.result[kind][name])


def test_the_record_gives_every_quantile_and_mean_that_hit_printed(trial: Trial) -> None:
    (kept,) = loadlens.open(trial.record).trials
    rows = kept.counters().of("load", "measure")
    places = {round(row.start_s, 6): place for place, row in enumerate(rows)}

    def histograms(klass: str, kind: str) -> list[tuple[int, Any, Any]]:
        return [
            (places[round(part.start_s, 6)], part.values.astype(np.int64), part.counts.astype(np.int64))
            for part in kept.intervals()
            if (part.klass, part.kind) == (klass, kind) and round(part.start_s, 6) in places
        ]

    lengths = np.array([row.length_s for row in rows])
    if np.ptp(lengths) > 1e-6:
        pytest.skip(
            "the machine stood still: the threads' own intervals, of other lengths, are not in the record"
        )
    for kind in ("response", "service"):
        counts = counts_from_histograms(
            len(rows), histograms("ok", kind), histograms("censored", kind), seconds=float(lengths.sum())
        )
        cells = [row.cell(0, "ok") for row in rows]
        moments = {
            name: np.array([getattr(cell, name) for cell in cells], dtype=np.float64)
            for name in ("count", f"{kind}_sum_s", f"{kind}_sumsq_s2")
        }
        printed = trial.result[f"{kind}_time_s"]

        for name, p in QUANTILES.items():
            same(within_trial.quantile(counts, p), printed[name], p)
        mean = within_trial.mean_time(
            moments[f"{kind}_sum_s"], moments["count"], counts, squares=moments[f"{kind}_sumsq_s2"]
        )
        same(mean, printed["mean"])
    ok = np.array([row.ok for row in rows], dtype=np.float64)
    same(within_trial.rate(ok, lengths), trial.result["throughput_rps"])


def same(figure: Interval | Insufficient, printed: dict[str, Any], p: float | None = None) -> None:
    """Check that a figure is the printed one to the last digit, or undecided for the same reason."""
    if isinstance(figure, Insufficient):
        assert (None, figure.reason) == (printed["value"], printed["undecided"])
        return
    # Of a mean of which only a lower bound is known, no value is printed: the bound is its low end.
    point = printed["low"] if printed["value"] is None else printed["value"]
    assert (figure.point, figure.low, figure.high) == (point, printed["low"], printed["high"])
    if p is not None:
        assert figure.independent * (1 - p) == printed["independent_above"]


def figures_of(report: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for matrix in report["matrices"]:
        for cell in matrix["cells"]:
            yield from cell["figures"].items()


def test_the_report_as_json_has_the_figures_of_hit(trial: Trial) -> None:
    figures = dict(figures_of(json.loads(trial.read("report", "--json"))))

    times = trial.result["response_time_s"]
    printed = {"rate": trial.result["throughput_rps"], "mean": times["mean"], "p99": times["p99"]}
    for name, quantity in printed.items():
        shown = figures[name]
        if shown["figure"] == "undecided":
            assert (None, shown["reason"]) == (quantity["value"], quantity["undecided"])
        elif shown["figure"] == "not measured":  # the machine took the generator's core away
            assert shown["reason"] in trial.result["generator"]["reasons"]
        else:
            ends = [shown[end] for end in ("point", "low", "high")]
            assert ends == [quantity[end] for end in ("value", "low", "high")]


SCALES = {
    "s": [
        numbers.Scale("ns", 1e-9),
        numbers.Scale("µs", 1e-6),
        numbers.Scale("ms", 1e-3),
        numbers.Scale("s", 1.0),
    ],
    "bytes": [numbers.Scale("B", 1.0), numbers.Scale("KiB", 1024.0), numbers.Scale("MiB", 1024.0**2)],
}


def json_figures(part: Any) -> Iterator[dict[str, Any]]:
    """Every figure of a report as JSON, in whatever table, matrix or finding it is."""
    if isinstance(part, dict):
        if "figure" in part:
            yield part
        for value in part.values():
            yield from json_figures(value)
    elif isinstance(part, list):
        for value in part:
            yield from json_figures(value)


def texts_of(shown: dict[str, Any]) -> list[str]:
    """Text of a figure, as `present` writes it: value and interval on each scale of a column of its unit."""
    if shown["figure"] != "estimate":
        return [shown["reason"]]
    names = ("metric", "unit", "point", "low", "high", "trials", "samples", "method")
    figure = Estimate(**{name: shown[name] for name in names})
    scales = SCALES.get(figure.unit, [numbers.scale(figure.unit, [figure.point])])
    made = (numbers.show(figure, on) for on in scales)
    return [f"{each.value} {each.interval}".strip() for each in made]


def in_words(page: str) -> str:
    """The text of a page without markup, units and brackets, so that values and intervals are neighbours."""
    text = re.sub(r"<svg.*?</svg>|<style.*?</style>|<script.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL)
    # Figures of an invalid trial are struck out.
    text = re.sub(r"[()|]|\\|~~", " ", html.unescape(text))
    return " ".join(
        re.sub(r" (?:ns|µs|ms|s|/s|B|KiB|MiB|%|cores)(?= )", " ", f" {' '.join(text.split())} ").split()
    )


def test_page_and_markdown_show_every_figure_of_the_json(trial: Trial) -> None:
    report = json.loads(trial.read("report", "--json"))
    trial.read("report")
    pages = {name: in_words((trial.record / name).read_text()) for name in ("report.md", "report.html")}
    columns = {key for matrix in report["matrices"] for key, _, _ in matrix["metrics"]}
    # service times are columns only where another program made the load
    cells = [shown for name, shown in figures_of(report) if name in columns]
    details = list(json_figures(report["details"]))
    figures = [*cells, *details]

    missing = [
        (name, shown)
        for name, page in pages.items()
        for shown in figures
        if not any(in_words(text) in page for text in texts_of(shown))
    ]

    assert (len(cells) >= 3, len(details) >= 3) == (True, True)
    assert missing == []


def test_show_prints_the_rate_and_the_mean_of_hit(trial: Trial) -> None:
    figures = dict(figures_of(json.loads(trial.read("report", "--json"))))

    screen = in_words(trial.read("show"))

    for name in ("rate", "mean"):
        if figures[name]["figure"] == "estimate":
            assert any(in_words(text) in screen for text in texts_of(figures[name])), name


def test_the_screen_of_hit_shows_the_digits_of_its_json(trial: Trial) -> None:
    (kept,) = loadlens.open(trial.record).trials
    assert kept.result is not None

    screen = in_words("\n".join(summary(kept.result, kept.plan, Screen(verbose=True))))

    (stream,) = kept.result.streams
    rows = [("throughput", "1/s", stream.throughput_rps)]
    rows += [(name, "s", getattr(stream.response_time_s, name)) for name in ("mean", "p50", "p90", "p99")]
    for name, unit, quantity in rows:
        shown = figure(name, unit, quantity, stream.response_time_s.count)
        if isinstance(shown, Estimate):
            on = SCALES.get(unit, [numbers.scale(unit, [shown.point])])
            texts = (f"{each.value} {each.interval}" for each in (numbers.show(shown, scale) for scale in on))
            assert any(in_words(text) in screen for text in texts), name


def test_the_live_frame_ends_with_the_values_of_the_result(server: Origin) -> None:
    step = Step(name="request", method="GET", path=PATH)
    plan = Plan(
        seed=1,
        streams=(
            Stream(
                name="load",
                role="load",
                target=Target("127.0.0.1", server.port, f"127.0.0.1:{server.port}"),
                scenarios=(Scenario("request", 1.0, (step,)),),
                workload=Closed(users=4, requests=4_000),
            ),
        ),
    )
    run = Run(plan)
    run.start()
    until = time.monotonic() + 30
    while not run.wait(0.1):
        assert time.monotonic() < until

    progress = run.progress()
    (stream,) = run.result()["streams"]

    so_far, times = progress["streams"][0]["so_far"], stream["response_time_s"]
    assert (so_far["p50_s"], so_far["p99_s"]) == (times["p50"]["value"], times["p99"]["value"])
    assert so_far["rps"] == pytest.approx(stream["throughput_rps"]["value"], rel=1e-12)  # of float sums
    drawn = frame("load", progress, (progress["streams"][0]["last"],), 100).plain
    scale = numbers.scale("s", [so_far["p50_s"], so_far["p50_s"]])
    assert numbers.value(times["p50"]["value"], scale) in drawn
