"""Quantities as people write them. Expected values are counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens import units
from loadlens.units import UnitError

NS = 1_000_000_000


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("500ms", 500_000_000),
        ("30s", 30 * NS),
        ("2m", 120 * NS),
        ("1h30m", 5_400 * NS),
        ("1h 30m 5s", 5_405 * NS),
        ("1m30.5s", 90_500_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("7ns", 7),
        ("1d", 86_400 * NS),
        (8, 8 * NS),
        ("8", 8 * NS),
        (0, 0),
        (0.1, 100_000_000),  # exactly a tenth, although the double is not
        ("0.000000001s", 1),
    ],
)
def test_a_duration_is_exact_to_the_nanosecond(written: object, nanoseconds: int) -> None:
    assert units.duration_ns(written) == nanoseconds


@pytest.mark.parametrize(
    "written",
    ["5 parsecs", "", " ", "s", "1s2s", "30m1h", "-1s", -1, "1e3s", "1,5s", True, None, [], {}, "400d", 1e12],
)
def test_what_is_no_duration_is_refused_with_the_value_and_an_example(written: object) -> None:
    with pytest.raises(UnitError) as refusal:
        units.duration_ns(written)

    assert units.shown(written) in refusal.value.message
    assert "500ms" in refusal.value.example


def test_a_duration_that_must_be_above_zero_refuses_zero() -> None:
    with pytest.raises(UnitError, match="above 0"):
        units.duration_ns("0s", at_least_ns=1)


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (100, 100),
        ("100", 100),
        ("1k", 1_000),
        ("2.5M", 2_500_000),
        ("1.5k", 1_500),
        ("3G", 3 * 10**9),
        (2.0, 2),
    ],
)
def test_counts_know_k_and_m(written: object, number: int) -> None:
    assert units.count(written) == number


@pytest.mark.parametrize(
    "written", ["1.5", 1.5, "k", "1kk", "-3", -3, "ten", True, None, float("nan"), "1.0005k"]
)
def test_a_count_is_whole_and_not_negative(written: object) -> None:
    with pytest.raises(UnitError, match="count"):
        units.count(written)


def test_a_count_keeps_to_its_bounds() -> None:
    with pytest.raises(UnitError, match="at least 1, got 0"):
        units.count(0, at_least=1)
    with pytest.raises(UnitError, match="at most 64, got 65"):
        units.count(65, at_most=64)


def test_kept_rows_are_all_none_or_a_number_that_says_something() -> None:
    assert [units.kept_rows(written) for written in ("all", "none", "5k", 1000)] == [None, 0, 5_000, 1_000]


@pytest.mark.parametrize("written", ["0", "999", "some", "-1", True])
def test_what_is_no_number_of_rows_is_refused_with_the_words_for_it(written: object) -> None:
    with pytest.raises(UnitError) as refused:
        units.kept_rows(written)

    assert refused.value.example == "all, none, or a number from 1,000 such as 500k"


@pytest.mark.parametrize(
    ("written", "per_second"),
    [
        (50, 50.0),
        ("20/s", 20.0),
        ("3000/m", 50.0),
        ("15k/min", 250.0),
        ("1/h", 1 / 3600),
        ("2.5", 2.5),
        ("90 /m", 1.5),
    ],
)
def test_rates_become_per_second(written: object, per_second: float) -> None:
    assert units.rate_per_s(written) == per_second


@pytest.mark.parametrize("written", [0, "0/s", "-1", "20/day", "x", None, True, "2e9"])
def test_a_rate_is_above_zero(written: object) -> None:
    with pytest.raises(UnitError, match="rate"):
        units.rate_per_s(written)


@pytest.mark.parametrize(
    ("written", "size"),
    [
        (512, 512),
        ("512B", 512),
        ("64KiB", 65_536),
        ("10MB", 10_000_000),
        ("2GiB", 2_147_483_648),
        ("1k", 1_000),
        ("1.5KiB", 1_536),
    ],
)
def test_sizes_know_powers_of_ten_and_of_two(written: object, size: int) -> None:
    assert units.size_bytes(written) == size


@pytest.mark.parametrize("written", ["64KiBB", "1.5B", "-1", "MB", None, True, "1PB"])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(UnitError, match="size"):
        units.size_bytes(written)


@pytest.mark.parametrize(
    ("written", "fraction"), [("30%", 0.3), (0.3, 0.3), ("100%", 1.0), (1, 1.0), ("0.5 %", 0.005)]
)
def test_shares_are_fractions(written: object, fraction: float) -> None:
    assert units.share(written) == fraction


def test_a_bare_number_above_one_is_no_share_since_it_may_have_meant_per_cent() -> None:
    with pytest.raises(UnitError, match="30 is not a share"):
        units.share(30)


def test_a_tolerance_may_pass_a_hundred_per_cent() -> None:
    assert units.share("150%", at_most=None) == 1.5
    with pytest.raises(UnitError, match="at most 100%"):
        units.share("150%")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # YAML 1.2.2, section 10.3.2 and its examples
        ("null", None), ("~", None), ("", None), ("true", True), ("False", False), ("0", 0), ("0o7", 7),
        ("0x3A", 58),
        ("-19", -19), ("0.", 0.0), ("-0.0", 0.0), (".5", 0.5), ("+12e03", 12_000.0), ("-2E+05", -200_000.0),
        # text in 1.2, unlike in 1.1
        ("yes", "yes"), ("off", "off"), ("12:30", "12:30"), ("1_000", "1_000"), ("0b1", "0b1"), ("010", 10),
    ],
)  # fmt: skip
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    assert units.scalar(text) == value
    assert type(units.scalar(text)) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1e999", "9" * 41, "0x" + "f" * 40])
def test_numbers_that_no_record_could_hold_are_refused(text: str) -> None:
    with pytest.raises(UnitError):
        units.scalar(text)


@given(
    st.one_of(st.text(max_size=30), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.text()))
)
def test_every_reader_gives_a_number_or_a_unit_error(value: object) -> None:
    for read in (units.duration_ns, units.count, units.rate_per_s, units.size_bytes, units.share):
        try:
            number = read(value)
        except UnitError:
            continue
        assert number >= 0


@given(st.integers(min_value=0, max_value=366 * 86_400 * 10**9))
def test_a_duration_written_in_nanoseconds_reads_back(nanoseconds: int) -> None:
    assert units.duration_ns(f"{nanoseconds}ns") == nanoseconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (0.00025, "250 µs"), (0.15, "150 ms"), (8, "8 s"), (20.5, "20.5 s"), (60, "1 min"),
        (150, "2 min 30 s"), (3600, "1 h"), (3900, "1 h 5 min"),
    ],
)  # fmt: skip
def test_durations_are_said_in_words(seconds: float, text: str) -> None:
    assert units.duration_text(seconds) == text
