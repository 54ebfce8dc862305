"""Single requests of a case, as rules see them: standstills on one clock for the whole record."""

from __future__ import annotations

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.estimate.interval_counts import pooled
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests import samples
from loadlens.measure.requests.kept import counted
from loadlens.measure.requests.log_rows import whole
from loadlens.measure.requests.samples import Rows
from loadlens.measure.trial import TrialMeasures
from loadlens.model.readings import ScrapeMetrics
from loadlens.model.shapes import LetThrough, Spacing, SparedRequests, Standstill, StandstillWatch
from loadlens.signals.read.trial_series import SCRAPE


def standstills(case: CaseMeasures) -> tuple[StandstillWatch, ...]:
    """Each usable trial whose requests are known one by one."""
    return tuple(_watch(trial, trial.rows) for trial in case.usable if isinstance(trial.rows, Rows))


def spacing(case: CaseMeasures) -> Spacing:
    """Return how close answers of the load came to each other, in all trials whose rows are known."""
    parts = [trial.rows.spacing for trial in case.usable if isinstance(trial.rows, Rows)]
    return Spacing(sum(part.close for part in parts), sum(part.gaps for part in parts))


def let_through(case: CaseMeasures) -> tuple[LetThrough, ...]:
    """Return what each trial got done early beyond the rate at which it settled."""
    rows = [trial.rows.let_through for trial in case.usable if isinstance(trial.rows, Rows)]
    return tuple(each for each in rows if each is not None)


def spared(case: CaseMeasures) -> SparedRequests | None:
    """Requests of the load that met no standstill; none where nothing stood still, or it is not known."""
    stopped = _stopped(case)
    if not stopped:
        return None
    steps = [part for rows, _ in stopped for part in rows.steps]
    counts = pooled([counts for part in steps for counts in (part.usual, part.opening)])
    met = sum(part.met for part in steps)
    return SparedRequests(counts.observed, met, samples.took(counts, len(stopped)))


def spared_probes(case: CaseMeasures) -> SparedRequests | None:
    """The same of its only probe."""
    stopped = _stopped(case)
    if not stopped or len(case.probe_names) != 1:
        return None
    parts, met = [], 0
    for rows, edges_s in stopped:
        due, took = rows.probe_due_s, rows.probe_took_s
        kept = samples.spared(due, due + took, rows.stops)
        parts.append(counted(due[kept] + took[kept], took[kept], edges_s))
        met += int((~kept).sum())
    counts = pooled(parts)
    return SparedRequests(counts.observed, met, samples.took(counts, len(stopped)))


def _stopped(case: CaseMeasures) -> list[tuple[Rows, Floats]]:
    """The trials of a case in one of which it stood still, with the edges of their intervals."""
    watched = [
        (t.rows, t.grid.edges_s) for t in case.usable if isinstance(t.rows, Rows) and t.grid is not None
    ]
    return watched if any(rows.stops.begin_s.size for rows, _ in watched) else []


def _watch(trial: TrialMeasures, rows: Rows) -> StandstillWatch:
    assert trial.grid is not None  # rows are read of trials that were measured
    zero, stops = zero_s(trial), rows.stops
    return StandstillWatch(
        life=life_of(trial),
        begin_s=zero + rows.begin_s,
        end_s=zero + float(trial.grid.edges_s[-1]),
        shortest_s=stops.shortest_s,
        between_s=rows.between_s,
        age_s=rows.age_s,
        stops=tuple(
            Standstill(zero + float(begin), zero + float(begin + length), is_cut)
            for begin, length, is_cut in zip(stops.begin_s, stops.length_s, rows.is_cut, strict=True)
        ),
        scrapes_s=_scrapes_s(trial) if stops.begin_s.size else (),
    )


def _scrapes_s(trial: TrialMeasures) -> tuple[float, ...]:
    """Return when each scrape of the service's metrics began."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == SCRAPE) & (pl.col("metric") == ScrapeMetrics.scrape_seconds.name)
    )
    return tuple(zero_s(trial) + float(at) / 1e9 for at in np.unique(whole(rows, "time_ns")))


def zero_s(trial: TrialMeasures) -> float:
    """Return when the trial began, on the clock of the record; 0 where that is not known."""
    return (trial.source.t0_monotonic_ns or 0) / 1e9


def life_of(trial: TrialMeasures) -> str:
    """The processes that a trial met: the same text for trials between which nothing was started anew."""
    source = trial.source
    if source.t0_monotonic_ns is None:
        return f"{source.case.slug}/{source.name}"
    return " ".join(sorted(str(process.pid) for process in source.services))
