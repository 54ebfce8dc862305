"""Messages of a run to the pages that follow it, however many requests look at the run in between."""

from __future__ import annotations

import json
import queue
import shutil
from pathlib import Path
from typing import Any

import pytest

from loadlens.record import create_run, disk
from loadlens.ui import watch
from loadlens.ui.watch import Message, Watch
from tests import records
from tests.unit.ui.pages import KEPT

WITHIN_S = 20.0


def content_of(message: Message) -> tuple[str, Any]:
    assert message is not None
    event, data = message.decode().rstrip("\n").split("\n")
    return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def taken(page: queue.Queue[Message]) -> list[tuple[str, Any]]:
    """The messages of a page until its end."""
    return [content_of(message) for message in iter(lambda: page.get(timeout=WITHIN_S), None)]


def next_of(page: queue.Queue[Message], event: str) -> Any:
    """The content of the next message of a kind."""
    while True:
        name, content = content_of(page.get(timeout=WITHIN_S))
        if name == event:
            return content


@pytest.mark.parametrize("look", ["summary", "document"])
def test_a_page_learns_that_the_writer_died_though_another_request_saw_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    monkeypatch.setattr(watch, "EVERY_S", 600.0)  # only `end` looks
    followed = Watch(tmp_path / "run", lambda _: {})
    with create_run(tmp_path / "run", records.study(), records.trials(records.study()), {"command": []}):
        page = followed.join()

    getattr(followed, look)()
    followed.end()

    states = [content["state"] for event, content in taken(page) if event == "run"]
    assert states == ["running", "interrupted"]


def test_a_page_learns_of_a_replaced_record_though_another_request_saw_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "EVERY_S", 600.0)
    run = tmp_path / "run"
    shutil.copytree(KEPT, run)
    followed = Watch(run, lambda _: {})
    page = followed.join()
    shutil.rmtree(run)
    with create_run(run, records.study(), records.trials(records.study()), {"command": []}) as writer:
        writer.event("warned", words="the second")

    followed.document()
    followed.end()

    runs = [content for event, content in taken(page) if event == "run"]
    assert [line["words"] for line in runs[-1]["log"]] == ["warned: the second"]


def failing(folder: Path) -> tuple[Path, list[float], Watch]:
    """Follow a copy of the record; the last of the reasons is sent with the run; NaN cannot be."""
    run = folder / "run"
    shutil.copytree(KEPT, run)
    reasons: list[float] = []
    return run, reasons, Watch(run, lambda _: {"stop": reasons[-1] if reasons else None})  # type: ignore[dict-item]


def test_a_page_is_sent_an_unforeseen_fault_and_the_changes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "EVERY_S", 0.02)
    run, reasons, followed = failing(tmp_path)
    page = followed.join()
    assert [content_of(page.get(timeout=WITHIN_S))[0] for _ in range(2)] == ["run", "trial"]

    reasons.append(float("nan"))  # no JSON
    disk.append_checked_line(run / "events.jsonl", {"event": "warned", "unix_ns": 8, "words": "first"})
    fault = next_of(page, "fault")
    reasons.append(0.0)
    later = next_of(page, "run")
    disk.append_checked_line(run / "events.jsonl", {"event": "ended", "unix_ns": 9, "complete": 4})
    rest = taken(page)

    assert "ValueError" in fault["error"]
    assert later["log"][-1]["words"] == "warned: first"
    assert rest[-1] == ("end", {"state": "finished"})


def test_the_last_look_ends_the_pages_even_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "EVERY_S", 600.0)
    run, reasons, followed = failing(tmp_path)
    page = followed.join()
    reasons.append(float("nan"))
    disk.append_checked_line(run / "events.jsonl", {"event": "warned", "unix_ns": 8, "words": "first"})

    followed.end()

    assert [event for event, _ in taken(page)] == ["run", "trial", "fault", "end"]
