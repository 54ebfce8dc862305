"""Numbers as people read them; expected texts were written by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.present import numbers


def estimate(
    point: float, low: float | None, high: float | None, unit: str = "s", **other: object
) -> Estimate:
    given_ = {"metric": "m", "trials": 5, "samples": 1_200_000, "method": "t on log of trials"} | other
    return Estimate(unit=unit, point=point, low=low, high=high, **given_)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (50, "50"),
        (243_912, "243,912"),
        (999_999, "999,999"),
        (1_000_000, "1.00 M"),
        (1_460_000, "1.46 M"),
        (999_600_000, "1.00 G"),
        (2_500_000_000, "2.50 G"),
        (-12_000, "−12,000"),
    ],
)
def test_counts_stand_in_full_up_to_999_999(number: int, text: str) -> None:
    assert numbers.count(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0.347, "0.35"), (7.24, "7.2"), (99.4, "99"), (99.6, "100"), (1_234.4, "1,234")]
)
def test_a_mean_count_has_two_digits_and_is_full_from_100(number: float, text: str) -> None:
    assert numbers.about(number) == text


@pytest.mark.parametrize(
    ("point", "low", "high", "unit", "text"),
    [
        (0.0390, 0.0354, 0.0436, "s", "39.0 ms (35.4–43.6)"),
        (0.00210, 0.00205, 0.00216, "s", "2.10 ms (2.05–2.16)"),
        (24_390, 23_950, 24_840, "1/s", "24,390 /s (23,950–24,840)"),
        (4.603, 4.512, 4.691, "1/s", "4.60 /s (4.51–4.69)"),
        (998.7, 987.2, 1010.4, "1/s", "999 /s (987–1,010)"),
        (0.341, 0.322, 0.361, "s", "341 ms (322–361)"),
        (0.0049, 0.0041, 0.0058, "share", "0.490 % (0.410–0.580)"),
        (0.99, 0.98, 1.0, "cores", "0.990 cores (0.980–1.00)"),
        (2.31, 2.18, 2.45, "s", "2.31 s (2.18–2.45)"),
        (0.0740, 0.0740 - 0.0031, None, "s", "74.0 ms (70.9–open)"),
        (157_286_400, 146_800_640, 167_772_160, "bytes", "150 MiB (140–160)"),
        (0, 0, 0.00056, "share", "0 % (0–0.056)"),
        (0, 0, 0.12, "share", "0 % (0–12)"),
        (1_234_567, 1_230_000, 1_239_000, "1/s", "1.235 M /s (1.230–1.239)"),
    ],
)
def test_a_number_has_three_digits_and_a_rate_four(
    point: float, low: float, high: float, unit: str, text: str
) -> None:
    assert numbers.show(estimate(point, low, high, unit)).with_interval == text


def test_a_wide_interval_takes_digits_away() -> None:
    # half-width 140: its second digit is the tens, so 512 is 510
    assert numbers.show(estimate(0.512, 0.372, 0.691)).with_interval == "510 ms (370–690)"


def test_the_whole_text_says_from_what() -> None:
    assert (
        numbers.show(estimate(0.0390, 0.0354, 0.0436)).text
        == "39.0 ms (35.4–43.6; 5 trials, 1.20 M requests)"
    )


def test_one_trial_is_said() -> None:
    shown = numbers.show(estimate(0.0390, 0.0354, 0.0436, trials=1, samples=9_600))

    assert shown.within_one_trial
    assert shown.origin == "within one trial, 9,600 requests"


def test_an_exact_count_has_no_interval() -> None:
    shown = numbers.show(estimate(1200, 1200, 1200, "requests", method="exact count"))

    assert shown.text == "1,200 requests (exact)"
    assert not shown.within_one_trial


def test_a_count_that_is_a_mean_is_no_exact_count() -> None:
    assert numbers.show(estimate(50.42, 49.1, 51.6, "requests")).short == "50.4 requests"


def test_a_value_known_only_from_below_says_more_than() -> None:
    shown = numbers.show(estimate(2.0, 2.0, None))

    assert shown.short == "> 2.00 s"
    assert shown.interval == ""


def test_an_estimate_without_interval_says_so() -> None:
    assert (
        numbers.show(estimate(0.0390, None, None)).text == "39.0 ms (no interval; 5 trials, 1.20 M requests)"
    )


def test_the_four_states_look_different() -> None:
    zero = numbers.show(estimate(0, 0, 0, "share", method="exact count"))
    undecided = numbers.show(Undecided("p99.9", "s", "needs 21 s"))
    missing = numbers.show(NotMeasured("cpu", "no monitor"))
    invalid = numbers.show(estimate(0.039, 0.035, 0.043), invalid=True)

    assert zero.short == "0 %"
    assert undecided.with_interval == "undecided: needs 21 s"
    assert missing.with_interval == "not measured: no monitor"
    assert [s.state for s in (zero, undecided, missing, invalid)] == [
        "measured",
        "undecided",
        "not measured",
        "invalid",
    ]


def test_a_value_that_is_not_finite_is_never_printed() -> None:
    assert numbers.show(estimate(math.nan, None, None)).state == "undecided"


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([3e-9], "ns"),
        ([2e-6, 3e-6, 5e-3], "µs"),
        ([0.0021, 0.039, 4.2], "ms"),
        ([0.9996], "s"),
        ([1.2, 3.4], "s"),
        ([], "ms"),
        ([0.0, 0.0, 2.0], "s"),
        ([math.inf, None, 0.002], "ms"),
    ],
)
def test_a_block_takes_its_unit_from_its_median(values: list[float], name: str) -> None:
    assert numbers.scale("s", values).name == name


def test_one_unit_holds_for_the_whole_block() -> None:
    block = [estimate(0.223, 0.219, 0.227), estimate(0.936, 0.901, 0.972), estimate(4.2, 3.87, 4.56)]
    on = numbers.scale_of([*block, NotMeasured("x", "y"), None])

    assert [numbers.show(figure, on).short for figure in block] == ["223 ms", "936 ms", "4,200 ms"]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.0354, 0.0436, "35.4–43.6"), (0.074, None, "74.0–open"), (None, 0.002, "open–2.00")],
)
def test_ranges_have_an_en_dash_and_open_ends(low: float | None, high: float | None, text: str) -> None:
    assert numbers.interval(low, high, numbers.scale("s", [0.01])) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.35, "350 ms"),
        (1.2, "1.2 s"),
        (10.0, "10 s"),
        (119, "119 s"),
        (3420, "57 min"),
        (7500, "2 h 5 min"),
        (7200, "2 h"),
        (273_600, "3 d 4 h"),
    ],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert numbers.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(9.996, "10.0"), (0.09996, "0.100"), (999.7, "1,000"), (0.0004567, "0.000457"), (-2.3456, "−2.35")],
)
def test_rounding_up_to_the_next_power_keeps_three_digits(number: float, text: str) -> None:
    assert numbers.value(number, numbers.Scale("", 1.0)) == text


@given(
    point=st.floats(1e-9, 1e9),
    down=st.floats(0.001, 0.999),
    up=st.floats(1.001, 50),
    unit=st.sampled_from(["s", "1/s", "bytes", "share", "ratio", "cores"]),
)
def test_what_is_printed_is_near_what_is_meant(point: float, down: float, up: float, unit: str) -> None:
    figure = estimate(point, point * down, point * up, unit)
    on = numbers.scale_of([figure])
    shown = numbers.show(figure, on)

    printed = float(shown.value.replace(",", "")) * on.factor
    shorter = min(point - point * down, point * up - point)
    # half a unit of the last of three digits, or of the second digit of the half-width
    assert abs(printed - point) <= max(0.0051 * point, 0.051 * shorter) * (1 + 1e-6)


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["s", "1/s", "bytes", "share", "x"]))
def test_any_float_can_be_shown(number: float, unit: str) -> None:
    assert numbers.show(estimate(number, None, None, unit)).text
