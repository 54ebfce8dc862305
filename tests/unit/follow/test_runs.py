"""The state of a run from its events: how it ended, what its log says of the figures, its answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from loadlens.follow.runs import RunState
from loadlens.model.trial import TrialStatus
from loadlens.record import TrialEnd, create_run, disk, resume_run
from tests import records


def run_of_one_trial(
    path: Path, status: TrialStatus, *events: tuple[str, Mapping[str, Any]], report: str = ""
) -> RunState:
    """A run whose only trial was sealed with a status, and events after that."""
    planned = records.trials(records.study())[0]
    with create_run(path, records.study(), (planned,), {"command": ["loadlens", "run", "x"]}) as writer:
        trial = writer.trial(planned)
        writer.event("trial_started", **trial.name, position=1)
        trial.write_plan(records.plan().to_json())
        trial.started(t0_monotonic_ns=5_000, t0_unix_ns=9)
        trial.seal(TrialEnd(status, (), records.engine_result(), 9, 5_000))
        writer.event("trial_sealed", **trial.name, status=status, reasons=[], leaks=[])
        for name, content in events:
            writer.event(name, **{**trial.name, **content})
    if report:
        (path / "report.md").write_text(report, encoding="utf-8")
    state = RunState(path)
    state.refresh()
    return state


@pytest.mark.parametrize(
    ("status", "events", "state"),
    [
        (TrialStatus.ABORTED, ("stopped",), "stopped"),
        (TrialStatus.ABORTED, (), "stopped"),  # a `hit` of before, which kept no end
        (TrialStatus.EXPLORATORY, ("stopped",), "stopped"),
        (TrialStatus.COMPLETE, ("ended",), "finished"),
        (TrialStatus.INVALID, ("ended",), "finished"),
        (TrialStatus.COMPLETE, (), "finished"),
    ],
)
def test_a_run_that_was_stopped_is_not_finished(
    tmp_path: Path, status: TrialStatus, events: tuple[str, ...], state: str
) -> None:
    run = run_of_one_trial(tmp_path / "run", status, *((name, {"complete": 0}) for name in events))

    assert run.state == state


def test_the_log_says_what_bears_on_the_figures_and_when_a_change_takes_effect(tmp_path: Path) -> None:
    change = {"stream": "load", "what": "users", "old": 1, "new": 4, "at_ns": 1_500_000_000}
    run = run_of_one_trial(
        tmp_path / "run",
        TrialStatus.EXPLORATORY,
        ("found", {"words": "found probe GET /x"}),
        ("found", {"words": "no probe"}),
        ("load_changed", change),
        ("service_died", {"words": "gone"}),
        ("service_stopped", {"service": "api", "status": 0, "when_asked": True}),
        ("service_stopped", {"service": "api", "status": 1, "when_asked": False}),
    )

    log = [(line["words"], line["state"], line["since_t0_s"]) for line in run.document()["log"]]

    assert log[1:] == [
        ("trial exploratory: alone-users-1 block-1", "caution", None),
        ("found probe GET /x", None, None),
        ("no probe", None, None),
        ("load changed from 1 to 4 users: alone-users-1 block-1", "caution", 1.5),
        ("service died: gone", "bad", None),
        ("api ended, status 0", None, None),
        ("api ended before it was asked to, status 1", "bad", None),
    ]


def test_the_answer_of_a_run_is_that_of_its_report(tmp_path: Path) -> None:
    report = "# The pool is full\n\nWhat limits it?\n"
    ended = ("ended", {"complete": 1})
    finished = run_of_one_trial(tmp_path / "a", TrialStatus.COMPLETE, ended, report=report)
    changed = run_of_one_trial(tmp_path / "b", TrialStatus.EXPLORATORY, ended)
    plain = run_of_one_trial(tmp_path / "c", TrialStatus.COMPLETE, ended)

    assert finished.document()["answer"] == ["The pool is full"]
    assert changed.document()["answer"] == [
        "the load was changed while it ran: no figure is given for the whole"
    ]
    assert plain.document()["answer"] == []


def test_who_writes_is_asked_again_only_once_something_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of_one_trial(tmp_path / "run", TrialStatus.COMPLETE, ("ended", {"complete": 1}))
    run.refresh()
    looked: list[Path] = []

    def writer_of(path: Path, last: int | None) -> int:
        looked.append(path)
        return os.getpid()

    monkeypatch.setattr("loadlens.record.writer_of", writer_of)

    run.refresh()
    assert (looked, run.state) == ([], "finished")

    with resume_run(run.path, records.study(), records.trials(records.study())[:1]) as writer:
        writer.event("resumed", environment={}, command=[])
        run.refresh()
        assert (looked, run.state) == ([run.path], "running")


def test_an_event_without_its_time_is_a_fault_and_the_events_after_it_count(tmp_path: Path) -> None:
    run = run_of_one_trial(tmp_path / "run", TrialStatus.COMPLETE)
    for event in ({"event": "warned", "words": "x"}, {"event": "ended", "unix_ns": 9, "complete": 1}):
        disk.append_checked_line(tmp_path / "run" / "events.jsonl", event)

    assert run.refresh()

    assert run.state == "finished"
    assert run.summary()["words"] == "damaged event: KeyError('unix_ns')"
