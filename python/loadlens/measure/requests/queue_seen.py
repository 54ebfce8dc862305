"""Requests ahead of each probe when it was due, from the log of requests, and its wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from loadlens.errors import RecordError
from loadlens.estimate.interval import Floats, Insufficient, Ints
from loadlens.estimate.separation import FEWEST_PROBES, slope_error, waits_for_those_ahead
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import is_thinned, whole
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import AheadWatch
from loadlens.model.finding import Estimate, Undecided
from loadlens.model.trial import Outcome

if TYPE_CHECKING:
    import polars as pl

ENOUGH = 4 * FEWEST_PROBES  # further logs are not read
OF_PROBES = ("stream", "outcome", "due_ns", "done_ns")
OF_LOAD = ("stream", "sent_ns", "done_ns", "thinned")


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """Probes in order of when they were due."""

    ahead: Floats  # requests of the load under way when each was due
    took_s: Floats


def ahead_of(cases: Sequence[CaseMeasures], probe: str, idle_s: float | None) -> AheadWatch | None:
    """Return how the wait of a probe grows with the requests under way; none without a log of requests.

    Args:
        cases: Levels of wait curve.
        probe: Name of the probe.
        idle_s: Its unloaded response time.
    """
    if idle_s is None:
        return None
    by_trial: list[Met] = []
    trials = 0
    for trial in _in_turns(cases):
        met = _met(trial, probe)
        if met is not None:
            by_trial.append(met)
            trials += 1
        if sum(met.ahead.size for met in by_trial) >= ENOUGH:
            break
    if not by_trial:
        return None
    ahead = np.concatenate([met.ahead for met in by_trial])
    waits = np.concatenate([met.took_s for met in by_trial]) - idle_s
    fit = waits_for_those_ahead(ahead, waits)
    if isinstance(fit, Insufficient):
        return AheadWatch(probe, Undecided("wait.per-request", "s", fit.reason), None, ahead.size, None)
    wait = fit.per_request_s
    half = slope_error([met.ahead for met in by_trial], [met.took_s for met in by_trial])
    low, high = (None, None) if half is None else (wait.point - half, wait.point + half)
    slope = Estimate(
        "wait.per-request",
        "s",
        wait.point,
        low,
        high,
        trials,
        int(ahead.size),
        "least squares, jackknife of trials",
    )
    return AheadWatch(probe, slope, fit.explained, int(ahead.size), float(ahead.mean()))


def _in_turns(cases: Sequence[CaseMeasures]) -> list[TrialMeasures]:
    """The first trial of each level, then the second of each ...: all levels weigh alike."""
    most = max((len(case.usable) for case in cases), default=0)
    return [case.usable[i] for i in range(most) for case in reversed(cases) if i < len(case.usable)]


def _met(trial: TrialMeasures, name: str) -> Met | None:
    load = trial.load
    probe = next((stream for stream in trial.probes if stream.plan.name == name), None)
    if load is None or probe is None or trial.grid is None or trial.external is not None:
        return None
    edges = trial.grid.edges_s
    part = float(edges[0]), float(edges[-1])
    try:
        return met(trial.source.sample_parts, load.plan.index, probe.plan.index, *part)
    except RecordError:
        return None  # every other figure of the trial stands without it


def met(
    samples: Callable[[Sequence[str]], Iterable[pl.DataFrame]],
    load: int,
    probe: int,
    begin: float,
    end: float,
) -> Met | None:
    """Count for each probe that was due in [begin, end] and answered what was sent before and not yet done.

    Args:
        samples: Reads some columns of every request, as samples.parquet has them; twice.
        load: Number of the load's stream.
        probe: Number of the probe's.
        begin: Of the measured part, seconds since t0.
        end: Of it.

    Returns:
        None where no probe was answered, or where the log was thinned.
    """
    import polars as pl

    asked = []
    for part in samples(OF_PROBES):
        asked.append(
            part.filter(
                (pl.col("stream") == probe)
                & (pl.col("outcome") == int(Outcome.OK))
                & (pl.col("due_ns") >= round(begin * 1e9))
                & (pl.col("due_ns") <= round(end * 1e9))
            )
        )
    if not sum(part.height for part in asked):
        return None
    when, done = (whole(pl.concat(asked), name) for name in ("due_ns", "done_ns"))
    moments = np.unique(when)
    change = np.zeros(moments.size + 1, dtype=np.int64)
    for part in samples(OF_LOAD):
        if is_thinned(part):
            return None
        own = part.filter((pl.col("stream") == load) & (pl.col("sent_ns") >= 0))
        ended = own.filter(pl.col("done_ns") >= 0)  # the others are under way for ever
        change += _before(whole(own, "sent_ns"), moments) - _before(whole(ended, "done_ns"), moments)
    under_way = np.cumsum(change)[np.searchsorted(moments, when)]
    return Met(under_way.astype(np.float64), (done - when) / 1e9)


def _before(ns: Ints, moments: Ints) -> Ints:
    """Count what comes up to each moment and after the one before, shape (moments + 1,)."""
    place = np.searchsorted(moments, ns, side="left")
    return np.bincount(place, minlength=moments.size + 1)
