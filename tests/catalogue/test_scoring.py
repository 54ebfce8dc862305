"""Counts of findings and errors of numbers, by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from catalogue.asking import Answer
from catalogue.cases import Case, Share, case_of
from catalogue.families import FAMILIES
from catalogue.rows import Task
from catalogue.scoring import score
from scipy.stats import binomtest

from catalogue import page, rows

EXISTING = ("saturation.plateau", "db.lock", "eventloop.blocked")
BEGAN = "2026-01-01T00:00:00Z"


def finding(rule: str, grade: str = "strong", evidence: Mapping[str, float] | None = None) -> dict[str, Any]:
    parts = [
        {"signal": signal, "value": value, "low": None, "high": None}
        for signal, value in (evidence or {}).items()
    ]
    return {"rule": rule, "grade": grade, "statement": "", "explained_by": None, "evidence": parts}


def case(
    family: str, *findings: dict[str, Any], side: str = "flawed", tier: Any = "C", **answered: Any
) -> Case:
    specimen = getattr(FAMILIES[family].drawn(1), side)
    first = answered.pop("limit", findings[0]["rule"] if findings else None)
    return Case(family, 1, side, tier, specimen, {"findings": list(findings), "limit": first, **answered})


@pytest.mark.parametrize(("part", "whole"), [(0, 10), (9, 10), (10, 10), (133, 140)])
def test_intervals_are_wilsons(part: int, whole: int) -> None:
    expected = binomtest(part, whole).proportion_ci(method="wilson")

    assert Share(part, whole).interval == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_a_share_of_nothing_is_unknown() -> None:
    assert Share(0, 0).value is None
    assert Share(0, 0).interval == (0.0, 1.0)


def test_claims_and_needs_are_counted_once() -> None:
    summary = score(
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

    assert (summary.precision.part, summary.precision.whole) == (3, 5)
    assert (summary.recall.part, summary.recall.whole) == (2, 4)
    assert (summary.first_cause.part, summary.first_cause.whole) == (1, 2)
    assert (summary.healthy_with_claims.part, summary.healthy_with_claims.whole) == (1, 2)
    assert (summary.exact.part, summary.exact.whole) == (1, 4)
    by_rule = {rule.rule: rule for rule in summary.rules}
    lock = by_rule["db.lock"]
    assert (lock.right, lock.wrong, lock.met, lock.missed) == (1, 1, 1, 1)
    assert summary.confusion == {
        ("db.lock", "db.lock"): 1,
        ("db.lock", "eventloop.blocked"): 1,
        ("none", "db.lock"): 1,
        ("none", "saturation.plateau"): 1,
    }


@pytest.mark.parametrize(("least", "holds"), [(2.0, True), (50.0, False)])
def test_a_bound_is_true_or_not_and_never_far(least: float, holds: bool) -> None:
    """`At least two` of a loop that is crossed two to four times."""
    claim = finding("loop.multipass")
    claim["evidence"] = [{"signal": "loop.passes", "value": least, "low": least, "high": None}]

    numbers = {number.name: number for number in score([case("loop-passes", claim)], EXISTING).numbers}

    assert numbers["passes"].errors == ()
    assert numbers["passes"].silent == 0
    assert numbers["passes"].covered == Share(int(holds), 1)


def test_kinds_and_severities_are_counted_separately() -> None:
    lock = case("db-lock", finding("db.lock"))
    grave = replace(lock, severity=0.9)
    mild = replace(lock, explanation={}, severity=0.2)

    summary = score(
        [grave, mild, case("db-lock", finding("db.lock"), side="twin"), case("lock+slow-path")], EXISTING
    )

    shares = {kind: (share.part, share.whole) for kind, share in summary.by_severity.items()}
    assert shares == {"mild": (0, 1), "medium": (0, 1), "severe": (1, 1)}
    kinds = {
        kind.kind: (kind.services, kind.precision.part, kind.precision.whole, kind.recall.whole)
        for kind in summary.kinds
    }
    assert kinds == {"flaw": (2, 1, 1, 4), "twin": (1, 0, 1, 0), "composite": (1, 0, 0, 3)}


def test_what_is_merely_suspected_is_no_claim_and_counts_for_its_grade() -> None:
    summary = score([case("db-lock", finding("eventloop.blocked", "suspected"), limit=None)], EXISTING)

    assert summary.precision.whole == 0
    assert summary.recall.part == 0
    assert (summary.grades["suspected"].part, summary.grades["suspected"].whole) == (0, 1)


def test_a_tier_asks_for_what_it_can_show() -> None:
    serialised = finding("downstream.serialised")

    assert case("db-lock", serialised, tier="A").missed == (("saturation.plateau",),)
    assert case("db-lock", serialised, tier="C").missed == (("db.lock",), ("saturation.plateau",))
    assert case("db-lock", serialised, tier="C").false_claims == ()
    assert case("worker-pool", tier="A").needs == (("saturation.plateau",),)


def test_needs_without_a_rule_are_counted_separately() -> None:
    summary = score([case("slow-path"), case("db-lock", finding("db.lock"))], EXISTING)

    assert (summary.recall.part, summary.recall.whole) == (1, 3)
    assert (summary.recall_of_existing.part, summary.recall_of_existing.whole) == (1, 2)
    exists = {rule.rule: rule.exists for rule in summary.rules}
    assert exists["mixture.slow-path"] is False
    assert exists["db.lock"] is True


def test_numbers_are_held_against_the_truth() -> None:
    truth = FAMILIES["db-lock"].drawn(1).flawed.numbers
    capacity, hold = truth["capacity"].value, truth["hold"].value
    interval = {"point": 1.1 * capacity, "low": 0.9 * capacity, "high": 1.2 * capacity, "unit": "1/s"}
    far = {"point": 0.5 * capacity, "low": 0.4 * capacity, "high": 0.6 * capacity, "unit": "1/s"}

    summary = score(
        [
            case("db-lock", finding("db.lock", evidence={"lock.hold": 0.9 * hold}), capacity=interval),
            case("db-lock", capacity=far),
            case("db-lock"),
        ],
        EXISTING,
    )

    numbers = {number.name: number for number in summary.numbers}
    assert numbers["capacity"].errors == pytest.approx((0.1, -0.5))
    assert (numbers["capacity"].covered.part, numbers["capacity"].covered.whole) == (1, 2)
    assert numbers["capacity"].silent == 1
    assert numbers["hold"].errors == pytest.approx((-0.1,))
    assert numbers["hold"].silent == 2


def test_what_gave_no_answer_misses_everything_and_is_named() -> None:
    drawn = FAMILIES["db-lock"].drawn(1)

    summary = score([Case("db-lock", 1, "flawed", "C", drawn.flawed, {}, "exit 1: oh")], EXISTING)

    assert summary.failures == ("db-lock/1/flawed: exit 1: oh",)
    assert (summary.recall.part, summary.recall.whole) == (0, 2)
    assert summary.exact.part == 0


def test_a_row_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    stored = {
        "limit": "db.lock",
        "capacity": {"point": 100.0, "low": 90.0, "high": 110.0, "unit": "1/s", "method": "x"},
        "findings": [finding("db.lock", evidence={"lock.hold": 0.01})],
        "absent": [{"rule": "eventloop.blocked", "title": "", "reason": ""}],
        "not_assessed": [],
    }
    task = Task("db-lock", 1, "flawed", "C", 30.0)

    row = rows.row(task, Answer(stored, None, 1.25), subject="c0ffee", others_busy=0.0, began=BEGAN)

    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps({**row, "said": {}}) + "\n" + json.dumps(row) + "\n" + '{"family": "db-l')
    (read,) = rows.read(file)
    assert read == row
    again = case_of(read)
    assert again.claims == ("db.lock",)
    assert again.first == "db.lock"
    assert read["said"]["absent"] == ["eventloop.blocked"]


def test_a_repaired_service_is_read_by_its_name_in_earlier_rows(tmp_path: Path) -> None:
    row = rows.row(
        Task("db-lock", 1, "repaired", "C", 30.0),
        Answer({}, None, 1.0),
        subject="",
        others_busy=0.0,
        began=BEGAN,
    )
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(row | {"side": "mended"}) + "\n" + json.dumps(row | {"seed": 2}) + "\n")

    assert [(read["seed"], read["side"]) for read in rows.read(file)] == [(1, "repaired"), (2, "repaired")]


def test_the_table_says_how_many_and_which_rules_exist() -> None:
    task = Task("slow-path", 1, "flawed", "C", 30.0)
    answer = Answer({"limit": None, "findings": []}, None, 1.0)
    row = rows.row(task, answer, subject="c0ffee", others_busy=0.5, began=BEGAN)

    text = page.table([row])

    assert f"1 services from 1 of {len(FAMILIES)} families, diagnosed at c0ffee" in text
    assert "| mixture.slow-path | yes | 0 | 0 |  | 0 | 1 | 0.00 (0.00 to 0.79) |" in text
    assert "other programs used 50% of the processors (median): services that compute" in text
    assert page.table([]) == "Nothing has been run yet.\n"


# --- what counts and what does not -------------------------------------------------------------------------


def test_how_good_a_measurement_was_is_judged_only_where_it_was_made_bad() -> None:
    disturbed = finding("host.interference")

    summary = score([case("db-lock", disturbed), case("neighbour", disturbed)], EXISTING)

    # It is unknown whether the machine was disturbed during the lock case; during the neighbour case it was.
    assert (summary.precision.part, summary.precision.whole) == (1, 1)
    assert (summary.grades["strong"].part, summary.grades["strong"].whole) == (1, 1)


def test_a_rule_that_waits_for_others_exists_too() -> None:
    assert "no-finding.healthy" in page.existing_rules()


def test_a_false_finding_on_a_twin_is_named_and_counted_where_the_twin_needs_something_too() -> None:
    # The twin of a multiple pass still computes on its loop: it has a need, and no lock.
    summary = score([case("loop-passes", finding("db.lock", "probable"), side="twin")], EXISTING)

    assert (summary.healthy_with_claims.part, summary.healthy_with_claims.whole) == (0, 0)
    assert (summary.twins_with_claims.part, summary.twins_with_claims.whole) == (1, 1)
    assert summary.false_findings == {"loop-passes/1/twin": ("db.lock (probable)",)}


def test_each_rule_has_a_calibration_of_its_own() -> None:
    summary = score(
        [
            case("db-lock", finding("db.lock", "strong"), finding("eventloop.blocked", "probable")),
            case("loop-blocked", finding("db.lock", "strong"), finding("eventloop.blocked", "probable")),
            case("slow-path", finding("db.lock", "suspected"), side="twin"),
        ],
        EXISTING,
    )

    grades = {rule.rule: rule.grades for rule in summary.rules}
    assert grades["db.lock"]["strong"] == Share(1, 2)
    assert grades["db.lock"]["suspected"] == Share(0, 1)
    assert grades["eventloop.blocked"]["probable"] == Share(1, 2)
    assert grades["saturation.plateau"]["strong"] == Share(0, 0)
    assert "| db.lock | 0 of 1 |  | 1 of 2 |  |" in "\n".join(page._grades(summary))


def test_flaws_without_a_rule_stand_in_the_headline_and_apart() -> None:
    summary = score([case("slow-path"), case("db-lock", finding("db.lock"))], EXISTING)

    assert summary.first_cause == Share(1, 2)
    assert summary.first_of_existing == Share(1, 1)
    assert summary.without_a_rule == {"mixture.slow-path": 1}
    assert "Needs for which there is no rule, all of them missed: mixture.slow-path (1)." in page._rules(
        summary
    )


# --- numbers -----------------------------------------------------------------------------------------------


def capacity(point: float, half: float | None = None) -> dict[str, Any]:
    bounds = (None, None) if half is None else (point - half, point + half)
    return {"point": point, "low": bounds[0], "high": bounds[1], "unit": "1/s"}


def test_a_capacity_is_near_within_a_tenth_and_what_has_no_interval_covers_nothing() -> None:
    truth = FAMILIES["db-lock"].drawn(1).flawed.numbers["capacity"].value

    summary = score(
        [
            case("db-lock", capacity=capacity(1.09 * truth, 0.1 * truth)),  # near, holds the truth
            case("db-lock", capacity=capacity(0.89 * truth, 0.1 * truth)),  # neither
            case("db-lock", capacity=capacity(truth)),  # near, and nothing is said of how sure
        ],
        EXISTING,
    )

    number = next(candidate for candidate in summary.numbers if candidate.name == "capacity")
    assert number.near == Share(2, 3)
    assert number.covered == Share(1, 2)
    assert summary.covered == Share(1, 2)


def bound(point: float) -> dict[str, Any]:
    return {"point": point, "low": point, "high": None, "unit": "1/s"}


def test_a_capacity_that_is_a_lower_bound_is_true_or_not_and_never_near() -> None:
    truth = FAMILIES["db-lock"].drawn(1).flawed.numbers["capacity"].value

    summary = score(
        [
            case("db-lock", capacity=bound(0.5 * truth)),
            case("db-lock", capacity=bound(1.01 * truth)),
        ],
        EXISTING,
    )

    number = next(candidate for candidate in summary.numbers if candidate.name == "capacity")
    assert number.errors == ()
    assert number.covered == Share(1, 2)
    assert number.silent == 0


# --- fixes -------------------------------------------------------------------------------------------------


def predicting(
    rule: str, after: float, half: float | None = None, grade: str = "strong", remedy: str = ""
) -> dict[str, Any]:
    prediction = {
        "what": "capacity",
        "remedy": remedy,
        "before": capacity(1.0),
        "after": capacity(after, half),
    }
    return {**finding(rule, grade), "predictions": [prediction]}


def measured(family: str, side: str, rate: float | None) -> Case:
    return case(family, side=side, capacity=None if rate is None else capacity(rate))


TWICE = "8 threads in place of 4"


def test_what_a_fix_was_said_to_bring_is_held_against_the_service_that_has_it() -> None:
    summary = score(
        [
            case("worker-pool", predicting("threads.pool-limit", 110.0, 15.0, remedy=TWICE)),
            measured("worker-pool", "repaired", 100.0),  # 10 % less was measured, and the interval holds it
            case("skewed-turns", predicting("lb.imbalance", 80.0, 15.0)),
            measured("skewed-turns", "twin", 100.0),  # its twin is the fix; 20 % more, and it does not
        ],
        EXISTING,
    )

    errors = {"worker-pool/1/flawed": 0.10, "skewed-turns/1/flawed": -0.20}
    assert summary.fixes.errors == pytest.approx(errors)
    assert summary.fixes.near == Share(1, 2)
    assert summary.fixes.covered == Share(1, 2)
    assert "| worker-pool/1/flawed | 110/s | 100/s | +10.0% |" in page._fixes(summary)


def test_a_fix_that_cannot_be_compared_is_named_with_the_reason() -> None:
    summary = score(
        [
            case("worker-pool", predicting("threads.pool-limit", 100.0, remedy=TWICE)),
            measured("worker-pool", "repaired", None),  # undecided
            case("slow-replica", predicting("backend.slow-one", 100.0)),  # its twin was never run
            case("skewed-turns", finding("lb.imbalance")),  # no prediction
            case("lock+pauses", predicting("pause.periodic", 100.0, grade="suspected")),  # no claim
            case("co-located", predicting("cpu.saturated", 100.0)),  # advice against something else
        ],
        EXISTING,
    )

    assert summary.fixes.near == Share(0, 0)
    assert summary.fixes.unmeasured == ("worker-pool/1/flawed", "slow-replica/1/flawed")
    assert summary.fixes.silent == ("skewed-turns/1/flawed", "lock+pauses/1/flawed", "co-located/1/flawed")


def test_a_fix_of_which_a_lower_bound_was_measured_or_said_is_no_number() -> None:
    predicted = case("worker-pool", predicting("threads.pool-limit", 100.0, 5.0, remedy=TWICE))
    least = case("worker-pool", predicting("threads.pool-limit", 90.0, remedy=TWICE))
    least.explanation["findings"][0]["predictions"][0]["after"] = bound(90.0)

    open_after = score(
        [predicted, case("worker-pool", side="repaired", capacity=bound(100.0))], EXISTING
    ).fixes
    open_said = score([least, measured("worker-pool", "repaired", 100.0)], EXISTING).fixes

    assert open_after.unmeasured == ("worker-pool/1/flawed",)
    assert open_after.covered == Share(0, 0)
    assert (open_said.seen, open_said.covered) == ({}, Share(1, 1))


def test_a_prediction_counts_where_it_is_of_this_change_and_of_a_throughput() -> None:
    other = case("worker-pool", predicting("threads.pool-limit", 100.0, remedy="a cache before them"))
    time = predicting("threads.pool-limit", 0.1, remedy=TWICE)
    time["predictions"][0]["after"]["unit"] = "s"

    for predicted in (other, case("worker-pool", time)):
        summary = score([predicted, measured("worker-pool", "repaired", 100.0)], EXISTING)
        assert summary.fixes.silent == ("worker-pool/1/flawed",)


def test_a_service_of_another_seed_or_budget_or_the_twin_next_to_a_repaired_one_does_not_count() -> None:
    predicted = case("worker-pool", predicting("threads.pool-limit", 100.0, remedy=TWICE))
    after = measured("worker-pool", "repaired", 100.0)
    others = [replace(after, seed=2), replace(after, budget_s=90.0), measured("worker-pool", "twin", 100.0)]

    assert score([predicted, *others], EXISTING).fixes.unmeasured == ("worker-pool/1/flawed",)


def test_a_repaired_service_counts_for_nothing_but_its_fix() -> None:
    summary = score([case("db-lock", finding("eventloop.blocked"), side="repaired")], EXISTING)

    assert summary.cases == 0
    assert summary.precision == Share(0, 0)
    assert summary.recall == Share(0, 0)


# --- the page ----------------------------------------------------------------------------------------------


def test_the_published_pages_are_those_that_the_published_rows_make() -> None:
    texts = (page.DOCS / page.PAGE).read_text(), (page.DOCS / page.APPENDIX).read_text()

    assert page.filled(*texts) == texts, "run `python -m catalogue page`"
    with pytest.raises(ValueError, match="markers"):
        page.filled(texts[0], texts[1].replace("data: fixes", "data: mixes"))


def test_the_confusions_are_listed_by_true_cause_with_the_most_frequent_answer_first() -> None:
    named = case("db-lock", finding("db.lock"))

    lines = page._confusion(score([named, named, case("db-lock")], EXISTING))

    assert "| db.lock | db.lock 2, none named 1 |" in lines
