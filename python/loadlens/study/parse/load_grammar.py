"""The grammar of a load in single values: pauses, stages, steps, bursts, replays.

One grammar for the study file and the command line: each function takes what stands there, text or what YAML
made of it, and raises `UnitError` with an example.
"""

from __future__ import annotations

import re
from typing import Any, Final

from loadlens import units
from loadlens.errors import nearest
from loadlens.model.profile import Leg, ReplayText
from loadlens.model.workload import Think
from loadlens.units import UnitError, shown

MOST_LEGS: Final = 10_000
MOST_USERS: Final = 1_000_000
SHORTEST_PACE_NS: Final = 1_000_000

_PAUSE_EXAMPLE: Final = "150ms, uniform:100ms,300ms or exponential:150ms"
_PAUSE: Final = re.compile(r"\s*([A-Za-z_-]+)\s*(?:[: ]\s*(.*))?")
_BOUNDS: Final = {"uniform": ("shortest", "longest"), "exponential": ("mean",)}
_FORMS: Final = {"uniform": "uniform:100ms,300ms", "exponential": "exponential:150ms"}
# What people write for a law that has another name here.
_ALSO_CALLED: Final = {
    "exp": "exponential",
    "expo": "exponential",
    "poisson": "exponential",
    "unif": "uniform",
}
_FIXED: Final = ("fixed", "constant", "const")
_LEGS_EXAMPLE: Final = {
    "stages": "30s:100, 1m:100, 30s:0",
    "steps": "30s:100/s, 30s:200/s",
    "bursts": "1s:500/s, 9s:20/s",
}
_REPLAY_EXAMPLE: Final = "times.txt, or access.csv, column=time, speed=2, from=first"


# ------------------------------------------------------------------------------------------------- pauses


def think(value: Any) -> Think:
    """A pause: fixed `150ms`, `uniform:100ms,300ms` or `exponential:150ms`; in YAML also as a mapping."""
    return _pause(value, "think time")


def pace(value: Any) -> Think:
    """The time from one iteration to the next: the forms of a pause, 1 ms or more."""
    law = _pause(value, "pace")
    if law.mean_s * 1e9 < SHORTEST_PACE_NS:
        raise UnitError(f"a pace is 1 ms or more, got {shown(value)}", "1s; for as fast as possible, no pace")
    return law


def _pause(value: Any, what: str) -> Think:
    law, bounds = _law_and_bounds(value, what)
    if law is None:
        return Think("fixed", ns=ns) if (ns := units.duration_ns(value)) else Think()
    if law == "exponential":
        return Think("exponential", mean_ns=units.duration_ns(bounds[0], at_least_ns=1))
    low, high = (units.duration_ns(bound) for bound in bounds)
    if low > high:
        raise UnitError(f"uniform {what} from {shown(bounds[0])} down to a shorter one", _PAUSE_EXAMPLE)
    return Think("uniform", low_ns=low, high_ns=high)


def _law_and_bounds(value: Any, what: str) -> tuple[str | None, list[Any]]:
    """The law of a pause and as many bounds as it has; no law where the value is a time by itself."""
    if isinstance(value, list):
        raise UnitError(f"wanted one {what}, got a list", _PAUSE_EXAMPLE)
    if isinstance(value, dict):
        if len(value) != 1 or isinstance(next(iter(value.values())), dict):
            raise UnitError(f"not a {what}", _PAUSE_EXAMPLE)
        law, given = next(iter(value.items()))
        bounds = given if isinstance(given, list) else [given]
    elif isinstance(value, str) and (match := _PAUSE.fullmatch(value)):
        law, bounds = match[1], [part.strip() for part in (match[2] or "").split(",")]
    else:
        return None, [value]
    if law not in _BOUNDS:
        raise _unknown_law(str(law), bounds, what)
    wanted = _BOUNDS[law]
    for place, name in enumerate(wanted):
        if place >= len(bounds) or bounds[place] in (None, ""):
            raise UnitError(f"{law} {what} without its {name}", _FORMS[law])
    if len(bounds) > len(wanted):
        raise UnitError(f"{law} {what} with {len(bounds)} times: it has {len(wanted)}", _FORMS[law])
    return law, bounds


def _unknown_law(written: str, bounds: list[Any], what: str) -> UnitError:
    """The fault of a law that is not nearest_law, with the nearest one written out."""
    message = f"{shown(written)} is no law of a {what}: a time alone, uniform and exponential are"
    times = ",".join(str(bound) for bound in bounds if bound not in (None, ""))
    if written.lower() in _FIXED:
        return UnitError(message, times or "150ms")
    nearest_law = _ALSO_CALLED.get(written.lower()) or nearest(written, tuple(_BOUNDS))
    if nearest_law is None:
        return UnitError(message, _PAUSE_EXAMPLE)
    fits = len(times.split(",")) == len(_BOUNDS[nearest_law]) and times
    return UnitError(message, f"did you mean {nearest_law}:{times}?" if fits else _FORMS[nearest_law])


# ---------------------------------------------------------------------------------------------------- legs


def stages(value: Any) -> tuple[Leg, ...]:
    """Linear ramps, each to its level: `30s:100, 1m:100, 30s:0`. A stage of 0 s is a jump.

    In a list each may also be a mapping, as k6 has it: `{duration: 30s, target: 100}`.
    """
    value = [_of_mapping(part) for part in value] if isinstance(value, list) else value
    return tuple(_leg(part, "stages") for part in _parts(value, "stages"))


def steps(value: Any) -> tuple[Leg, ...]:
    """Levels that are held, one after the other: `30s:100/s, 30s:200/s`."""
    return _held(value, "steps")


def bursts(value: Any) -> tuple[Leg, ...]:
    """Levels that are held in turn, again and again: `1s:500/s, 9s:20/s`; `9s` alone is a silence."""
    legs = _held(value, "bursts")
    if len(legs) < 2:
        raise UnitError("bursts have something between them", _LEGS_EXAMPLE["bursts"])
    return legs


def _held(value: Any, shape: str) -> tuple[Leg, ...]:
    legs = tuple(_leg(part, shape) for part in _parts(value, shape))
    if any(leg.ns == 0 for leg in legs):
        raise UnitError(f"{shape} last longer than 0 s", _LEGS_EXAMPLE[shape])
    return legs


def _parts(value: Any, shape: str) -> list[str]:
    """The texts between commas; a YAML list holds one each."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, (str, int, float)) and not isinstance(text, bool) for text in texts):
        raise UnitError(f"wanted {shape}, got {shown(value)}", _LEGS_EXAMPLE[shape])
    parts = [part.strip() for text in texts for part in str(text).split(",")]
    if not 1 <= len(parts) <= MOST_LEGS:
        raise UnitError(f"{len(parts)} {shape}, from 1 to {MOST_LEGS:,}", _LEGS_EXAMPLE[shape])
    return parts


def _of_mapping(part: Any) -> Any:
    """Return `30s:100` for `{duration: 30s, target: 100}`, and anything else as it is."""
    is_stage = isinstance(part, dict) and part.keys() == {"duration", "target"}
    return f"{part['duration']}:{part['target']}" if is_stage else part


def _leg(text: str, shape: str) -> Leg:
    length, colon, level = (part.strip() for part in text.partition(":"))
    if not text:
        raise UnitError(f"nothing between two commas of {shape}, or behind the last", _LEGS_EXAMPLE[shape])
    if not length:
        raise UnitError(f"{shown(text)} has no time before its level", f"30s:{level or 100}")
    if not colon and shape == "bursts":
        level = "0"
    elif not level:
        number = length if _is_duration(length) else "30s"
        hint = f"{number}:100 for 100 users, {number}:100/s for a rate, {number}:0 for none"
        raise UnitError(f"{shown(text)} has no level behind its time", hint)
    elif not _is_duration(length) and _is_duration(level):
        raise UnitError(f"{shown(text)} has its level before its time", f"{level}:{length}")
    elif not level[0].isdigit() and not level.startswith((".", "-")):
        raise UnitError(f"{shown(level)} is no level: a number of users, or a rate", f"{length}:100/s")
    ns = units.duration_ns(length)
    if "/" in level:
        number, _, unit = level.partition("/")
        if number.strip() != "0":
            return Leg(ns, units.rate_per_s(level), is_rate=True)
        units.rate_per_s(f"1/{unit}")  # its unit is judged all the same
        return Leg(ns, 0.0, is_rate=True)
    return Leg(ns, 0.0 if level == "0" else float(units.rate_per_s(level)), is_rate=None)


def _is_duration(text: str) -> bool:
    """True for a time with a unit; a bare number may be a level as well."""
    try:
        units.duration_ns(text)
    except UnitError:
        return False
    return not re.fullmatch(r"[0-9.]+", text)


# -------------------------------------------------------------------------------------------------- replay


def replay(value: Any) -> ReplayText:
    """A file of due times: `times.txt`, or `access.csv, column=time, speed=2, from=first`."""
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UnitError(f"wanted a file of due times, got {shown(value)}", _REPLAY_EXAMPLE)
    file, *options = (part.strip() for text in texts for part in text.split(","))
    if not file:
        raise UnitError("a replay without a file", _REPLAY_EXAMPLE)
    read = ReplayText(file)
    seen = set()
    for option in options:
        name, _, given = (part.strip() for part in option.partition("="))
        if name not in ("column", "speed", "from") or not given or name in seen:
            raise UnitError(f"{shown(option)} says nothing about a replay", _REPLAY_EXAMPLE)
        seen.add(name)
        if name == "column":
            if given == "0":
                raise UnitError("columns are counted from 1, got 0", _REPLAY_EXAMPLE)
            read = ReplayText(read.file, given, read.speed, read.from_first)
        elif name == "speed":
            read = ReplayText(read.file, read.column, _speed(given), read.from_first)
        elif given == "first":
            read = ReplayText(read.file, read.column, read.speed, from_first=True)
        else:
            raise UnitError(f"a replay starts at 0 or from=first, got {shown(given)}", _REPLAY_EXAMPLE)
    return read


def _speed(text: str) -> float:
    number = text.removesuffix("x")
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", number) or float(number) == 0:
        raise UnitError(f"a speed is a number above 0, got {shown(text)}", "speed=2 for twice as fast")
    return float(number)
