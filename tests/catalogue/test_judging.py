"""Records are kept, judged again by today's rules, and looked into; no service runs here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from catalogue.__main__ import main
from catalogue.asking import Answer
from catalogue.cases import case_of
from catalogue.keeping import KeptRecord
from catalogue.rows import Row, Task

from catalogue import judging, keeping, rows, why

TASK = Task("db-lock", 1, "flawed", "C", 30.0)
TWIN = Task("db-lock", 1, "twin", "C", 30.0)
BEGAN = "2026-01-01T00:00:00Z"


def measured(task: Task = TASK, *, began: str = BEGAN, failure: str | None = None, **answered: Any) -> Row:
    answer = Answer({"limit": None, "findings": [], **answered}, failure, 33.0)
    return rows.row(task, answer, subject="older", others_busy=0.01, began=began)


def kept(records: Path, task: Task = TASK, **more: Any) -> KeptRecord:
    """A task whose record is an empty folder."""
    record = keeping.room(records, task)
    record.mkdir()
    row = measured(task, **more)
    keeping.note(record, row)
    return KeptRecord(task, row, record)


def lock(grade: str = "strong") -> dict[str, Any]:
    evidence = [
        {
            "signal": "lock.hold",
            "text": "held for 12.1 ms",
            "chip": "12.1 ms",
            "value": 0.0121,
            "low": 0.0119,
            "high": 0.0123,
            "threshold": 0.001,
            "passed": True,
        },
        {
            "signal": "lock.waiters",
            "text": "not watched",
            "chip": "?",
            "value": None,
            "low": None,
            "high": None,
            "threshold": None,
            "passed": None,
        },
    ]
    return {
        "rule": "db.lock",
        "grade": grade,
        "statement": "One lock lets 80/s through",
        "explained_by": None,
        "evidence": evidence,
        "counter": [{"rival": "a pool", "text": "no gauge of one", "ruled_out": None}],
        "unknown": [],
        "predictions": [],
    }


ANSWER = {
    "answer": "One lock lets 80/s through (strong).",
    "limit": "db.lock",
    "stopped_because": "saturated",
    "stopped": "the last doubling brought nothing",
    "capacity": {"point": 80.0, "low": 79.0, "high": 81.0, "unit": "1/s"},
    "ladder": [{"users": 1, "trials": 1}, {"users": 8, "trials": 3}],
    "findings": [lock()],
    "absent": [{"rule": "saturation.plateau", "title": "", "reason": "it grows by 40 % to the end"}],
    "not_assessed": [{"rule": "eventloop.blocked", "title": "", "reason": "no CPU per thread"}],
}


def says(answer: dict[str, Any] = ANSWER) -> Any:
    return lambda record: answer


# --- keeping -----------------------------------------------------------------------------------------------


def test_a_record_of_an_earlier_time_makes_room(tmp_path: Path) -> None:
    old = kept(tmp_path)
    (old.record / "events.jsonl").write_text("{}")

    record = keeping.room(tmp_path, TASK)

    assert record == old.record
    assert not record.exists(), "a search wants a new folder"
    assert list(keeping.kept(tmp_path)) == []


def test_records_come_back_in_the_order_of_the_catalogue_with_what_was_noted(tmp_path: Path) -> None:
    late = Task("worker-pool", 1, "flawed", "C", 22.5)
    for task in (Task("db-lock", 2, "flawed", "C", 30.0), late, TWIN, TASK):
        kept(tmp_path, task)
    (tmp_path / "db-lock-3-flawed-C-30s").mkdir()  # broken off while it was measured: there is no note

    notes = list(keeping.kept(tmp_path))

    assert [note.task.place for note in notes] == [
        "db-lock/1/flawed",
        "db-lock/1/twin",
        "worker-pool/1/flawed",
        "db-lock/2/flawed",
    ]
    assert notes[2].record == tmp_path / "worker-pool-1-flawed-C-22.5s"
    assert notes[0].row == measured()


# --- judging -----------------------------------------------------------------------------------------------


def test_what_is_judged_again_names_both_commits_and_keeps_how_it_was_measured(tmp_path: Path) -> None:
    judged = judging.judge(kept(tmp_path), says())

    row = judged.row("newer")
    assert (row["subject"], row["judged"]) == ("older", "newer")
    assert (row["began"], row["seconds"], row["others_busy"]) == (BEGAN, 33.0, 0.01)
    assert row["failure"] is None
    assert case_of(row).claims == ("db.lock",)


def test_a_rule_that_broke_then_and_does_not_now_is_no_failure_any_more(tmp_path: Path) -> None:
    judged = judging.judge(kept(tmp_path, failure="exit 1: ZeroDivisionError"), says())

    assert judged.answer.failure is None


@pytest.mark.parametrize(("then", "why_not"), [(None, "the search did not end"), ("no answer", "no answer")])
def test_a_search_that_did_not_end_stays_a_failure(tmp_path: Path, then: str | None, why_not: str) -> None:
    judged = judging.judge(kept(tmp_path, failure=then), says({**ANSWER, "stopped_because": "record"}))

    assert judged.answer.failure == why_not


def test_a_record_that_cannot_be_judged_is_a_failure_of_its_own(tmp_path: Path) -> None:
    def breaks(record: Path) -> dict[str, Any]:
        raise ZeroDivisionError("division\nby zero")

    judged = judging.judge(kept(tmp_path), breaks)

    assert judged.answer.failure == "ZeroDivisionError: division by zero"
    assert judged.row("newer")["said"] == {}


def test_records_that_are_none_are_named_and_do_not_stop_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records, results = tmp_path / "records", tmp_path / "results"
    for task in (TASK, TWIN):
        kept(records, task)
    arguments = ["catalogue", "judge", "--records", str(records), "--results", str(results)]
    monkeypatch.setattr("sys.argv", arguments)

    assert main() == 0

    shown = capsys.readouterr()
    assert "2/2 judged, 2 failed" in shown.err
    assert f"failed {records / TASK.name}: RecordError" in shown.err
    assert f"failed {records / TWIN.name}: RecordError" in shown.err
    assert "2 services from 1 of" in shown.out
    assert "diagnosed at older, judged again by the rules of" in shown.out
    assert len(rows.read(rows.judged_file_of("development", results))) == 2


def test_without_records_there_is_nothing_to_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["catalogue", "judge", "--records", str(tmp_path)])

    assert main() == 2
    assert "holds no record of these families" in capsys.readouterr().err


# --- which row counts --------------------------------------------------------------------------------------


def test_a_judgement_counts_until_its_task_is_measured_anew(tmp_path: Path) -> None:
    file, again = rows.file_of("development", tmp_path), rows.judged_file_of("development", tmp_path)
    rows.append(file, measured())
    rows.append(file, measured(TWIN))
    rows.replace(again, [measured() | {"judged": "newer"}, measured(TWIN) | {"judged": "newer"}])

    rows.append(file, measured(TWIN, began="2026-01-02T00:00:00Z"))

    by_side = {row["side"]: row for row in rows.latest("development", tmp_path)}
    assert by_side["flawed"]["judged"] == "newer"
    assert "judged" not in by_side["twin"]


def test_judging_some_leaves_the_judgements_of_others(tmp_path: Path) -> None:
    file = tmp_path / "judged.jsonl"
    rows.replace(file, [measured() | {"judged": "one"}, measured(TWIN) | {"judged": "one"}])

    rows.replace(file, [measured(TWIN) | {"judged": "two"}])

    assert [row["judged"] for row in rows.read(file)] == ["one", "two"]


def test_answers_of_an_earlier_budget_are_left_out_tier_by_tier() -> None:
    def row(tier: Any, budget_s: float, began: str | None) -> Row:
        return measured(Task("db-lock", 1, "flawed", tier, budget_s)) | {"began": began}

    latest = rows.of_latest_budget([row("C", 15.0, None), row("C", 30.0, BEGAN), row("A", 15.0, BEGAN)])

    assert [(answer["tier"], answer["budget_s"]) for answer in latest] == [("C", 30.0), ("A", 15.0)]


# --- why ---------------------------------------------------------------------------------------------------


def looked_into(tmp_path: Path, task: Task, answer: dict[str, Any]) -> str:
    judged = judging.judge(kept(tmp_path, task), says(answer))
    return why.why(case_of(judged.row("")), judged.answer.explanation)


def test_a_need_says_whether_its_rules_fired_were_absent_or_could_not_look(tmp_path: Path) -> None:
    text = looked_into(tmp_path, TASK, ANSWER)

    assert "needed, found: db.lock" in text
    assert "  db.lock: strong: One lock lets 80/s through" in text
    assert "    + lock.hold = 0.0121 (0.0119 to 0.0123), threshold 0.001: held for 12.1 ms" in text
    assert "    ? lock.waiters: not watched" in text
    assert "    rival a pool, not assessed: no gauge of one" in text
    assert "needed, MISSED: saturation.plateau" in text
    assert "  saturation.plateau: absent: it grows by 40 % to the end" in text
    assert "levels 1x1 8x3" in text


def test_a_false_finding_comes_with_its_evidence_and_a_rule_that_is_missing_is_said(tmp_path: Path) -> None:
    twin = looked_into(tmp_path, TWIN, ANSWER)

    assert "FALSE\n  db.lock: strong: One lock lets 80/s through\n    + lock.hold" in twin
    assert why.status("no.rule", ANSWER) == "no such rule"
    assert why.status("eventloop.blocked", ANSWER) == "not assessed: no CPU per thread"


def test_numbers_stand_beside_the_truth(tmp_path: Path) -> None:
    truth = TASK.specimen.numbers["capacity"].value
    answer = {**ANSWER, "capacity": {"point": 1.2 * truth, "low": truth, "high": 2 * truth, "unit": "1/s"}}

    text = looked_into(tmp_path, TASK, answer)

    # 20 % above, and the interval begins at the truth.
    claimed = f"claimed {1.2 * truth:.4g} ({truth:.4g} to {2 * truth:.4g}): +20.0%, FAR"
    assert f"capacity: {truth:.4g} 1/s, {claimed}" in text.splitlines()


def test_what_gave_no_answer_says_why_not(tmp_path: Path) -> None:
    def breaks(record: Path) -> dict[str, Any]:
        raise ValueError("no trials")

    judged = judging.judge(kept(tmp_path), breaks)

    assert "no answer: ValueError: no trials" in why.why(case_of(judged.row("")), judged.answer.explanation)


def test_a_record_is_asked_for_by_family_seed_and_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept(tmp_path, TWIN)
    monkeypatch.setattr("sys.argv", ["catalogue", "why", "db-lock/1/twin", "--records", str(tmp_path)])

    assert main() == 0
    assert "db-lock/1/twin, tier C, 30 s: the twin, without" in capsys.readouterr().out

    for wrong in ("db-lock/1/flawd", "healthy-loop/1/twin", "db-lok", "db-lock/one"):
        monkeypatch.setattr("sys.argv", ["catalogue", "why", wrong, "--records", str(tmp_path)])
        with pytest.raises(SystemExit):
            main()


def test_a_note_is_plain_json_beside_the_record(tmp_path: Path) -> None:
    note = kept(tmp_path)

    assert json.loads((tmp_path / "db-lock-1-flawed-C-30s.json").read_text()) == note.row
