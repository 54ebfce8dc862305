"""Processes of the services while a load ran, also one that was ended: those that ended, and open files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
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
    read = [each for trial in trials for process in _own(trial) if (each := _opened(process)) is not None]
    return max(read, key=lambda each: each.share, default=None)


def _opened(process: Process) -> OpenFiles | None:
    opened, allowed = (process.series.get(m) for m in (ProcMetrics.descriptors, ProcMetrics.descriptor_limit))
    if opened is None or allowed is None or allowed.values.max() <= 0:
        return None
    return OpenFiles(process.label, float(opened.values.max()), float(allowed.values.max()))


def ended_processes(trials: Sequence[TrialMeasures]) -> tuple[EndedProcesses, ...]:
    """Return how many processes of each program ended while a load ran, and how many began."""
    ended, begun = Counter[str](), Counter[str]()
    for trial in trials:
        read = [(p.series.get(ProcMetrics.threads), p) for p in _watched(trial)]
        seen = [(series.seconds, process) for series, process in read if series is not None]
        if not seen:
            continue
        ticks = max((seconds for seconds, _ in seen), key=len)
        first, last = float(ticks[0]), float(ticks[-1])
        missed = TICKS * (last - first) / max(1, len(ticks) - 1)
        for seconds, process in seen:
            if not process.is_lab and process.service not in called_by(trial):
                ended[process.name] += float(seconds[-1]) < last - missed
                begun[process.name] += float(seconds[0]) > first + missed
    return tuple(EndedProcesses(name, count, begun[name]) for name, count in ended.items() if count)


def called_by(trial: TrialMeasures) -> frozenset[str]:
    """Return the services that the service under test calls."""
    return frozenset(name for name, placed in trial.source.placement.services.items() if placed.is_called)


def _own(trial: TrialMeasures) -> Iterator[Process]:
    return (p for p in _watched(trial) if not p.is_lab and p.service not in called_by(trial))


def _watched(trial: TrialMeasures) -> Iterator[Process]:
    """Yield all processes; a trial that was ended early may have no measured part."""
    if trial.resources.processes:
        return chain(trial.resources.processes)
    return chain(resources.read(Readings(trial.source.readings()), -inf, inf).processes)
