"""Words of a search's progress in its record, so that whatever reads the record later shows them too."""

from __future__ import annotations

from pathlib import Path

from loadlens.record import create_run, open_run
from loadlens.run.progress import Event, Found, Keeping, Provisional, Step, Warned
from tests import records


class _Listener(list[Event]):
    def tell(self, event: Event) -> None:
        self.append(event)


def test_verdicts_finds_and_warnings_are_kept_and_every_event_is_passed_on(tmp_path: Path) -> None:
    progress: list[Event] = [
        Warned("busy"),
        Found("a probe"),
        Step("sealing"),
        Provisional("98 /s"),
        Provisional("99 /s"),
    ]
    seen = _Listener()

    with create_run(tmp_path / "run", records.study(), (), {}) as writer:
        kept = Keeping(writer, seen)
        for event in progress:
            kept.tell(event)

    events = [(event["event"], event["words"]) for event in open_run(tmp_path / "run").events()[1:]]
    assert events == [
        ("warned", "busy"),
        ("found", "a probe"),
        ("provisional", "98 /s"),
        ("provisional", "99 /s"),
    ]
    assert seen == progress
