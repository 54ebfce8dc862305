"""What single requests tell of a case, as rules see it: standstills on one clock for the whole record."""

from __future__ import annotations

from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.rowwise import Rows
from loadlens.analyse.trial import TrialMeasures
from loadlens.model.shapes import Standstill, StandstillWatch


def standstills(case: CaseMeasures) -> tuple[StandstillWatch, ...]:
    """Each usable trial whose requests are known one by one."""
    return tuple(_watch(trial, trial.rows) for trial in case.usable if isinstance(trial.rows, Rows))


def _watch(trial: TrialMeasures, rows: Rows) -> StandstillWatch:
    assert trial.grid is not None  # rows are read of trials that were measured
    zero, stops = zero_s(trial), rows.stops
    return StandstillWatch(
        life=life_of(trial),
        begin_s=zero + rows.begin_s,
        end_s=zero + float(trial.grid.edges_s[-1]),
        shortest_s=stops.shortest_s,
        between_s=rows.between_s,
        stops=tuple(
            Standstill(zero + float(begin), zero + float(begin + length), is_cut)
            for begin, length, is_cut in zip(stops.begin_s, stops.length_s, rows.is_cut, strict=True)
        ),
        scrapes_s=_scrapes_s(trial) if stops.begin_s.size else (),
    )


def _scrapes_s(trial: TrialMeasures) -> tuple[float, ...]:
    """When each of our looks at the service's metrics began."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == "scrape") & (pl.col("metric") == "scrape_seconds")
    )
    return tuple(zero_s(trial) + float(at) / 1e9 for at in rows["time_ns"].unique().sort())


def zero_s(trial: TrialMeasures) -> float:
    """When the trial began, on the clock of the record; 0 where that is not known."""
    return (trial.source.t0_monotonic_ns or 0) / 1e9


def life_of(trial: TrialMeasures) -> str:
    """The processes that a trial met: the same text for trials between which nothing was started anew."""
    source = trial.source
    if source.t0_monotonic_ns is None:
        return f"{source.case.get('slug')}/{source.name}"
    return " ".join(sorted(str(service.get("pid")) for service in source.services))
