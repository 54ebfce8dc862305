"""Many records in the order of time: figures of each load, and the records from which on they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from loadlens.compare.judge import typical
from loadlens.compare.metrics import CPU, THROUGHPUT, TIMES, Metric
from loadlens.compare.records import MOST_DIFFERENCES, cases_of
from loadlens.errors import LoadlensError, RecordError
from loadlens.estimate.change_points import ERROR, FEWEST, PERMUTATIONS, change_points
from loadlens.estimate.interval import Floats
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import RunSource, environment_of, study_of
from loadlens.model.comparison import History, Point, Series, Shift
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.present import words
from loadlens.record import open_run
from loadlens.run import environment

METRICS: Final = (THROUGHPUT, *TIMES, CPU)
QUANTILES: Final = (0.5, 0.95, 0.99)  # of TIMES
METHOD: Final = (
    f"E-divisive, permutation tests ({PERMUTATIONS} permutations, fixed seed) at {100 * ERROR:g} %, "
    f"from {FEWEST} records of a load on"
)


@dataclass(frozen=True, slots=True)
class _Load:
    """Traits that records share if their figures are one series."""

    study: str
    name: str
    what: str  # requests, users or rate, duration, target


@dataclass(frozen=True, slots=True)
class _Measured:
    """One load of one record."""

    record: str
    began_unix_ns: int
    commit: str
    is_modified: bool
    environment: Mapping[str, object]
    figures: tuple[Figure, ...]  # of METRICS


def of_folder(folder: Path, places: Sequence[Path]) -> History:
    """Return the history of records below a folder; one that cannot be read is left out and named.

    Args:
        folder: As shown.
        places: The records, by name.

    Raises:
        RecordError: None can be read.
    """
    names = (str(place.relative_to(folder)) if place != folder else place.name for place in places)
    opening = [partial(open_run, place) for place in places]
    return of_records(str(folder), dict(zip(names, opening, strict=True)))


def of_records(folder: str, records: Mapping[str, Callable[[], RunSource]]) -> History:
    """Return the history of records.

    Args:
        folder: As shown.
        records: A function by name that opens each; one is open at a time.

    Raises:
        RecordError: None has a load.
    """
    loads: dict[_Load, list[_Measured]] = {}
    left_out = []
    for name, opened in records.items():
        try:
            for load, measured in _loads_of(opened(), name):
                loads.setdefault(load, []).append(measured)
        except LoadlensError as fault:
            left_out.append(f"{name}: {fault.message}")
    if not loads:
        raise RecordError(f"no load in the records below {folder}", hint=left_out[0] if left_out else None)
    series = tuple(_all_series(loads))
    seen = len({each.record for measured in loads.values() for each in measured})
    return History(folder, _sentence(series, seen), seen, series, METHOD, tuple(left_out))


def _loads_of(record: RunSource, name: str) -> Iterator[tuple[_Load, _Measured]]:
    study, version = study_of(record), environment_of(record).study_folder
    began = min((trial.began_unix_ns for trial in record.trials if trial.began_unix_ns), default=0)
    for case in cases_of(record):
        plan = case.plan
        target = "" if plan.entry is None else plan.entry.url or plan.entry.service
        # pools, processes and other settings of services are what may change from record to record
        what = (plan.workload, plan.scenarios, plan.connection, plan.duration_ns, plan.driver, target)
        yield (
            _Load(study.name, case.name, repr(what)),
            _Measured(
                name,
                began,
                version.commit or "" if version else "",
                bool(version and version.changed_files),
                record.environment,
                tuple(_figures_of(case)),
            ),
        )


def _figures_of(case: CaseMeasures) -> Iterator[Figure]:
    yield case.throughput
    yield from map(case.quantile, QUANTILES)
    costs = [cost for trial in case.usable if (cost := CPU.of(trial)) is not None]
    if not costs:
        yield NotMeasured(CPU.name, "the service's processes were not watched")
        return
    yield typical(CPU, np.array(costs))


def _all_series(loads: Mapping[_Load, Sequence[_Measured]]) -> Iterator[Series]:
    named = Counter((load.study, load.name) for load in loads)
    for load, unordered in loads.items():
        measured = sorted(unordered, key=lambda each: (each.began_unix_ns, each.record))
        is_alone = named[load.study, load.name] == 1
        name = load.name if is_alone else f"{load.name} (as in {measured[0].record})"
        for place, metric in enumerate(METRICS):
            yield _series(load.study, name, metric, measured, place)


def _series(study: str, load: str, metric: Metric, measured: Sequence[_Measured], place: int) -> Series:
    points = tuple(
        Point(each.record, each.began_unix_ns, each.commit, each.is_modified, each.figures[place])
        for each in measured
    )
    estimated = [(each, f.point) for each in measured if isinstance(f := each.figures[place], Estimate)]
    lacking = max(0, FEWEST - len(estimated))
    shifts = (
        ()
        if lacking
        else tuple(_shifts([each for each, _ in estimated], np.array([x for _, x in estimated])))
    )
    return Series(study, load, metric.name, metric.unit, points, shifts, lacking)


def _shifts(measured: Sequence[_Measured], values: Floats) -> Iterator[Shift]:
    changes = change_points(values)
    bounds = [0, *(change.index for change in changes), values.size]
    means = [float(values[begin:end].mean()) for begin, end in pairwise(bounds)]
    for change, (before, after) in zip(changes, pairwise(means), strict=True):
        first, last = measured[change.index], measured[change.index - 1]
        differs = tuple(environment.differences(last.environment, first.environment))[:MOST_DIFFERENCES]
        yield Shift(first.record, first.commit, before, after, change.p_value, differs)


def _sentence(series: Sequence[Series], records: int) -> str:
    """Return the first line of the answer."""
    have = words.plural(records, "record")
    tested = [each for each in series if not each.lacking]
    if not tested:
        lacking = min(each.lacking for each in series)
        return f"{have}: {lacking} more of one load are needed to look for change points"
    shifts = sum(len(each.shifts) for each in tested)
    changes = words.plural(shifts, "change point") if shifts else "no change point"
    return f"{have}: {changes} in {words.plural(len(tested), 'series', 'series')}"
