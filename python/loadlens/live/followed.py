"""The run that a live view shows, followed from its record as the page does, so that both show the same."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from loadlens import record
from loadlens.errors import LoadlensError
from loadlens.follow.runs import RunState
from loadlens.follow.trial import Recent, TrialColumns

EVERY_S: Final = 1.0
POINTS: Final = 17  # seconds in a history


class Followed:
    """A run and its running trial; nothing is known before the record exists.

    Sealed trials are left to `RunState`: their tables are read with Polars, which changes what SIGINT does in
    its process (docs/adr/0074).

    Args:
        run: Folder of the record, which may not exist yet.
    """

    def __init__(self, run: Path) -> None:
        self.run: RunState | None = None
        self._path = run
        self._trial: TrialColumns | None = None
        self._looked = float("-inf")

    @property
    def recent(self) -> Recent | None:
        """The last seconds of the trial that runs; none before its first."""
        return None if self._trial is None else self._trial.recent(POINTS)

    def look(self, at: float, *, is_loading: bool) -> None:
        """Read what was added to the record, at most once per second.

        Args:
            at: Seconds on any clock.
            is_loading: A load runs, so its trial is not sealed.
        """
        if at - self._looked < EVERY_S and is_loading:
            return
        self._looked = at
        with suppress(LoadlensError):  # a display ends no run; what is damaged is said when it is read
            self._look(is_loading=is_loading)

    def _look(self, *, is_loading: bool) -> None:
        if self.run is None:
            if not record.is_record(self._path):
                return
            self.run = RunState(self._path)
        self.run.refresh()
        running = self.run.running
        if running is None:
            self._trial = None
        elif is_loading:
            if self._trial is None or (self._trial.case, self._trial.trial) != running:
                self._trial = TrialColumns(self._path, *running, self.run.name_of(running[0]))
            self._trial.look()
