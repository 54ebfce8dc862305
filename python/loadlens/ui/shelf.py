"""The runs that a server shows: those of a folder, or one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final, Protocol

from loadlens import record
from loadlens.errors import UsageError
from loadlens.follow.runs import RunState
from loadlens.follow.trial import TrialColumns
from loadlens.ui.watch import Watch

MOST_RUNS: Final = 200  # in the list, the newest ones
MOST_TRIALS: Final = 4  # sealed ones that are kept in memory


class Begin(Protocol):
    """Begins a study again, or goes on with it, and returns its record; raises UsageError if it cannot."""

    def __call__(self, record: Path, /, *, is_resumed: bool) -> Path: ...


class Shelf:
    """Records by the name that the page uses for them.

    Args:
        place: A folder with records, or a record, which need not exist yet.
        is_run: True for a record.
        begin: Begins further runs; none: a page cannot.
    """

    def __init__(self, place: Path, *, is_run: bool, begin: Begin | None = None) -> None:
        self._place, self._is_run, self._begin = place, is_run, begin
        self._begun: set[Path] = set()  # by actions
        self._watches: dict[str, Watch] = {}
        self._trials: OrderedDict[tuple[str, str, str, float], dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def document(self) -> dict[str, Any]:
        """Return the list of runs, the newest first."""
        watches = self._refresh()
        summaries = [summary for watch in watches.values() if (summary := watch.summary()) is not None]
        return {
            "title": self._place.name or str(self._place),
            "single": record.run_id(self._place) if self._is_run else None,
            "runs": sorted(summaries, key=lambda summary: -summary["created_s"]),
        }

    def watch(self, run: str) -> Watch | None:
        """Return a run by its name; none: it is not one of these."""
        return self._watches.get(run) or self._refresh().get(run)

    def trial(self, state: RunState, case: str, trial: str) -> dict[str, Any]:
        """Return a trial as it is now; the last few sealed ones are kept."""
        key = (state.id, case, trial, state.created_s)  # another record may take its place
        with self._lock:
            if key in self._trials:
                self._trials.move_to_end(key)
                return self._trials[key]
        columns = TrialColumns(state.path, case, trial, state.name_of(case))
        columns.look()
        whole = columns.whole()
        if columns.is_sealed:
            with self._lock:
                self._trials[key] = whole
                while len(self._trials) > MOST_TRIALS:
                    self._trials.popitem(last=False)
        return whole

    def cannot(self, state: RunState) -> dict[str, str | None]:
        """Return why each action is not possible now; None if it is."""
        runs = state.state == "running"
        begin = None
        if state.kind != "study":
            begin = "only a study can be begun again"
        elif self._begin is None:
            begin = "this page ends with its run: loadlens ui"
        resume = "it is complete" if state.state == "finished" else None
        return {
            "stop": None if runs else "it does not run",
            "resume": "it runs" if runs else resume or begin,
            "again": begin,
        }

    def act(self, state: RunState, action: str) -> Path | None:
        """Stop a run, go on with it, or begin it again; return the record of what was begun.

        Raises:
            UsageError: It is not possible now.
        """
        if (why := self.cannot(state)[action]) is not None:
            raise UsageError(why)
        if action == "stop":
            if not record.interrupt_writer(state.path):
                raise UsageError("the process that writes the record cannot be reached", hint="Ctrl-C there")
            return None
        assert self._begin is not None
        begun = self._begin(state.path, is_resumed=action == "resume")
        self._begun.add(begun)
        return begun

    def end(self) -> None:
        """End the streams of all runs."""
        for watch in list(self._watches.values()):
            watch.end()

    def _refresh(self) -> dict[str, Watch]:
        """Return the runs that are there now."""
        paths = {self._place} if self._is_run else set(record.records_in(self._place, MOST_RUNS))
        paths |= self._begun
        with self._lock:
            for path in paths:
                self._watches.setdefault(record.run_id(path), Watch(path, self.cannot))
            return {name: watch for name, watch in self._watches.items() if watch.path in paths}
