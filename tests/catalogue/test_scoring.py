"""Counts of findings and errors of numbers, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from catalogue.asking import Answer
from catalogue.families import FAMILIES
from catalogue.rows import Task
from catalogue.scoring import Case, Share, case_of, score
from scipy.stats import binomtest

from catalogue import page, rows

EXISTING = ("saturation.plateau", "db.lock", "eventloop.blocked")


def finding(rule: str, grade: str = "strong", **evidence: float) -> dict[str, Any]:
    parts = [
        {"signal": signal, "value": value, "low": None, "high": None} for signal, value in evidence.items()
    ]
    return {"rule": rule, "grade": grade, "statement": "", "explained_by": None, "evidence": parts}


def case(family: str, *found: dict[str, Any], side: str = "flawed", tier: Any = "C", **said: Any) -> Case:
    drawn = FAMILIES[family].drawn(1)
    known = drawn.flawed if side == "flawed" else drawn.twin
    assert known is not None
    first = said.pop("limit", found[0]["rule"] if found else None)
    return Case(family, side, tier, known, {"findings": list(found), "limit": first, **said}, None)


@pytest.mark.parametrize(("part", "whole"), [(0, 10), (9, 10), (10, 10), (133, 140)])
def test_intervals_are_wilsons(part: int, whole: int) -> None:
    expected = binomtest(part, whole).proportion_ci(method="wilson")

    assert Share(part, whole).interval == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_share_of_nothing_is_unknown() -> None:
    assert Share(0, 0).value is None
    assert Share(0, 0).interval == (0.0, 1.0)


def test_claims_and_needs_are_counted_once() -> None:
    found = score(
        [
            # right cause, the plateau missed
            case("db-lock", finding("db.lock")),
            # wrong cause, the plateau found, the lock missed
            case("db-lock", finding("eventloop.blocked"), finding("saturation.plateau")),
            # a healthy twin with a false finding
            case("slow-path", finding("db.lock"), side="twin"),
            # a healthy twin that is merely full
            case("slow-path", finding("saturation.plateau"), side="twin"),
        ],
        EXISTING,
    )

    assert (found.precision.part, found.precision.whole) == (3, 5)
    assert (found.recall.part, found.recall.whole) == (2, 4)
    assert (found.first_cause.part, found.first_cause.whole) == (1, 2)
    assert (found.healthy_with_claims.part, found.healthy_with_claims.whole) == (1, 2)
    assert (found.exact.part, found.exact.whole) == (1, 4)
    by_rule = {rule.rule: rule for rule in found.rules}
    lock = by_rule["db.lock"]
    assert (lock.right, lock.wrong, lock.met, lock.missed) == (1, 1, 1, 1)
    assert found.confusion == {
        ("db.lock", "db.lock"): 1,
        ("db.lock", "eventloop.blocked"): 1,
        ("none", "db.lock"): 1,
        ("none", "saturation.plateau"): 1,
    }


def test_kinds_and_severities_are_told_apart() -> None:
    lock = case("db-lock", finding("db.lock"))
    grave = Case(lock.family, lock.side, lock.tier, lock.known, lock.said, None, severity=0.9)
    mild = Case(lock.family, lock.side, lock.tier, lock.known, {}, None, severity=0.2)

    found = score(
        [grave, mild, case("db-lock", finding("db.lock"), side="twin"), case("lock+slow-path")], EXISTING
    )

    shares = {kind: (share.part, share.whole) for kind, share in found.by_severity.items()}
    assert shares == {"mild": (0, 1), "middling": (0, 1), "grave": (1, 1)}
    kinds = {
        kind.kind: (kind.services, kind.precision.part, kind.precision.whole, kind.recall.whole)
        for kind in found.kinds
    }
    assert kinds == {"flaw": (2, 1, 1, 4), "twin": (1, 0, 1, 0), "composite": (1, 0, 0, 3)}


def test_what_is_merely_suspected_is_no_claim_and_counts_for_its_grade() -> None:
    found = score([case("db-lock", finding("eventloop.blocked", "suspected"), limit=None)], EXISTING)

    assert found.precision.whole == 0
    assert found.recall.part == 0
    assert (found.grades["suspected"].part, found.grades["suspected"].whole) == (0, 1)


def test_a_tier_asks_for_what_it_can_show() -> None:
    serialised = finding("downstream.serialised")

    assert case("db-lock", serialised, tier="A").missed == (("saturation.plateau",),)
    assert case("db-lock", serialised, tier="C").missed == (("db.lock",), ("saturation.plateau",))
    assert case("db-lock", serialised, tier="C").false_claims == ()
    assert case("worker-pool", tier="A").needs == (("saturation.plateau",),)


def test_needs_without_a_rule_are_told_apart() -> None:
    found = score([case("slow-path"), case("db-lock", finding("db.lock"))], EXISTING)

    assert (found.recall.part, found.recall.whole) == (1, 3)
    assert (found.recall_of_existing.part, found.recall_of_existing.whole) == (1, 2)
    exists = {rule.rule: rule.exists for rule in found.rules}
    assert exists["mixture.slow-path"] is False
    assert exists["db.lock"] is True


def test_numbers_are_held_against_the_truth() -> None:
    truth = FAMILIES["db-lock"].drawn(1).flawed.numbers
    capacity, hold = truth["capacity"].value, truth["hold"].value
    told = {"point": 1.1 * capacity, "low": 0.9 * capacity, "high": 1.2 * capacity, "unit": "1/s"}
    far = {"point": 0.5 * capacity, "low": 0.4 * capacity, "high": 0.6 * capacity, "unit": "1/s"}

    found = score(
        [
            case("db-lock", finding("db.lock", **{"lock.hold": 0.9 * hold}), capacity=told),
            case("db-lock", capacity=far),
            case("db-lock"),
        ],
        EXISTING,
    )

    numbers = {number.name: number for number in found.numbers}
    assert numbers["capacity"].errors == pytest.approx((0.1, -0.5))
    assert (numbers["capacity"].covered.part, numbers["capacity"].covered.whole) == (1, 2)
    assert numbers["capacity"].silent == 1
    assert numbers["hold"].errors == pytest.approx((-0.1,))
    assert numbers["hold"].silent == 2


def test_what_gave_no_answer_misses_everything_and_is_named() -> None:
    drawn = FAMILIES["db-lock"].drawn(1)

    found = score([Case("db-lock", "flawed", "C", drawn.flawed, {}, "exit 1: oh")], EXISTING)

    assert found.failures == ("db-lock (flawed): exit 1: oh",)
    assert (found.recall.part, found.recall.whole) == (0, 2)
    assert found.exact.part == 0


def test_a_row_comes_back_as_it_was_said(tmp_path: Path) -> None:
    said = {
        "limit": "db.lock",
        "capacity": {"point": 100.0, "low": 90.0, "high": 110.0, "unit": "1/s", "method": "x"},
        "findings": [finding("db.lock", **{"lock.hold": 0.01})],
        "absent": [{"rule": "eventloop.blocked", "title": "", "reason": ""}],
        "not_assessed": [],
    }
    task = Task("db-lock", 1, "flawed", "C", 30.0)

    row = rows.row(task, Answer(said, None, 1.25), "c0ffee", 0.0)

    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({**row, "said": {}}) + "\n" + json.dumps(row) + "\n" + '{"family": "db-l')
    (read,) = rows.read(file)
    assert read == row
    again = case_of(read)
    assert again.claims == ("db.lock",)
    assert again.first == "db.lock"
    assert read["said"]["absent"] == ["eventloop.blocked"]


def test_the_table_says_how_many_and_which_rules_exist() -> None:
    task = Task("slow-path", 1, "flawed", "C", 30.0)
    row = rows.row(task, Answer({"limit": None, "findings": []}, None, 1.0), "c0ffee", 0.5)

    text = page.table([row])

    assert f"1 services of 1 of {len(FAMILIES)} families, diagnosed at c0ffee" in text
    assert "| mixture.slow-path | no | 0 | 0 |  | 0 | 1 | 0.00 (0.00 to 0.79) |" in text
    assert "Others used 50% of the processors before each began (median): what computes" in text
    assert page.table([]) == "Nothing has been run yet.\n"
