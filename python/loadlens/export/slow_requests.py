"""Slow and failed requests that carry a trace, for spans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens import record
from loadlens.model.trial import Outcome
from loadlens.record import Trace

SLOWEST: Final = 50  # spans of each trial: the slowest successes, and as many failures


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """One request with its trace; times in nanoseconds since 1970."""

    trace: Trace
    run: str
    case: str
    trial: str
    step: str
    method: str
    path: str  # as in the plan, with its templates
    host: str
    port: int
    seq: int
    user: int
    sent_ns: int
    done_ns: int
    wait_s: float  # from due to sent
    status: int
    outcome: str


def slow_requests(run: Path, skip: frozenset[Path] = frozenset()) -> Iterator[SlowRequest]:
    """Yield the slowest successes and the first failures of each sealed trial that sent the ids of traces."""
    import polars as pl

    for trial in record.open_run(run).trials:
        if not trial.is_sealed or trial.t0_unix_ns is None or trial.path in skip:
            continue
        plan = trial.plan
        streams = [[s for scenario in stream.scenarios for s in scenario.steps] for stream in plan.streams]
        if not any(step.is_traced for steps in streams for step in steps):
            continue
        rows = trial.samples().filter((pl.col("sent_ns") >= 0) & (pl.col("done_ns") >= 0))
        slow = rows.filter(pl.col("outcome") == 0).sort(pl.col("done_ns") - pl.col("due_ns"), descending=True)
        failed = rows.filter(pl.col("outcome") != 0).sort("done_ns")
        shown = pl.concat([slow.head(SLOWEST), failed.head(SLOWEST)])
        for row, trace in zip(shown.iter_rows(named=True), trial.traces(shown), strict=True):
            if trace is None:
                continue
            step, target = streams[row["stream"]][row["step"]], plan.streams[row["stream"]].target
            yield SlowRequest(
                trace=trace,
                run=record.run_id(run),
                case=trial.case.slug,
                trial=trial.name,
                step=step.name,
                method=step.method,
                path=step.path,
                host=target.host,
                port=target.port,
                seq=row["seq"],
                user=row["user"],
                sent_ns=trial.t0_unix_ns + row["sent_ns"],
                done_ns=trial.t0_unix_ns + row["done_ns"],
                wait_s=(row["sent_ns"] - row["due_ns"]) / 1e9,
                status=row["status"],
                outcome=Outcome(row["outcome"]).name.lower(),
            )
