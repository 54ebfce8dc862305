"""Records in memory, in the shape that `store` gives them, made from the traces of simulated services."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from loadlens.model.counters import Counters
from loadlens.model.plain import read
from loadlens.model.recorded import Idle, Placement, SealedFile, ServiceProcess, TrialCase
from loadlens.model.result import EngineResult
from loadlens.model.trial import CONNECTION, TrialStatus
from loadlens.model.workload import Plan
from loadlens.record import sample_rows as rows
from tests.records import no_times, quantity, request_counts, step_result, stream_result
from tests.unit.whatif.services import Load, Request, Trace

WARMUP_SHARE = 1 / 3  # of a trial
INTERVAL_S = 0.25
Json = dict[str, Any]


@dataclass(frozen=True)
class Names:
    """Names that a study gives to its parts; a test renames them all."""

    study: str = "shop"
    service: str = "web"
    step: str = "order"
    path: str = "/orders"
    probe: str = "ping"
    probe_path: str = "/ping"
    experiment: str = "rush"
    load_factor: str = "users"
    factor: str = "processes"


@dataclass
class Histogram:
    start_s: float
    length_s: float
    stream: str
    step: str
    klass: str
    kind: str
    values: Any
    counts: Any


@dataclass
class Trial:
    """One trial, as `store.TrialRecord` shows it."""

    case: TrialCase
    block: int
    position: int
    planned: Json  # plan.json
    trace: Trace | None
    names: Names
    status: TrialStatus = TrialStatus.COMPLETE
    reasons: tuple[str, ...] = ()
    generator: Json = field(default_factory=dict)
    services: tuple[ServiceProcess, ...] = ()
    placement: Placement = field(default_factory=lambda: Placement(shared=True))
    entry: str = ""
    environment: Json = field(default_factory=dict)
    idle: Idle = field(default_factory=lambda: Idle(readiness_requests={"web": 2}))
    leaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digests: Mapping[str, SealedFile] = field(default_factory=dict)
    uncounted: int = 0  # requests that the service did not write down
    further_readings: list[Any] = field(default_factory=list)
    connected: list[Json] = field(default_factory=list)  # rows of its connections; empty: not recorded
    began_unix_ns: int = 0
    t0_monotonic_ns: int | None = None

    @property
    def name(self) -> str:
        return f"block-{self.block}"

    @property
    def plan(self) -> Plan:
        return Plan.from_json(self.planned)

    @property
    def seconds(self) -> float:
        return float(self.planned["warmup_ns"] + self.planned["duration_ns"]) / 1e9

    @property
    def warmup_s(self) -> float:
        return float(self.planned["warmup_ns"]) / 1e9

    @property
    def result(self) -> EngineResult | None:
        return None if self.trace is None else _result_of(json.dumps(self._result()))

    def _result(self) -> Json:
        """Contents of `engine` in trial.json."""
        streams = [self._stream_result(i) for i in range(len(self.planned["streams"]))]
        return {
            "status": "complete",
            "reasons": [],
            "warmup_s": self.warmup_s,
            "measured_s": self.seconds - self.warmup_s,
            "elapsed_s": self.seconds,
            "streams": streams,
            "generator": {
                "threads": 1, "busy": 0.03, "lag_p99_s": 0.0001, "lag_limit_s": 0.001, "cpu_s": 0.3,
                "verdict": "kept_up", "reasons": [],
            } | self.generator,
        }  # fmt: skip

    def _of(self, stream: int) -> list[Request]:
        assert self.trace is not None
        return [r for r in self.trace.requests if r.stream == stream]

    def _stream_result(self, index: int) -> Json:
        requests = self._of(index)
        ok = sum(r.status < 400 for r in requests)
        counts = request_counts(
            due=len(requests), issued=len(requests), answered=len(requests), ok=ok,
            unexpected_status=len(requests) - ok,
        )  # fmt: skip
        stream = self.planned["streams"][index]
        of = [row for row in self.connected if row["stream"] == index]
        by = {"closed_by_client": 1, "closed_by_server": 2, "closed_by_error": 3}
        sides = {name: sum(row["closed_by"] == code for row in of) for name, code in by.items()}
        step = step_result(name=stream["scenarios"][0]["steps"][0]["name"], requests=counts)
        return stream_result(
            name=stream["name"],
            role=stream["role"],
            kind=stream["workload"]["kind"],
            requests=counts,
            steps=[step],
            little={"ratio": 1.0, "verdict": "holds"},
            lag_s=no_times() | {"p99": quantity(0.0001)},
            connections={"opened": len(of), **sides} if of else None,
        )

    def counters(self) -> Counters:
        return Counters.from_rows(self._counter_rows())

    def _counter_rows(self) -> Iterator[Json]:
        of = [self._of(index) for index in range(len(self.planned["streams"]))]
        times = [(np.array([r.due for r in each]), np.array([r.done for r in each])) for each in of]
        for start in np.arange(0.0, self.seconds, INTERVAL_S):
            end = start + INTERVAL_S
            for stream, each, (due, done) in zip(self.planned["streams"], of, times, strict=True):
                ended = [each[i] for i in np.flatnonzero((start <= done) & (done < end))]
                held_s = np.clip(np.minimum(done, end) - np.maximum(due, start), 0.0, None).sum()
                yield _counter_row(float(start), self.warmup_s, stream["name"], ended, float(held_s))

    def intervals(
        self, but: Container[tuple[str, str]] = (), edges_s: Sequence[float] = ()
    ) -> list[Histogram]:
        histograms = []
        for index, stream in enumerate(self.planned["streams"]):
            step = stream["scenarios"][0]["steps"][0]["name"]
            ok = [r for r in self._of(index) if r.status < 400 and r.done < self.seconds]
            places = np.array([int(r.done / INTERVAL_S) for r in ok])
            times = np.array([r.done - r.due for r in ok])
            for place in np.unique(places):
                values, counts = hdr(times[places == place])
                for kind in ("response", "service"):
                    histograms.append(
                        Histogram(
                            float(place) * INTERVAL_S,
                            INTERVAL_S,
                            stream["name"],
                            step,
                            "ok",
                            kind,
                            values,
                            counts,
                        )
                    )
        return histograms

    def samples(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        assert self.trace is not None
        rows = [
            {
                "due_ns": int(r.due * 1e9), "done_ns": int(r.done * 1e9), "stream": r.stream, "step": r.step,
                "outcome": 0 if r.status < 400 else 1, "status": r.status, "thinned": 0, "body_bytes": 64,
                "sent_ns": int(r.due * 1e9), "flags": 0, "first_ns": int(r.done * 1e9),
            }
            for r in self.trace.requests
        ]  # fmt: skip
        frame = pl.DataFrame(rows)
        return frame.select(columns) if columns else frame

    def sample_parts(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        yield self.samples(columns)

    def connections(self) -> pl.DataFrame:
        return pl.DataFrame(self.connected, schema=rows.schema(CONNECTION))

    def readings(self) -> pl.DataFrame:
        assert self.trace is not None
        rows: list[tuple[int, str, str, str, str, float]] = []
        for number, busy in enumerate(self.trace.busy):
            rows += _process_rows(self.names.service, 100 + number, busy, self.seconds, self.trace.threads)
        rows += _host_rows(self.trace.busy, self.seconds)
        for r in self.trace.requests[self.uncounted :]:
            path = self.names.probe_path if r.stream else self.names.path
            labels = json.dumps({"path": path, "service": self.names.service, "status": str(r.status)})
            rows.append((int(r.done * 1e9), "server_times", "response_time", labels, "s", r.inside))
        for moment in (-1.0, -0.5):  # readiness, before the load
            labels = json.dumps(
                {"path": self.names.probe_path, "service": self.names.service, "status": "200"}
            )
            rows.append((int(moment * 1e9), "server_times", "response_time", labels, "s", 0.001))
        schema = ["time_ns", "source", "metric", "labels", "unit", "value"]
        return pl.DataFrame([*rows, *self.further_readings], schema=schema, orient="row")

    def answers(self) -> Json:
        return {}

    def log(self, service: str) -> str:
        return self.trace.log if self.trace is not None else ""


@lru_cache(64)  # a report asks for the same one dozens of times
def _result_of(text: str) -> EngineResult:
    return EngineResult.from_json(json.loads(text))


def _counter_row(start: float, warmup_s: float, stream: str, done: Sequence[Request], held_s: float) -> Json:
    ok = np.array([r.done - r.due for r in done if r.status < 400])
    bad = [r for r in done if r.status >= 400]
    cells = {}
    if ok.size:
        sums = {"response_sum_s": float(ok.sum()), "response_sumsq_s2": float((ok**2).sum())}
        cells["0.ok"] = {"count": int(ok.size), **sums} | {
            "service_sum_s": float(ok.sum()), "service_sumsq_s2": float((ok**2).sum())
        }  # fmt: skip
    if bad:
        cells["0.unexpected_status"] = {"count": len(bad)}
    return {
        "start_s": start, "length_s": INTERVAL_S, "phase": "warmup" if start < warmup_s else "measure",
        "stream": stream, "due": len(done), "issued": len(done), "answered": len(done), "ok": int(ok.size),
        "unexpected_status": len(bad), "check_failed": 0, "dropped": 0, "skipped": 0, "failed": {},
        "status": dict(Counter(str(r.status) for r in done)), "cells": cells,
        "in_flight_integral_s": held_s,
    }  # fmt: skip


def hdr(seconds: Any) -> tuple[Any, Any]:
    """Bucket upper ends (ns) and counts, as an HDR histogram with 3 digits gives them."""
    ns = np.maximum(1, np.round(np.asarray(seconds) * 1e9)).astype(np.int64)
    shift = np.maximum(0, np.floor(np.log2(ns)).astype(np.int64) - 10)
    upper = ((ns >> shift) + 1 << shift) - 1
    values, counts = np.unique(upper, return_counts=True)
    return values.astype(np.uint64), counts.astype(np.uint64)


def _used(busy: Sequence[tuple[float, float]], moments: Any) -> Any:
    """Busy seconds up to each moment."""
    if not busy:
        return np.zeros(len(moments))
    spans = np.array(busy)
    return np.array([np.clip(np.minimum(spans[:, 1], m) - spans[:, 0], 0, None).sum() for m in moments])


def _process_rows(
    service: str, pid: int, busy: Sequence[tuple[float, float]], seconds: float, threads: int
) -> list[tuple[int, str, str, str, str, float]]:
    moments = np.arange(0.0, seconds + 0.5, 1.0)
    labels = {"pid": pid, "process": "python", "replica": 1, "service": service}
    text = json.dumps(labels)
    rows = []
    for moment, used in zip(moments, _used(busy, moments), strict=True):
        ns = int(moment * 1e9)
        rows += [
            (ns, "proc", "cpu_user_s", text, "s", float(used)),
            (ns, "proc", "cpu_system_s", text, "s", 0.0),
            (ns, "proc", "runq_wait_s", text, "s", 0.001 * float(moment)),
            (ns, "proc", "rss_bytes", text, "bytes", 60e6),
            (ns, "proc", "threads", text, "", float(threads)),
        ]
        for tid in range(threads):
            thread = json.dumps({**labels, "tid": pid + tid, "thread": "python"})
            rows.append((ns, "proc", "thread_run_s", thread, "s", float(used) / threads))
    return rows


def _host_rows(busy: Sequence[Sequence[tuple[float, float]]], seconds: float) -> list[Any]:
    moments = np.arange(0.0, seconds + 0.5, 1.0)
    used = sum((_used(process, moments) for process in busy), np.zeros(moments.size))
    text = json.dumps({"cpu": "all"})
    return [
        (int(m * 1e9), "host", metric, text, "s", float(value))
        for m, u in zip(moments, used, strict=True)
        for metric, value in (
            ("cpu_user_s", u),
            ("cpu_system_s", 0.0),
            ("cpu_idle_s", 4 * m - u),
            ("cpu_steal_s", 0.0),
        )
    ]


@dataclass
class Run:
    """A record, as `store.RunRecord` shows it."""

    trials: list[Trial]
    study: Json
    environment: Json
    digest: str = "0" * 64
    damage: tuple[str, ...] = ()
    id: str = "shop-1a2b"
    predictions: dict[str, Json] = field(default_factory=dict)


Service = Callable[[Load, int], Trace]  # load, level of the factor


def record(
    service: Service,
    *,
    users: Sequence[int] = (1, 5, 20),
    processes: Sequence[int] = (1,),
    trials: int = 3,
    seconds: float = 15.0,
    cores: int = 4,
    names: Names | None = None,
    scale: float = 1.0,
    **study: Any,
) -> Run:
    """Run a simulated service over processes and users; `scale` stretches all times of the load."""
    called = names or Names()
    cases: list[Json] = []
    made: list[Trial] = []
    for level in processes:
        for n in users:
            case = _case(called, n, level)
            cases.append(case)
            for block in range(1, trials + 1):
                load = Load(n, 0.15 * scale, seconds, 20.0 / scale, seed=1000 * n + 10 * level + block)
                made.append(
                    Trial(
                        case=read(TrialCase, case),
                        block=block,
                        position=len(made) + 1,
                        planned=_plan(called, load),
                        trace=service(load, level),
                        names=called,
                        services=(ServiceProcess(called.service, pid=100),),
                    )
                )
    content = {
        "name": called.study, "question": "What limits it?", "cases": cases, "claims": [], "objectives": [],
        "trials": [{"case": t.case.slug, "block": t.block} for t in made], "published": None, "notes": [],
        "quick": trials == 1, "quick_differences": [],
    } | study  # fmt: skip
    machine = {"cores": cores, "cores_allowed": cores, "cpu_model": "simulated"}
    return Run(made, content, {"machine": machine, "limits": {}, "software": {"loadlens": "0"}})


def _case(names: Names, users: int, processes: int) -> Json:
    levels = {names.factor: str(processes), names.load_factor: str(users)}
    words = " ".join(f"{k}={v}" for k, v in levels.items())
    return {
        "slug": f"{names.experiment}-{processes}-{users}",
        "name": f"{names.experiment} {words}",
        "experiment": names.experiment,
        "levels": levels,
        "params": levels,
        "held_out": False,
        "needs_cores": None,
        "services": [{"name": names.service, "ready": {"path": names.probe_path}}],
        "scenarios": [{"name": names.step, "weight": 1.0, "steps": [_step(names)]}],
        "workload": {"kind": "closed", "users": users},
        "connection": {"reuse": "new"},
    }


def _step(names: Names) -> Json:
    return {"name": names.step, "method": "POST", "path": names.path}


def _plan(names: Names, load: Load) -> Json:
    def stream(name: str, role: str, step: str, method: str, path: str, workload: Json) -> Json:
        steps = [{"name": step, "method": method, "path": path}]
        return {
            "name": name, "role": role, "scenarios": [{"name": step, "weight": 1.0, "steps": steps}],
            "workload": workload, "connection": {"reuse": {"kind": "new"}}, "timeout_ns": 30_000_000_000,
            "target": {"host": "127.0.0.1", "port": 8080, "authority": "127.0.0.1:8080"},
        }  # fmt: skip

    think = {"kind": "fixed", "ns": int(load.think_s * 1e9)}
    closed = {"kind": "closed", "users": load.users, "think": think}
    streams = [stream("load", "load", names.step, "POST", names.path, closed)]
    if load.probe_rate > 0:
        opened = {"kind": "open", "rate_per_s": load.probe_rate}
        streams.append(stream(names.probe, "probe", names.probe, "GET", names.probe_path, opened))
    return {
        "seed": load.seed,
        "streams": streams,
        "warmup_ns": int(load.seconds * WARMUP_SHARE * 1e9),
        "duration_ns": int(load.seconds * (1 - WARMUP_SHARE) * 1e9),
    }
