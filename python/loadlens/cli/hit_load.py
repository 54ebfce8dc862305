"""Turns the flags of `hit` into a load: closed or open, steady or shaped, and its length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from loadlens import units
from loadlens.cli.hit_options import HitOptions
from loadlens.cli.options import choice, refuse_stream
from loadlens.errors import UsageError
from loadlens.model.profile import Profile, Shape, Shaped, ramp, shaped
from loadlens.model.workload import Closed, Open, Replay, Think
from loadlens.units import UnitError, duration_text

Value = TypeVar("Value")

DEFAULT_CONNECTIONS = 10
DEFAULT_DURATION = "10s"
DEFAULT_IN_FLIGHT = 1000
MORE_DUE_TIME_FAULTS = 3  # shown after the first
SHAPES: Final[tuple[Shape, ...]] = ("stages", "steps", "bursts")
CONFLICTS: Final = (
    ("think", "pace", "think time and pace both decide when the next request starts"),
    ("rate", "replay", "--replay takes its due times from the file, not from a rate"),
    ("arrivals", "replay", "--replay takes its due times from the file, not from a law of arrivals"),
)


@dataclass(frozen=True, slots=True)
class HitLoad:
    """A workload and the length of its measured part."""

    workload: Closed | Open
    duration_ns: int | None


def quantity(parse: Callable[[str], Value], text: str, flag: str) -> Value:
    """Parse the text of a flag, or raise a usage error that names the flag."""
    try:
        return parse(text)
    except UnitError as fault:
        raise UsageError(fault.message, where=flag, hint=fault.example) from None


def load_of(flags: HitOptions, warmup_ns: int, *, feed_ends: bool = False) -> HitLoad:
    """The load.

    Args:
        flags: What was written.
        warmup_ns: What comes before the measured part.
        feed_ends: A feed ends the load once its records are used up.

    Raises:
        UsageError: A flag that cannot be read, or flags that do not go together.
    """
    _exclude(flags)
    requests = _count(flags.requests, "--requests", "request")
    levels = _shaped(flags)
    is_open = flags.rate is not None or flags.replay is not None or (levels is not None and levels.is_open)
    workload = _open(flags, levels, requests) if is_open else _closed(flags, levels, requests)
    return HitLoad(workload, _duration_ns(flags, workload, warmup_ns, feed_ends))


def load_keys(flags: HitOptions, load: HitLoad) -> dict[str, object]:
    """Return the load as the keys that a study has for it."""
    workload = load.workload
    keys: dict[str, object] = {}
    if isinstance(workload, Closed):
        if workload.profile is None or flags.connections is not None:
            keys["users"] = _count(flags.connections, "--connections", "connection") or DEFAULT_CONNECTIONS
        keys |= {name: _spread(text) for name in ("think", "pace") if (text := getattr(flags, name))}
    else:
        keys |= {name: text for name in ("rate", "arrivals", "overflow") if (text := getattr(flags, name))}
        keys["max_in_flight"] = workload.max_in_flight
    keys |= {name: text.split(",") for name in SHAPES if (text := getattr(flags, name))}
    if flags.replay is not None:
        file, *rest = flags.replay.split(",")
        keys["replay"] = [str(Path(file).resolve()), *rest]
    if flags.ramp is not None:
        keys["ramp"] = flags.ramp
    if workload.requests is not None:
        keys["requests"] = workload.requests
    if load.duration_ns is not None:
        keys["duration"] = f"{load.duration_ns / 1e9:.10g}s"
    keys |= {"warmup": flags.warmup, "timeout": flags.timeout, "connection": flags.connection}
    if flags.cookies:
        keys["cookies"] = "keep"
    if flags.driver is not None:
        keys["driver"] = flags.driver
    return keys


def _spread(text: str) -> object:
    """Write `uniform:LOW,HIGH` and `exponential:MEAN` as a study does."""
    law, colon, values = text.partition(":")
    if not colon:
        return text
    return {law: values.split(",") if law == "uniform" else values}


def _exclude(flags: HitOptions) -> None:
    shapes = [f"--{name}" for name in ("ramp", *SHAPES, "replay") if getattr(flags, name) is not None]
    if len(shapes) > 1:
        raise UsageError(
            "more than one shape for a load", where=" and ".join(shapes), hint="keep one of them"
        )
    for first, second, why in CONFLICTS:
        if getattr(flags, first) is not None and getattr(flags, second) is not None:
            raise UsageError(why, where=f"--{first} and --{second}", hint="one of the two")


def _count(text: str | None, flag: str, noun: str) -> int | None:
    if text is None:
        return None
    number = quantity(units.count, text, flag)
    if number < 1:
        raise UsageError(f"needs at least 1 {noun}, got {number}", where=flag, hint=f"{flag} 1")
    return number


def _shaped(flags: HitOptions) -> Shaped | None:
    shape = next((name for name in SHAPES if getattr(flags, name) is not None), None)
    if shape is None:
        return None
    from loadlens.study.parse import load_grammar

    text: str = getattr(flags, shape)
    parse = {"stages": load_grammar.stages, "steps": load_grammar.steps, "bursts": load_grammar.bursts}[shape]
    legs = quantity(parse, text, f"--{shape}")
    rate = None if flags.rate is None else quantity(units.rate_per_s, flags.rate, "--rate")
    is_open = rate is not None or any(leg.is_rate for leg in legs)
    # With rates, -c bounds what is under way, as it does with --rate.
    users = None if is_open else _count(flags.connections, "--connections", "connection")
    return quantity(lambda _: shaped(shape, legs, users=users, rate=rate), text, f"--{shape}")


def _closed(flags: HitOptions, levels: Shaped | None, requests: int | None) -> Closed:
    for name in ("arrivals", "overflow"):
        if getattr(flags, name) is not None:
            raise UsageError(
                "needs a load with --rate",
                where=f"--{name}",
                hint=f"--rate 100 --{name} ...",
            )
    users = _count(flags.connections, "--connections", "connection") or DEFAULT_CONNECTIONS
    return Closed(
        users=users if levels is None else int(levels.profile.peak),
        think=_pause(flags.think, "think") or Think(),
        pace=_pause(flags.pace, "pace"),
        ramp_ns=0 if flags.ramp is None else quantity(units.duration_ns, flags.ramp, "--ramp"),
        requests=requests,
        profile=None if levels is None else levels.profile,
    )


def _pause(text: str | None, name: str) -> Think | None:
    if text is None:
        return None
    from loadlens.study.parse import load_grammar

    return quantity({"think": load_grammar.think, "pace": load_grammar.pace}[name], text, f"--{name}")


def _open(flags: HitOptions, levels: Shaped | None, requests: int | None) -> Open:
    for name in ("think", "pace"):
        if getattr(flags, name) is not None:
            raise UsageError(
                f"--{name} needs users: --rate sends each request as a new user",
                where=f"--{name} and --rate",
                hint="one of the two",
            )
    arrivals = choice(flags.arrivals or "constant", ("constant", "poisson"), "--arrivals", "law")
    overflow = choice(flags.overflow or "queue", ("queue", "drop"), "--overflow", "overflow")
    rate = None if flags.rate is None else quantity(units.rate_per_s, flags.rate, "--rate")
    profile = None if levels is None else levels.profile
    ramp_ns = 0 if flags.ramp is None else quantity(units.duration_ns, flags.ramp, "--ramp")
    if rate is not None and ramp_ns:
        profile = ramp(rate, ramp_ns)
    return Open(
        rate_per_s=rate if profile is None else None,
        arrivals="poisson" if arrivals == "poisson" else "constant",
        max_in_flight=_count(flags.connections, "--connections", "connection") or DEFAULT_IN_FLIGHT,
        overflow="drop" if overflow == "drop" else "queue",
        requests=requests,
        profile=profile,
        replay=None if flags.replay is None else _replay(flags.replay),
    )


def _replay(text: str) -> Replay:
    from loadlens import engine
    from loadlens.study.parse import load_grammar

    written = quantity(load_grammar.replay, text, "--replay")
    refuse_stream(written.file, "--replay")
    due_times = engine.read_due_times(written.file, written)
    if isinstance(due_times, Replay):
        return due_times
    first, *others = due_times
    more = "".join(f"; {fault}" for fault in others[:MORE_DUE_TIME_FAULTS])
    raise UsageError(first + more, where="--replay", hint="one due time per line, ascending: 0, 0.25, 1.5")


def _duration_ns(flags: HitOptions, workload: Closed | Open, warmup_ns: int, feed_ends: bool) -> int | None:
    """Return the given duration; else the rest of the shape, no limit if requests end it, or 10 s."""
    if flags.duration is not None:
        return quantity(_duration, flags.duration, "--duration")
    usual = units.duration_ns(DEFAULT_DURATION)
    levels = workload.profile
    has_end = feed_ends or flags.requests is not None
    if levels is not None and levels.repeats:
        # Whole cycles, so that what is asked is asked as often as planned.
        return None if has_end else -(-usual // levels.length_ns) * levels.length_ns
    if levels is not None and flags.ramp is None:
        return _rest(levels, warmup_ns)
    if has_end or (isinstance(workload, Open) and workload.replay is not None):
        return None
    return usual


def _duration(text: str) -> int:
    """Parse a duration; what is clearly a body is named as one."""
    try:
        return units.duration_ns(text, at_least_ns=1)
    except UnitError as fault:
        if text[:1] in ("{", "[", "@") or "=" in text:
            raise UnitError(fault.message, "curl and hey call a body -d; here: -b TEXT") from None
        raise


def _rest(levels: Profile, warmup_ns: int) -> int:
    if warmup_ns >= levels.length_ns:
        raise UsageError(
            f"the load ends after {duration_text(levels.length_ns / 1e9)}, within the warm-up",
            where="--warmup",
            hint="a shorter warm-up, or --duration",
        )
    return levels.length_ns - warmup_ns
