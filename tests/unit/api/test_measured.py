"""Figures compare as intervals: true only where the whole interval says so."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from loadlens.api.measured import Measured
from loadlens.errors import UsageError
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided

P99 = "response_time.p99"


def measured(figure: Figure, **more: Any) -> Measured:
    return Measured("p99 of response time", "s", figure, "http://x: GET / · closed", **more)


def seconds(point: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(P99, "s", point, low, high, trials=1, samples=900, method="by hand")


@pytest.mark.parametrize(
    ("figure", "is_below", "is_above"),
    [
        (seconds(0.040, 0.035, 0.045), True, False),
        (seconds(0.060, 0.055, 0.065), False, True),
        (seconds(0.048, 0.040, 0.056), False, False),
        (seconds(0.040, 0.035, None), False, False),  # open above: nothing says that it ends below
        (seconds(0.060, 0.055, None), False, True),
        (seconds(0.040, None, None), False, False),
        (Undecided(P99, "s", "12 requests"), False, False),
        (NotMeasured(P99, "no request was answered"), False, False),
    ],
)
def test_an_interval_lies_below_a_limit_above_it_or_neither(
    figure: Figure, is_below: bool, is_above: bool
) -> None:
    p99 = measured(figure)

    assert (p99 < "50ms", p99 <= "50ms") == (is_below, is_below)
    assert (p99 > "50ms", p99 >= "50ms") == (is_above, is_above)
    assert (operator.gt("50ms", p99), operator.lt("50ms", p99)) == (is_below, is_above)


def test_nothing_follows_from_an_invalid_load() -> None:
    p99 = measured(seconds(0.040, 0.035, 0.045), doubt="the generator stood still for 2 s")

    assert not p99 < "50ms"
    assert not p99 > "10ms"
    assert p99.against("<", "50ms").lines[0] == (
        "p99 of response time below 50.0 ms is undecided: the generator stood still for 2 s"
    )


def test_a_verdict_comes_with_value_interval_origin_and_record() -> None:
    p99 = measured(seconds(0.060, 0.055, 0.065), trust=("▲ generator late",), record="runs/a")

    assert p99.against("<", "50ms").lines == (
        "missed: p99 of response time below 50.0 ms",
        "value: 60.0 ms, 95 % interval 55.0–65.0 (within one trial, 900 requests)",
        "measured: http://x: GET / · closed",
        "▲ generator late",
        "record: runs/a",
    )


def test_undecided_says_how_long_a_load_would_decide() -> None:
    p99 = measured(seconds(0.040, 0.030, 0.060), measured_s=10.0)

    # The upper half-width is 20 ms, the distance 5 ms: 4 times too wide, so 16 times as long, and a tenth.
    assert p99.against("<", "45ms").lines[-1] == "to decide: about 3 min of load, in place of 10 s"


def test_undecided_at_the_limit_itself_advises_no_length() -> None:
    p99 = measured(seconds(0.0401, 0.030, 0.060), measured_s=10.0)

    assert not any("to decide" in line for line in p99.against("<", "40ms").lines)


@pytest.mark.parametrize(
    ("limit", "message"),
    [(50, "50 has no unit"), ("50", "50 has no unit"), ("fast", "'fast' is not a duration")],
)
def test_a_limit_that_is_no_time_is_refused_with_an_example(limit: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        assert measured(seconds(0.040, 0.035, 0.045)) < limit

    assert refused.value.hint is not None


def test_two_results_are_compared_by_compare() -> None:
    p99 = measured(seconds(0.040, 0.035, 0.045))

    with pytest.raises(UsageError, match="trials of one version vary") as refused:
        assert p99 < p99

    assert refused.value.hint == "loadlens.compare(a, b), which runs both in pairs"


def test_a_figure_reads_as_in_reports() -> None:
    assert str(measured(seconds(0.040, 0.035, 0.045))) == (
        "p99 of response time 40.0 ms (35.0–45.0; within one trial, 900 requests)"
    )
    assert repr(measured(Undecided(P99, "s", "12 requests"))) == (
        "<p99 of response time undecided: 12 requests>"
    )
