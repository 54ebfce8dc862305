"""Makes the load of a case from its keys: a closed or open workload, steady or shaped, and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from loadlens.model import profile
from loadlens.model.external_load import OURS
from loadlens.model.profile import ReplayText, Shape, Shaped
from loadlens.model.workload import Closed, Connection, Cookies, Open, Replay
from loadlens.study.parse.make_steps import TIMEOUT_NS
from loadlens.study.parse.schema import At, Fields
from loadlens.study.tree import Tree
from loadlens.units import UnitError, duration_text

_SHAPES: Final[tuple[Shape, ...]] = ("stages", "steps", "bursts")


@dataclass(frozen=True, slots=True)
class Load:
    """The workload of a case, and when it ends."""

    workload: Closed | Open
    connection: Connection
    timeout_ns: int = TIMEOUT_NS
    warmup_ns: int | None = None
    duration_ns: int | None = None
    cookies: Cookies = "iteration"
    driver: str | None = None  # none: our engine


def load(fields: Fields, node: Tree, at: At) -> Load:
    """Closed or open, how connections are used, and when it ends."""
    shaped = _shaped(fields, node, at)
    if {"rate", "replay"} & set(node.items) or (shaped is not None and shaped.is_open):
        workload: Closed | Open = _open(fields, shaped, node, at)
    else:
        workload = _closed(fields, shaped, node, at)
    # A load that ends by a number is a fixed amount of work, and one with a shape begins with it: nothing
    # of either is set aside unless asked for. Nor of another tool's load: the tool reports only the whole.
    has_start = "requests" in fields or "iterations" in fields or _has_shape(workload)
    driver = fields.get("driver", OURS)
    warmup_ns = fields.get("warmup", 0 if has_start or driver != OURS else None)
    cookies: Cookies = fields.get("cookies", "iteration")
    if cookies == "keep" and isinstance(workload, Open):
        message = "cookies need users: each arrival of an open load is a new user"
        at.fault_of(node, "cookies", message, "iteration keeps them as long as an arrival lasts")
    return Load(
        workload=workload,
        connection=replace(fields.get("connection", Connection()), pool=fields.get("connections")),
        timeout_ns=fields.get("timeout", TIMEOUT_NS),
        warmup_ns=warmup_ns,
        duration_ns=_duration_ns(fields, workload, warmup_ns, node, at),
        cookies=cookies,
        driver=None if driver == OURS else driver,
    )


def _shaped(fields: Fields, node: Tree, at: At) -> Shaped | None:
    shapes = [shape for shape in _SHAPES if shape in node.items]
    if len(shapes) > 1:  # one of the study, another of its quick profile
        message = f"several shapes of one load: {', '.join(shapes)}"
        at.fault_of(node, shapes[1], message, "one of them, or an experiment of its own")
    if not shapes or shapes[0] not in fields:
        return None
    shape = shapes[0]
    users = None if "users" not in node.items else float(fields.get("users", 1))
    try:
        return profile.shaped(shape, fields[shape], users=users, rate=fields.get("rate"))
    except UnitError as error:
        at.fault_of(node, shape, error.message, error.example)
        return None


def _closed(fields: Fields, shaped: Shaped | None, node: Tree, at: At) -> Closed:
    for key in ("arrivals", "max_in_flight", "overflow"):
        _refuse(key, "closed: its levels are users", node, at, "30s:100/s for a rate")
    levels = None if shaped is None else shaped.profile
    users = fields.get("users", 1) if levels is None else int(levels.peak)
    own = {name: fields[name] for name in ("think", "iterations", "requests", "pace") if name in fields}
    return Closed(users=users, ramp_ns=fields.get("ramp", 0), profile=levels, **own)


def _open(fields: Fields, shaped: Shaped | None, node: Tree, at: At) -> Open:
    if {"users", "rate"} <= set(node.items):
        message = "the load is closed in the study and open in its quick profile"
        at.fault_of(node, "rate", message, "keep to users in quick, or make it an experiment of its own")
    elif "replay" in node.items:
        for key in ("users", "rate", "arrivals"):
            _refuse(key, "a replay: its due times are in the file", node, at)
    for key in ("think", "pace", "iterations"):
        _refuse(key, "open", node, at)
    levels = None if shaped is None else shaped.profile
    rate = None if "replay" in node.items else fields.get("rate", 1.0)
    if levels is None and rate is not None and fields.get("ramp"):
        levels = profile.ramp(rate, fields["ramp"])
    own = ("arrivals", "max_in_flight", "overflow", "requests")
    return Open(
        rate_per_s=rate if levels is None else None,
        profile=levels,
        replay=_replay(fields["replay"], node, at) if "replay" in fields else None,
        **{name: fields[name] for name in own if name in fields},
    )


def _refuse(key: str, what: str, node: Tree, at: At, hint: str | None = None) -> None:
    if key in node.items:
        message = f"{key} means nothing to a load that is {what}"
        at.fault_of(node, key, message, hint or f"remove {key}")


def _replay(text: ReplayText, node: Tree, at: At) -> Replay | None:
    read_due_times = at.case.read_due_times if at.case is not None else None
    if read_due_times is None:
        at.fault_of(node, "replay", "due times cannot be read here")
        return None
    path = Path(at.folder) / text.file
    if path.exists() and not path.is_file():
        at.fault_of(node, "replay", f"{path.name!r} is no regular file", "a copy of it in a file")
        return None
    due_times = read_due_times(str(path), text)
    if isinstance(due_times, Replay):
        return due_times
    for fault in due_times:
        at.fault_of(node, "replay", fault, "due times one a line, rising: 0, 0.25, 1.5")
    return None


def _duration_ns(
    fields: Fields, workload: Closed | Open, warmup_ns: int | None, node: Tree, at: At
) -> int | None:
    """Return the duration of the study, or the rest of the shape after the warm-up."""
    duration_ns: int | None = fields.get("duration")
    levels = workload.profile
    if duration_ns is not None or levels is None or levels.repeats or "ramp" in node.items:
        return duration_ns
    if warmup_ns is not None and warmup_ns < levels.length_ns:
        return levels.length_ns - warmup_ns
    if warmup_ns is None:
        message = "an automatic warm-up and no duration: how much of the shape is measured is not known"
        hint = "warmup: 30s, or a duration"
    else:
        length = duration_text(levels.length_ns / 1e9)
        message = f"the shape ends after {length}, within the warm-up"
        hint = "a shorter warm-up, or a duration"
    if "warmup" in node.items:
        at.fault_of(node, "warmup", message, hint)
    else:
        at.fault(node.line, message, hint)
    return None


def _has_shape(workload: Closed | Open) -> bool:
    """True if the load starts in its own way, other than by a ramp."""
    levels = workload.profile
    if isinstance(workload, Closed):
        return levels is not None
    is_ramp = levels is not None and len(levels.segments) == 1 and not levels.repeats
    return workload.replay is not None or (levels is not None and not is_ramp)
