"""Quantities as people write them: durations, counts, rates, sizes, shares.

Each function takes what stands in a study file or behind a flag and gives one number in a base unit
(nanoseconds or seconds, requests, per second, bytes, a fraction). Arithmetic is exact until the last
step, so `0.1s` is 100,000,000 ns. What cannot be read raises `UnitError` with the value and an example.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

NS_PER_S: Final = 1_000_000_000
LONGEST_S: Final = 366 * 86_400  # a trial longer than a year is a typing error; also fits 64-bit nanoseconds
FEWEST_ROWS: Final = 1_000  # of a stream that a record keeps: fewer say nothing about its slowest requests
LARGEST_COUNT: Final = 2**53  # exact in a double, so that JSON carries it unharmed


class UnitError(ValueError):
    """A value that is not the quantity asked for.

    Args:
        message: What is wrong, with the value.
        example: Values that would do, for the hint.
    """

    def __init__(self, message: str, example: str) -> None:
        super().__init__(message)
        self.message = message
        self.example = example


# ---------------------------------------------------------------------------------------------- durations

_DURATION_EXAMPLE: Final = "500ms, 30s, 2m or 1h30m; a bare number is seconds"
_NS_PER_UNIT: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_S,
    "sec": NS_PER_S,
    "m": 60 * NS_PER_S,
    "min": 60 * NS_PER_S,
    "h": 3_600 * NS_PER_S,
    "d": 86_400 * NS_PER_S,
}
_NUMBER: Final = r"(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})"
_DURATION_PART: Final = re.compile(rf"({_NUMBER})\s*(ns|us|µs|ms|min|sec|s|m|h|d)\s*")


def duration_ns(value: object, *, at_least_ns: int = 0) -> int:
    """A duration in whole nanoseconds: `500ms`, `30s`, `1h30m`; a bare number is seconds."""
    exact = _duration(value)
    nanoseconds = round(exact)
    if nanoseconds > LONGEST_S * NS_PER_S:
        raise UnitError(f"{shown(value)} is longer than a year", _DURATION_EXAMPLE)
    if nanoseconds < at_least_ns:
        least = duration_text(at_least_ns / NS_PER_S) if at_least_ns > 1 else "above 0"
        wanted = least if at_least_ns <= 1 else f"at least {least}"
        raise UnitError(f"a duration here is {wanted}, got {shown(value)}", _DURATION_EXAMPLE)
    return nanoseconds


def duration_s(value: object, *, at_least_ns: int = 0) -> float:
    """A duration in seconds; the same forms as `duration_ns`."""
    return duration_ns(value, at_least_ns=at_least_ns) / NS_PER_S


def _duration(value: object) -> Fraction:
    """Exact nanoseconds, not yet bounded."""
    if (number := _plain_number(value)) is not None:
        if number < 0:
            raise UnitError(f"a duration is not negative, got {shown(value)}", _DURATION_EXAMPLE)
        return number * NS_PER_S
    text = value.strip() if isinstance(value, str) else ""
    total, position, last_unit = Fraction(0), 0, None
    while position < len(text):
        part = _DURATION_PART.match(text, position)
        # Parts fall in size, as in 1h30m; `30m1h` or `5s5s` is more likely a slip than a sum.
        if part is None or (last_unit is not None and _NS_PER_UNIT[part[2]] >= last_unit):
            break
        last_unit = _NS_PER_UNIT[part[2]]
        total += Fraction(part[1]) * last_unit
        position = part.end()
    if not text or position < len(text):
        raise UnitError(f"{shown(value)} is not a duration", _DURATION_EXAMPLE)
    return total


def duration_text(seconds: float) -> str:
    """A duration for people, such as `150 ms`, `8 s`, `2 min 30 s`, `1 h 5 min`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.3g} µs" if seconds else "0 s"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min" + (f" {rest} s" if rest else "")
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h" + (f" {minutes} min" if minutes else "")


# ------------------------------------------------------------------------------------- counts, rates, sizes

_COUNT_EXAMPLE: Final = "100, 1k or 2.5M"
_RATE_EXAMPLE: Final = "50, 20/s, 3000/m or 15k/min"
_SIZE_EXAMPLE: Final = "512, 64KiB, 10MB or 2GiB"
_SHARE_EXAMPLE: Final = "30% or 0.3"
_MULTIPLES: Final = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_COUNT: Final = re.compile(rf"({_NUMBER})\s*([kKMG]?)")
_RATE: Final = re.compile(rf"({_NUMBER})\s*([kKMG]?)\s*(?:/\s*(s|sec|m|min|h))?")
_SIZE: Final = re.compile(rf"({_NUMBER})\s*(B|[kKMGT]i?B?)?")
_SECONDS_PER: Final = {None: 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600}


def count(value: object, *, at_least: int = 0, at_most: int = LARGEST_COUNT) -> int:
    """A whole number: `100`, `1k`, `2.5M`."""
    number = _plain_number(value)
    if number is None and isinstance(value, str) and (match := _COUNT.fullmatch(value.strip())):
        number = Fraction(match[1]) * _MULTIPLES[match[2]]
    if number is None:
        raise UnitError(f"{shown(value)} is not a count", _COUNT_EXAMPLE)
    if number.denominator != 1:
        raise UnitError(f"a count is a whole number, got {shown(value)}", _COUNT_EXAMPLE)
    if number < at_least:
        raise UnitError(f"a count here is at least {at_least}, got {shown(value)}", _COUNT_EXAMPLE)
    if number > at_most:
        raise UnitError(f"a count here is at most {at_most}, got {shown(value)}", _COUNT_EXAMPLE)
    return int(number)


def kept_rows(value: object) -> int | None:
    """Rows that a record keeps: `all` is None, `none` is 0, otherwise a count from 1,000."""
    if value in ("all", "none"):
        return None if value == "all" else 0
    try:
        return count(value, at_least=FEWEST_ROWS)
    except UnitError as fault:
        raise UnitError(fault.message, "all, none, or a number from 1,000 such as 500k") from None


def rate_per_s(value: object) -> float:
    """A rate per second, above 0: `50`, `20/s`, `3000/m`, `15k/min`."""
    number = _plain_number(value)
    if number is None and isinstance(value, str) and (match := _RATE.fullmatch(value.strip())):
        number = Fraction(match[1]) * _MULTIPLES[match[2]] / _SECONDS_PER[match[3]]
    if number is None:
        raise UnitError(f"{shown(value)} is not a rate", _RATE_EXAMPLE)
    if not 0 < number <= 10**9:
        raise UnitError(f"a rate is above 0 and at most 1e9 per second, got {shown(value)}", _RATE_EXAMPLE)
    return float(number)


def size_bytes(value: object) -> int:
    """A size in bytes: `512`, `64KiB`, `10MB` (powers of ten), `2GiB` (powers of two)."""
    number = _plain_number(value)
    if number is None and isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        number = Fraction(match[1]) * _bytes_per(match[2] or "B")
    if number is None or number.denominator != 1 or not 0 <= number <= LARGEST_COUNT:
        raise UnitError(f"{shown(value)} is not a size in whole bytes", _SIZE_EXAMPLE)
    return int(number)


def _bytes_per(unit: str) -> int:
    prefix = unit.rstrip("B")
    base = 1024 if prefix.endswith("i") else 1000
    bytes_per_unit: int = base ** " kMGT".index(prefix[:1].replace("K", "k") or " ")
    return bytes_per_unit


def share(value: object, *, at_most: float | None = 1.0) -> float:
    """A fraction: `30%` or `0.3`. A bare number above 1 is refused, since it may have meant per cent.

    Args:
        value: As written.
        at_most: Largest fraction allowed; none: percentages may pass 100 % (a tolerance, a growth).
    """
    if (number := _plain_number(value)) is not None:
        if not 0 <= number <= 1:
            raise UnitError(f"{shown(value)} is not a share between 0 and 1", _SHARE_EXAMPLE)
        return float(number)
    match = re.fullmatch(rf"({_NUMBER})\s*%", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise UnitError(f"{shown(value)} is not a percentage", _SHARE_EXAMPLE)
    fraction = float(Fraction(match[1]) / 100)
    if fraction > (1e6 if at_most is None else at_most):
        raise UnitError(
            f"a percentage here is at most {100 * (at_most or 1e6):g}%, got {shown(value)}", "30%"
        )
    return fraction


# -------------------------------------------------------------------------------------------- HTTP statuses

_STATUS_EXAMPLE: Final = "200, 2xx or 200-299"


def statuses(value: object) -> tuple[int, ...]:
    """Statuses of final responses: `200`, `2xx`, `200-299`."""
    text = str(value).strip().lower()
    family = re.fullmatch(r"([2-5])xx", text)
    span = re.fullmatch(r"([0-9]{3})(?:-([0-9]{3}))?", text)
    if family is not None:
        first, last = int(family[1]) * 100, int(family[1]) * 100 + 99
    elif span is not None:
        first, last = int(span[1]), int(span[2] or span[1])
    else:
        raise UnitError(f"{shown(value)} is no status", _STATUS_EXAMPLE)
    if not 200 <= first <= last <= 599:
        raise UnitError(f"statuses of responses are from 200 to 599, got {shown(value)}", _STATUS_EXAMPLE)
    return tuple(range(first, last + 1))


# ------------------------------------------------------------------------------------------ plain scalars

_MOST_DIGITS: Final = 40  # far beyond 64 bits, which the caller checks; reading many digits is quadratic
_INT: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEX: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def scalar(text: str) -> str | int | float | bool | None:
    """A plain scalar by the core schema of YAML 1.2 (10.3.2): `yes` and `012:30` are text here.

    Raises:
        UnitError: The number has no finite value, or more than 40 digits.
    """
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _NOT_FINITE.fullmatch(text):
        raise UnitError(f"{text} is not a finite number", "a finite number, or quote it as text")
    is_whole = next(
        (base for form, base in ((_INT, 10), (_OCTAL, 8), (_HEX, 16)) if form.fullmatch(text)), None
    )
    if is_whole is not None:
        if len(text) > _MOST_DIGITS:
            raise UnitError(f"{shown(text)} has too many digits for a number", "quotes, to make it text")
        return int(text, is_whole)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise UnitError(f"{shown(text)} is out of the range of a number", "quotes, to make it text")
        return number
    return text


def fits_64_bits(number: int) -> bool:
    """True if the engine receives the whole number exactly; others become the nearest float."""
    return -(2**63) <= number < 2**64


def _plain_number(value: object) -> Fraction | None:
    """The exact value of a number or of text that is only digits; none for anything else.

    A float is taken by its shortest decimal form: 0.1 means one tenth, as it was written.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, float):
        return Fraction(repr(value)) if value == value and abs(value) != float("inf") else None
    if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
        return Fraction(value.strip())
    return None


def shown(value: object) -> str:
    """A value as a message names it: short, on one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
