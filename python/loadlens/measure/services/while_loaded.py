"""Processes of the service under load, also in trials that were ended early: ends, and open files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import EndedProcesses, OpenFiles
from loadlens.model.readings import ProcMetrics
from loadlens.signals.read import resources
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings

TICKS: Final = 1.5  # without a reading: a process is gone, not only read late


@dataclass(frozen=True, slots=True)
class OwnProcesses:
    """The service's own processes in one trial, without what it calls, and when all were looked at."""

    processes: tuple[Process, ...]
    ticks_s: tuple[float, ...]


def seen_in(trials: Iterable[TrialMeasures]) -> list[OwnProcesses]:
    """Return the processes of each trial; one that was ended early may have no measured part."""
    return [_seen(trial) for trial in trials]


def _seen(trial: TrialMeasures) -> OwnProcesses:
    watched = trial.resources.processes
    watched = watched or resources.read(Readings(trial.source.readings()), -inf, inf).processes
    called = {name for name, placed in trial.source.placement.services.items() if placed.is_called}
    return OwnProcesses(
        tuple(process for process in watched if not process.is_lab and process.service not in called),
        max((_seconds(process) for process in watched), key=len, default=()),
    )


def _seconds(process: Process) -> tuple[float, ...]:
    """Return when a process was looked at."""
    series = process.series.get(ProcMetrics.threads)
    return () if series is None else tuple(series.seconds.tolist())


def open_files(seen: Sequence[OwnProcesses]) -> OpenFiles | None:
    """Return the process that came nearest to the descriptors that it may have open; none: not read."""
    opened = (_opened(process) for trial in seen for process in trial.processes)
    return max((each for each in opened if each is not None), key=lambda each: each.share, default=None)


def _opened(process: Process) -> OpenFiles | None:
    opened, allowed = (process.series.get(m) for m in (ProcMetrics.descriptors, ProcMetrics.descriptor_limit))
    if opened is None or allowed is None or allowed.values.max() <= 0:
        return None
    return OpenFiles(process.label, float(opened.values.max()), float(allowed.values.max()))


def ended_processes(seen: Sequence[OwnProcesses]) -> tuple[EndedProcesses, ...]:
    """Return how many processes of each program ended while a load ran, and how many began."""
    ended, begun = Counter[str](), Counter[str]()
    for trial in seen:
        ticks = trial.ticks_s
        for process in trial.processes:
            if seconds := _seconds(process):
                missed = TICKS * (ticks[-1] - ticks[0]) / max(1, len(ticks) - 1)
                ended[process.name] += seconds[-1] < ticks[-1] - missed
                begun[process.name] += seconds[0] > ticks[0] + missed
    return tuple(EndedProcesses(name, count, begun[name]) for name, count in ended.items() if count)
