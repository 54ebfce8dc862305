"""The answer of `explain` on a terminal and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens.model.finding import Estimate, Undecided
from loadlens.model.stacks import CodeEvidence, SettingPlace
from loadlens.report.write.json import explanation_as_json
from loadlens.report.write.terminal.explanation_text import explanation_lines
from tests.unit.report.write.sample_explanation import UNMEASURED, finding, rung, sample

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "explain-json.md"
PROMISED = {  # scripts rely on these
    "schema",
    "target",
    "budget_s",
    "used_s",
    "stopped_because",
    "limit",
    "capacity",
    "ladder",
    "findings",
    "absent",
    "not_assessed",
    "unknown",
    "cautions",
}

BOUND = Estimate(
    "capacity", "1/s", 98.0, 98.0, None, 7, 500, "lower bound: clients waited; t on log of trials"
)


def shown(**changes: object) -> list[str]:
    return list(explanation_lines(sample(**changes)))


# --- terminal ----------------------------------------------------------------------------------------------


def test_the_limit_is_the_first_line_and_the_only_one_when_quiet() -> None:
    lines = list(explanation_lines(sample(), quiet=True))

    assert " ".join(lines) == sample().sentence


def test_what_follows_stands_in_the_order_in_which_it_is_asked() -> None:
    labels = [line.split()[0] for line in shown() if line[:1].strip() and not line.startswith("▲")]

    wanted = ["because", "not", "capacity", "others", "do", "brings", "unknown", "decides"]
    assert [label for label in labels if label in wanted] == wanted


def test_the_line_that_may_set_the_limit_stands_with_its_text() -> None:
    place = SettingPlace("5", "/srv/desk/config.go", 27, "MaxOpen: 5,", "5 may be set at config.go:27")

    lines = shown(code=CodeEvidence(settings=(place,)))

    first = next(number for number, line in enumerate(lines) if line.startswith("setting"))
    assert lines[first].split(maxsplit=1)[1] == "5 may be set at config.go:27"
    assert lines[first + 1].strip() == "> MaxOpen: 5,"


def test_the_capacity_has_its_interval_and_where_it_is_from() -> None:
    line = next(line for line in shown() if line.startswith("capacity"))

    assert line.endswith("100 /s (98–102; 7 trials, 500 requests); the knee is at 1.2 users")


def test_a_lower_bound_is_said_as_one_and_so_is_its_knee() -> None:
    text = " ".join(" ".join(shown(capacity=BOUND)).split())

    assert "capacity at least 98.0 /s (7 trials, 500 requests); the knee is at 1.2 users or more" in text


def test_an_undecided_capacity_says_why_and_what_was_reached() -> None:
    lines = shown(capacity=Undecided("capacity", "1/s", "not reached"), at_least=640.0, limit=None)

    assert "capacity   undecided: not reached; 640 /s were reached" in lines


def test_each_level_is_a_row_and_one_that_was_ended_says_why() -> None:
    lines = shown(ladder=(rung(1), rung(8), UNMEASURED))
    head = next(n for n, line in enumerate(lines) if line.lstrip().startswith("users"))

    assert lines[head].split() == ["users", "/s", "mean", "p99", "failed", "CPU", "GET", "/ok"]
    assert lines[head + 2].split() == ["8", "100", "80.0", "ms", "?", "0", "%", "1.00", "80.0", "ms"]
    assert lines[head + 3].split(maxsplit=1) == ["16", "97 of 99 requests came to nothing within a second"]


def test_of_a_long_ladder_the_highest_levels_are_shown() -> None:
    lines = shown(ladder=tuple(rung(2**i) for i in range(13)))

    assert any("and 3 lower levels in the record" in line for line in lines)
    assert any(line.split()[:1] == ["4096"] for line in lines)


def test_other_findings_say_who_explains_them() -> None:
    loop = finding("eventloop.blocked", statement="/work blocks the event loop: 100 /s a process")
    folded = finding(explained_by="eventloop.blocked")
    lines = " ".join(shown(limit="eventloop.blocked", findings=(loop, folded)))

    assert "also       Throughput stops" in lines
    assert "explained by eventloop.blocked" in " ".join(lines.split())


def test_a_note_is_told_as_one() -> None:
    few = finding("quantile.insufficient", statement="4 of 9 quantiles stand on few requests")
    lines = shown(findings=(few,))

    assert "note       4 of 9 quantiles stand on few requests" in lines


def test_the_end_says_what_it_took_and_why_it_ended() -> None:
    text = " ".join(" ".join(shown(record="/somewhere/one")).split())

    assert "61 of 90 s used; ended because the ladder went well beyond the knee" in text
    assert text.endswith("Record /somewhere/one")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_the_terminal_and_use_its_width(width: int) -> None:
    wide = "x y " * 60
    answer = sample(
        sentence=wide, do=wide, cautions=(wide,), ladder=(rung(1), UNMEASURED), stopped_words=wide
    )

    lines = list(explanation_lines(answer, width=width))

    assert width - 4 <= max(map(len, lines)) <= width


def test_text_of_the_service_cannot_steer_the_terminal() -> None:
    assert not any("\x1b" in line for line in shown(sentence="bad \x1b[2J", others="\x1b]0;x", do="\x1b"))


# --- JSON --------------------------------------------------------------------------------------------------


def test_what_scripts_rely_on_is_there() -> None:
    told = json.loads(explanation_as_json(sample(ladder=(rung(1), UNMEASURED))))

    assert set(told) >= PROMISED
    assert told["schema"] == 1
    assert told["capacity"]["point"] == 100.0
    assert (told["capacity"]["low"], told["capacity"]["high"]) == (98.0, 102.0)
    parts = "rule grade statement evidence counter advice confirm predictions explained_by"
    assert set(told["findings"][0]) >= set(parts.split())
    assert told["findings"][0]["grade"] == "probable"
    first, ended = told["ladder"]
    assert (first["users"], first["throughput_per_s"]["point"], first["ended_early"]) == (1, 100.0, None)
    assert set(first["response_s"]) == {"mean", "p50", "p99"}
    assert "undecided" in first["response_s"]["p99"]
    assert first["probe"]["request"] == "GET /ok"
    assert (ended["probe"], ended["failed_share"]["point"]) == (None, 0.4)
    assert told["unknown"][0]["decided_by"].endswith("--metrics URL")


def test_a_lower_bound_is_open_above() -> None:
    told = json.loads(explanation_as_json(sample(capacity=BOUND)))["capacity"]

    assert (told["point"], told["low"], told["high"]) == (98.0, 98.0, None)
    assert told["method"].startswith("lower bound: ")


def test_an_undecided_capacity_has_its_reason_and_no_point() -> None:
    open_ = sample(capacity=Undecided("capacity", "1/s", "not reached"), at_least=640.0, limit=None)

    told = json.loads(explanation_as_json(open_))

    assert told["limit"] is None
    assert told["capacity"] == {"undecided": "not reached", "unit": "1/s", "at_least": 640.0}


def test_it_is_one_line() -> None:
    assert "\n" not in explanation_as_json(sample())


def test_the_page_names_every_key() -> None:
    told = json.loads(explanation_as_json(sample()))
    text = PAGE.read_text()

    named = {*told, *told["ladder"][0], *told["ladder"][0]["probe"]}
    assert not [name for name in sorted(named) if f"`{name}`" not in text]
