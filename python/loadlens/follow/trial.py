"""One trial for the page: facts and columns, from live files while it runs, later from sealed ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadlens import record
from loadlens.errors import RecordError
from loadlens.follow.load import NEEDS, LoadOverTime
from loadlens.follow.nodes import NodesOverTime, sealed_rows
from loadlens.follow.service import SOURCES, Course, ServiceOverTime
from loadlens.model.workload import Plan
from loadlens.present import words

CHOOSE_EVERY: int = 10  # looks between two choices of the series to show; each of the first looks chooses


@dataclass(frozen=True, slots=True)
class Recent:
    """The last points of a running trial, for a display with room for little."""

    load: dict[str, Any]  # as `LoadOverTime.whole` has it
    service: list[Course]


class TrialColumns:
    """A trial that is followed by `look` until it is sealed, and is whole from then on."""

    def __init__(self, run: Path, case: str, trial: str, name: str) -> None:
        self.case, self.trial = case, trial
        self.is_sealed = False
        self._run, self._name = run, name
        self._live = record.live_trial(run, case, trial)
        self._load: LoadOverTime | None = None
        self._nodes: NodesOverTime | None = None  # none: one machine makes the load, or it has not begun
        self._has_begun = False
        self._service = ServiceOverTime()
        self._looks = 0
        self._sent = (0, 0, -1)  # points, steps and version of the service's columns that were handed out
        self._facts: dict[str, Any] = {"state": "running", "reasons": [], "notes": [], "attempt": None}

    def look(self) -> bool:
        """Read what is new; return True if everything must be handed out anew by `whole`."""
        if self.is_sealed:
            return False
        if self._live.is_sealed:
            self._read_sealed()
            return True
        is_new = self._load is None
        if is_new:
            try:
                self._load = LoadOverTime(self._live.plan())
            except RecordError:
                return False  # the services are being started
        assert self._load is not None
        if not self._live.started():
            return is_new
        if not self._has_begun:
            self._has_begun, nodes = True, self._live.nodes()
            self._nodes = NodesOverTime(nodes, self._load.names) if nodes else None
        source = self._nodes or self._live.load
        self._load.take(*source.take(self._load.skipped))
        for rows in source.bad_samples(is_wanted=self._load.has_failures):
            self._load.take_bad(rows)
        for reading, seconds, value in self._live.readings(SOURCES):
            self._service.take(reading, seconds, value)
        self._looks += 1
        if self._looks <= CHOOSE_EVERY or self._looks % CHOOSE_EVERY == 0:
            self._service.choose()
        return is_new or self._service.version != self._sent[2]

    def whole(self) -> dict[str, Any]:
        """Return everything about the trial."""
        load = self._load
        if load is None:
            axis: dict[str, list[Any]] = {"start_s": [], "length_s": [], "phase": []}
            columns: dict[str, Any] = {"points": axis, "streams": [], "failures": [], "needs": dict(NEEDS)}
            columns["generator"] = {"threads": None, "busy": [], "lag_p99_s": [], "stalled_s": []}
        else:
            columns = load.whole()
        self._sent = (0 if load is None else load.size, self._service.size, self._service.version)
        return {**self._head(), **columns, "nodes": self._node_rows(), "service": self._service.whole()}

    def recent(self, points: int) -> Recent | None:
        """Return the last points; none before the first."""
        load = self._load
        if load is None or load.size == 0:
            return None
        return Recent(load.whole(max(0, load.size - points)), self._service.leading(points))

    def new(self) -> dict[str, Any] | None:
        """Return the columns since they were handed out last; none if nothing was added."""
        load = self._load
        points, steps, version = self._sent
        if load is None or (load.size == points and self._service.size == steps):
            return None
        self._sent = (load.size, self._service.size, version)
        head = self._head()
        return {
            **{name: head[name] for name in ("case", "trial", "elapsed_s", "phase")},
            **load.since(points),
            "nodes": self._node_rows(),
            "service": self._service.since(steps),
        }

    def _node_rows(self) -> list[dict[str, Any]]:
        """Return the machines of a fleet, one row each."""
        if self.is_sealed:
            return sealed_rows(None if self._load is None else self._load.result)
        return [] if self._nodes is None else self._nodes.rows()

    def _head(self) -> dict[str, Any]:
        plan: Plan | None = None if self._load is None else self._load.plan
        t0_ns = self._live.t0_unix_ns
        seconds = None if plan is None or plan.duration_ns is None else plan.duration_ns / 1e9
        return {
            "case": self.case,
            "name": self._name,
            "trial": self.trial,
            "block": record.block_of(self.trial),
            **self._facts,
            "t0_s": None if t0_ns is None else t0_ns / 1e9,
            "warmup_s": None if plan is None else plan.warmup_ns / 1e9,
            "duration_s": seconds,
            "elapsed_s": 0.0 if self._load is None else self._load.elapsed_s,
            "phase": "" if self._load is None else self._load.phase,
        }

    def _read_sealed(self) -> None:
        sealed = record.sealed_trial(self._run, self.case, self.trial)
        self._live.t0_unix_ns = sealed.t0_unix_ns
        self._facts = {
            "state": sealed.status.value,
            "reasons": [words.plain(reason) for reason in sealed.reasons],
            "notes": [words.plain(note) for note in sealed.notes],
            "attempt": sealed.attempt,
        }
        self._load, self._service = None, ServiceOverTime()
        self.is_sealed = True
        if sealed.result is None:
            return  # its load never ran
        self._load = load = LoadOverTime(sealed.plan)
        load.result = sealed.result
        load.take(sealed.counters(), sealed.intervals(load.skipped), is_end=True)
        if load.has_failures:
            load.take_bad(record.bad_samples(sealed))
        for reading, seconds, values in record.sealed_readings(sealed):
            for at_s, value in zip(seconds, values, strict=True):
                self._service.take(reading, at_s, value)
        self._service.end()
        self._service.choose()
