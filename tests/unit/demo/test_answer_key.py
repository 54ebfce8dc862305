"""The answer key of `loadlens demo`: the lines that it shows, and its comparison with a diagnosis."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.demo import FLAWS, Flaw
from loadlens.demo.answer_key import answer_key_as_dict, answer_key_lines
from loadlens.model.explanation import Explanation
from loadlens.model.finding import Grade, Undecided


def answer(limit: str | None, grade: str | None = "probable", findings: Any = ()) -> Explanation:
    nothing: Any = ()
    return Explanation(
        target="http://127.0.0.1:1",
        requests=nothing,
        tier="C",
        sentence="",
        limit=limit,
        grade=grade,
        capacity=Undecided("capacity", "1/s", "not measured"),
        at_least=None,
        knee_users=None,
        others="",
        time="",
        do="",
        brings="",
        ladder=nothing,
        findings=findings,
        absent=nothing,
        not_assessed=nothing,
        unknown=nothing,
        cautions=nothing,
        found=nothing,
        missing=nothing,
        stopped_because="saturated",
        stopped_words="",
        budget_s=40.0,
        used_s=40.0,
        seed=1,
        record=None,
    )


def verdict(flaw: Flaw, given: Explanation) -> str:
    lines = list(answer_key_lines(flaw, given, width=200))
    return lines[-1]


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
def test_every_beginning_of_a_line_is_found_once_in_the_source(flaw: Flaw) -> None:
    texts = [line.text.strip() for line in flaw.source_lines()]

    assert [sum(text.startswith(start) for text in texts) for start in flaw.code] == [1] * len(flaw.code)


@pytest.mark.parametrize("flaw", FLAWS.values(), ids=FLAWS)
def test_a_shown_line_stands_in_the_source_under_its_number(flaw: Flaw) -> None:
    source = flaw.source.read_text().splitlines()

    assert all(source[line.number - 1] == line.text for line in flaw.source_lines())


def test_every_flaw_has_a_rule_of_its_own() -> None:
    rules = [flaw.rule for flaw in FLAWS.values()]

    assert set(rules) <= {page.ID for page in diagnose.PAGES}
    assert len(set(rules)) == len(rules)


def test_a_diagnosis_is_right_wrong_undecided_or_about_the_machine() -> None:
    flaw = FLAWS["lock"]

    assert verdict(flaw, answer("db.lock")) == "● The diagnosis is right: db.lock (probable)."
    assert verdict(flaw, answer("db.pool")) == (
        "■ The diagnosis is wrong: it names db.pool. Right would be db.lock."
    )
    assert verdict(flaw, answer(None, None)) == "○ The diagnosis is undecided. Right would be db.lock."
    assert verdict(flaw, answer("host.interference")) == (
        "○ The diagnosis names this machine (host.interference), not the service. Right would be db.lock. "
        "Try again while no other program runs."
    )


def test_where_throughput_stops_is_no_cause() -> None:
    assert verdict(FLAWS["lock"], answer("saturation.plateau")) == (
        "○ The diagnosis says where throughput stops, but not why (saturation.plateau). "
        "Right would be db.lock."
    )


def test_an_undecided_diagnosis_that_suspects_the_flaw_says_so() -> None:
    suspicion = SimpleNamespace(rule="db.lock", grade=Grade.SUSPECTED)

    text = verdict(FLAWS["lock"], answer(None, None, (suspicion,)))

    assert text.endswith("Right would be db.lock, which is among its findings (suspected).")


def test_the_answer_key_fits_the_width() -> None:
    for flaw in FLAWS.values():
        assert max(map(len, answer_key_lines(flaw, answer("db.lock"), width=80))) <= 80


def test_the_json_of_the_key_names_flaw_lines_and_comparison() -> None:
    flaw = FLAWS["small-pool"]

    key = answer_key_as_dict(flaw, answer("db.pool"))

    assert key["flaw"] == "small-pool"
    assert key["is_named"] is True
    assert key["expected_limit"] == "db.pool"
    assert key["lines"] == [line.number for line in flaw.source_lines()]


def test_services_give_nothing_away_in_their_names_and_paths() -> None:
    for flaw in FLAWS.values():
        shown = f"{flaw.file} {flaw.path}"
        assert not any(word in shown for word in flaw.name.split("-"))
