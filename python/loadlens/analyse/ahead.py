"""What was ahead of each probe when it was due, from the log of requests, and how long it then waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.trial import TrialMeasures
from loadlens.errors import RecordError
from loadlens.model.facts import AheadWatch
from loadlens.model.finding import Estimate, Undecided
from loadlens.model.trial import Outcome
from loadlens.stats.interval import Floats, Insufficient
from loadlens.stats.separation import FEWEST_PROBES, slope_error, waits_for_those_ahead

if TYPE_CHECKING:
    import polars as pl

ENOUGH = 4 * FEWEST_PROBES  # further logs are not read
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """Probes in order of when they were due."""

    ahead: Floats  # requests of the load under way when each was due
    took_s: Floats


def ahead_of(cases: Sequence[CaseMeasures], probe: str, idle_s: float | None) -> AheadWatch | None:
    """How the wait of a probe grows with the requests that were under way; none without a log of requests.

    Args:
        cases: Levels of one curve.
        probe: Its name.
        idle_s: What it takes when nothing is in its way.
    """
    if idle_s is None:
        return None
    found: list[Met] = []
    trials = 0
    for trial in _in_turns(cases):
        met = _met(trial, probe)
        if met is not None:
            found.append(met)
            trials += 1
        if sum(one.ahead.size for one in found) >= ENOUGH:
            break
    if not found:
        return None
    ahead = np.concatenate([one.ahead for one in found])
    waits = np.concatenate([one.took_s for one in found]) - idle_s
    told = waits_for_those_ahead(ahead, waits, work_s=0.0)
    if isinstance(told, Insufficient):
        return AheadWatch(probe, Undecided("wait.per-request", "s", told.reason), None, ahead.size, None)
    one = told.per_request_s
    half = slope_error([met.ahead for met in found], [met.took_s for met in found])
    low, high = (None, None) if half is None else (one.point - half, one.point + half)
    slope = Estimate(
        "wait.per-request",
        "s",
        one.point,
        low,
        high,
        trials,
        int(ahead.size),
        "least squares, jackknife of trials",
    )
    return AheadWatch(probe, slope, told.explained, int(ahead.size), float(ahead.mean()))


def _in_turns(cases: Sequence[CaseMeasures]) -> list[TrialMeasures]:
    """The first trial of each level, then the second of each ...: all levels weigh alike."""
    most = max((len(case.usable) for case in cases), default=0)
    return [case.usable[i] for i in range(most) for case in reversed(cases) if i < len(case.usable)]


def _met(trial: TrialMeasures, name: str) -> Met | None:
    load = trial.load
    probe = next((stream for stream in trial.probes if stream.plan.name == name), None)
    if load is None or probe is None or trial.grid is None or trial.teller is not None:
        return None
    edges = trial.grid.edges_s
    try:
        rows = trial.source.samples()
    except RecordError:
        return None  # every other figure of the trial stands without it
    if rows.is_empty() or bool(rows["thinned"].to_numpy().any()):
        return None
    return met(rows, load.plan.index, probe.plan.index, float(edges[0]), float(edges[-1]))


def met(rows: pl.DataFrame, load: int, probe: int, begin: float, end: float) -> Met | None:
    """Count for each probe that was due in [begin, end] and answered what was sent before and not yet done.

    Args:
        rows: Every request, as samples.parquet has it.
        load: Number of the load's stream.
        probe: Number of the probe's.
        begin: Of the measured part, seconds since t0.
        end: Of it.
    """
    stream, outcome = rows["stream"].to_numpy(), rows["outcome"].to_numpy()
    due, done = (rows[name].to_numpy().astype(np.int64) for name in ("due_ns", "done_ns"))
    sent = rows["sent_ns"].to_numpy().astype(np.int64)
    is_load = (stream == load) & (sent >= 0)
    began = np.sort(sent[is_load])
    ended = np.sort(np.where(done[is_load] < 0, NEVER, done[is_load]))
    inside = (due >= round(begin * 1e9)) & (due <= round(end * 1e9))
    asked = (stream == probe) & (outcome == int(Outcome.OK)) & inside
    if not asked.any():
        return None
    when = due[asked]
    under_way = np.searchsorted(began, when, side="right") - np.searchsorted(ended, when, side="right")
    return Met(under_way.astype(np.float64), (done[asked] - when) / 1e9)
