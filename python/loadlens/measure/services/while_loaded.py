"""Processes of the services while a load ran, also one that was ended: those that ended, and open files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import Final

from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import EndedProcesses, OpenFiles
from loadlens.model.readings import ProcMetrics
from loadlens.signals.read import resources
from loadlens.signals.read.resources import Process
from loadlens.signals.read.trial_series import Readings

TICKS: Final = 1.5  # without a reading: a process is gone, not only read late


def open_files(trials: Sequence[TrialMeasures]) -> OpenFiles | None:
    """Return the process that came nearest to the descriptors that it may have open; none: not read."""
    opened = (_opened(process) for trial in trials for process in _own(trial, _watched(trial)))
    return max((each for each in opened if each is not None), key=lambda each: each.share, default=None)


def _opened(process: Process) -> OpenFiles | None:
    opened, allowed = (process.series.get(m) for m in (ProcMetrics.descriptors, ProcMetrics.descriptor_limit))
    if opened is None or allowed is None or allowed.values.max() <= 0:
        return None
    return OpenFiles(process.label, float(opened.values.max()), float(allowed.values.max()))


def ended_processes(trials: Sequence[TrialMeasures]) -> tuple[EndedProcesses, ...]:
    """Return how many processes of each program ended while a load ran, and how many began."""
    ended, begun = Counter[str](), Counter[str]()
    for trial in trials:
        watched = _watched(trial)
        ticks = max((_seconds(process) for process in watched), key=len, default=())
        if not ticks:
            continue
        missed = TICKS * (ticks[-1] - ticks[0]) / max(1, len(ticks) - 1)
        for process in _own(trial, watched):
            if seconds := _seconds(process):
                ended[process.name] += seconds[-1] < ticks[-1] - missed
                begun[process.name] += seconds[0] > ticks[0] + missed
    return tuple(EndedProcesses(name, count, begun[name]) for name, count in ended.items() if count)


def _seconds(process: Process) -> tuple[float, ...]:
    """Return when a process was looked at."""
    series = process.series.get(ProcMetrics.threads)
    return () if series is None else tuple(series.seconds.tolist())


def _watched(trial: TrialMeasures) -> tuple[Process, ...]:
    """Return all processes; a trial that was ended early may have no measured part."""
    return trial.resources.processes or resources.read(Readings(trial.source.readings()), -inf, inf).processes


def _own(trial: TrialMeasures, watched: Sequence[Process]) -> list[Process]:
    """Return those of the service under test, without what it calls."""
    called = {name for name, placed in trial.source.placement.services.items() if placed.is_called}
    return [process for process in watched if not process.is_lab and process.service not in called]
