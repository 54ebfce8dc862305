"""Parses the checks of answers that `hit` takes: --expect and --check."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from loadlens import units
from loadlens.errors import UsageError, nearest
from loadlens.model.workload import Bounds, Check

_FORMS = (
    "contains:OK, regex:'id=\\d+', json:data.id=7, exists:data.id, header:X-Kind=fine, size:<64k, "
    "latency:200ms"
)
_KINDS = ("contains", "regex", "json", "exists", "header", "size", "latency")


def expected(text: str | None) -> tuple[int, ...]:
    """Parse the statuses of --expect; empty means any from 200 to 399."""
    if text is None:
        return ()
    try:
        return tuple(status for part in text.split(",") for status in units.statuses(part))
    except units.UnitError as fault:
        raise UsageError(fault.message, where="--expect", hint=fault.example) from None


def checks(texts: Sequence[str]) -> tuple[Check, ...]:
    """Parse every --check."""
    return tuple(_check(text) for text in texts)


def _check(text: str) -> Check:
    kind, colon, what = text.partition(":")
    if not colon or not what:
        status = re.fullmatch(r"(?:status|code)\W+(\w+)", text)
        hint = _FORMS if status is None else f"--expect {status[1]}"
        raise UsageError(f"not a check: {text!r}", where="--check", hint=hint)
    match kind.strip():
        case "contains":
            return Check("contains", text=what)
        case "regex":
            _refuse_bad_pattern(what)
            return Check("regex", pattern=what)
        case "exists":
            return Check("exists", path=what)
        case "json":
            path, value = _pair(text, what, "json:data.id=7")
            return Check("json", path=path, equals=_json(value))
        case "header":
            name, value = _pair(text, what, "header:X-Kind=fine")
            return Check("header", name=name, equals=value.strip())
        case "size":
            return Check("size", bounds=_size(what))
        case "latency":
            try:
                return Check("latency", below_ns=units.duration_ns(what, at_least_ns=1))
            except units.UnitError as fault:
                raise UsageError(fault.message, where="--check", hint=f"latency:{fault.example}") from None
        case _:
            if kind in ("status", "code"):
                raise UsageError("a status is no check", where="--check", hint=f"--expect {what}")
            near = nearest(kind, _KINDS)
            hint = _FORMS if near is None else f"did you mean {near}?"
            raise UsageError(f"no kind of check {kind!r}", where="--check", hint=hint)


def _pair(text: str, what: str, example: str) -> tuple[str, str]:
    left, equals, right = what.partition("=")
    if not equals or not left.strip():
        raise UsageError(f"a check without a value to compare with: {text!r}", where="--check", hint=example)
    return left.strip(), right


def _json(text: str) -> Any:
    """Parse a JSON value; anything else is text, so `json:status=OK` needs no quotes."""
    try:
        return json.loads(
            text, parse_constant=lambda constant: constant, parse_int=_whole, parse_float=_fraction
        )
    except ValueError:
        return text


def _whole(digits: str) -> int:
    # Their number first: reading very many digits is quadratic.
    if len(digits) <= 20 and units.fits_64_bits(number := int(digits)):
        return number
    raise UsageError(
        f"{units.shown(digits)} does not fit 64 bits and would be compared rounded",
        where="--check",
        hint=rf"regex:'\b{digits}\b', which compares text",
    )


def _fraction(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        message = f"{units.shown(digits)} is out of the range of a number"
        raise UsageError(message, where="--check", hint=_FORMS)
    return number


def _size(text: str) -> Bounds:
    sign, number = (text[0], text[1:]) if text[0] in "<>" else ("", text)
    try:
        size = float(units.count(number, at_least=0))
    except units.UnitError as fault:
        raise UsageError(fault.message, where="--check", hint="size:<64k, size:>0 or size:120") from None
    return {"<": Bounds(below=size), ">": Bounds(above=size)}.get(sign, Bounds(equals=size))


def _refuse_bad_pattern(pattern: str) -> None:
    from loadlens import engine

    fault = engine.check_pattern(pattern)
    if fault is not None:
        raise UsageError(fault, where="--check", hint="the syntax is that of Rust's regex crate")
