"""The workload of one case: closed or open, steady or shaped, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadlens.model import profile
from loadlens.model.external_load import OURS
from loadlens.model.profile import Leg, Profile, ReplayText, Shape, Shaped
from loadlens.model.workload import Closed, Connection, Cookies, Open, Replay, Think
from loadlens.study.definition import Later, LoadPart, Place
from loadlens.study.plan.fill import Filler
from loadlens.units import UnitError, duration_text

# What a file of due times holds, or what is wrong with it, line by line.
ReadDueTimes = Callable[[str, ReplayText], Replay | tuple[str, ...]]
_TIMEOUT_NS = 30_000_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """The workload of a case, and when it ends."""

    workload: Closed | Open
    connection: Connection
    timeout_ns: int
    warmup_ns: int | None
    duration_ns: int | None
    cookies: Cookies = "iteration"
    driver: str | None = None  # none: our engine


class Loads:
    """Makes the workload of one case.

    Args:
        fill: Fills the names of the case.
        folder: What files of due times are seen from.
        read_due_times: Reads such a file; none: replays are refused.
    """

    def __init__(self, fill: Filler, folder: str, read_due_times: ReadDueTimes | None) -> None:
        self._fill = fill
        self._folder = Path(folder)
        self._read_due_times = read_due_times

    def load(self, part: LoadPart) -> Load:
        """Closed or open, how connections are used, and when it ends."""
        fill = self._fill
        reuse = fill.value(part.connection, Connection())
        requests = fill.optional(part.requests)
        shaped = self._shaped(part)
        if part.rate is not None or part.replay is not None or (shaped is not None and shaped.is_open):
            workload: Closed | Open = self._open(part, shaped, requests)
        else:
            workload = self._closed(part, shaped, requests)
        # A load that ends by a number is a fixed amount of work, and one with a shape begins with it: nothing
        # of either is set aside unless asked for.
        has_start = requests is not None or part.iterations is not None or _has_shape(workload)
        driver = fill.value(part.driver, OURS)
        # Nor does another tool's load: the tool reports only the whole.
        is_automatic = part.warmup is None and not has_start and driver == OURS
        warmup_ns = None if is_automatic else fill.value(part.warmup, None) if part.warmup is not None else 0
        return Load(
            workload=workload,
            connection=Connection(reuse.reuse, reuse.requests, fill.optional(part.connections)),
            timeout_ns=fill.value(part.timeout, _TIMEOUT_NS),
            warmup_ns=warmup_ns,
            duration_ns=self._duration_ns(part, workload, warmup_ns),
            cookies=self._cookies(part, workload),
            driver=None if driver == OURS else driver,
        )

    def _cookies(self, part: LoadPart, workload: Closed | Open) -> Cookies:
        cookies: Cookies = self._fill.value(part.cookies, "iteration")
        if part.cookies is not None and cookies == "keep" and isinstance(workload, Open):
            message = "cookies need users: each arrival of an open load is a new user"
            self._fill.fault(message, part.cookies.place, "iteration keeps them as long as an arrival lasts")
        return cookies

    def _shaped(self, part: LoadPart) -> Shaped | None:
        written: list[tuple[Shape, Later[tuple[Leg, ...]] | None]] = [
            ("stages", part.stages),
            ("steps", part.steps),
            ("bursts", part.bursts),
        ]
        shapes = [(shape, later) for shape, later in written if later is not None]
        if not shapes:
            return None
        if len(shapes) > 1:  # one of the study, another of its quick profile
            self._fault_of_two(shapes[1][1].place, [shape for shape, _ in shapes])
        shape, later = shapes[0]
        legs = self._fill.value(later, ())
        if not legs:
            return None  # a fault was noted
        users = None if part.users is None else float(self._fill.value(part.users, 1))
        rate = self._fill.optional(part.rate)
        try:
            return profile.shaped(shape, legs, users=users, rate=rate)
        except UnitError as error:
            self._fill.fault(error.message, later.place, error.example)
            return None

    def _fault_of_two(self, place: Place, names: list[str]) -> None:
        message = f"several shapes of one load: {', '.join(names)}"
        self._fill.fault(message, place, "one of them, or an experiment of its own")

    def _closed(self, part: LoadPart, shaped: Shaped | None, requests: int | None) -> Closed:
        fill = self._fill
        for key in ("arrivals", "max_in_flight", "overflow"):
            self._refuse(getattr(part, key), key, "closed: its levels are users", "30s:100/s for a rate")
        levels = None if shaped is None else shaped.profile
        return Closed(
            users=fill.value(part.users, 1) if levels is None else int(levels.peak),
            think=fill.value(part.think, Think()),
            ramp_ns=fill.value(part.ramp, 0),
            iterations=fill.optional(part.iterations),
            requests=requests,
            pace=fill.optional(part.pace),
            profile=levels,
        )

    def _open(self, part: LoadPart, shaped: Shaped | None, requests: int | None) -> Open:
        fill = self._fill
        if part.users is not None and part.rate is not None:
            message = "the load is closed in the study and open in its quick profile"
            fill.fault(
                message, part.rate.place, "keep to users in quick, or make it an experiment of its own"
            )
        elif part.replay is not None:
            for key in ("users", "rate"):
                self._refuse(getattr(part, key), key, "a replay: its due times are in the file")
            self._refuse(part.arrivals, "arrivals", "a replay: its due times are in the file")
        for key in ("think", "pace", "iterations"):
            self._refuse(getattr(part, key), key, "open")
        replay = None if part.replay is None else self._replay(part.replay)
        levels = None if shaped is None else shaped.profile
        rate = None if part.replay is not None else fill.value(part.rate, 1.0)
        ramp_ns = fill.value(part.ramp, 0)
        if levels is None and rate is not None and ramp_ns:
            levels = profile.ramp(rate, ramp_ns)
        return Open(
            rate_per_s=rate if levels is None else None,
            arrivals=fill.value(part.arrivals, "constant"),
            max_in_flight=fill.value(part.max_in_flight, 1000),
            overflow=fill.value(part.overflow, "queue"),
            requests=requests,
            profile=levels,
            replay=replay,
        )

    def _refuse(self, later: Later[object] | None, key: str, what: str, hint: str | None = None) -> None:
        if later is not None:
            message = f"{key} means nothing to a load that is {what}"
            self._fill.fault(message, later.place, hint or f"remove {key}")

    def _replay(self, later: Later[ReplayText]) -> Replay | None:
        text = self._fill.value(later, ReplayText(""))
        if not text.file:
            return None  # a fault was noted
        if self._read_due_times is None:
            self._fill.fault("due times cannot be read here", later.place)
            return None
        due_times = self._read_due_times(str(self._folder / text.file), text)
        if isinstance(due_times, Replay):
            return due_times
        for fault in due_times:
            self._fill.fault(fault, later.place, "due times one a line, rising: 0, 0.25, 1.5")
        return None

    def _duration_ns(self, part: LoadPart, workload: Closed | Open, warmup_ns: int | None) -> int | None:
        """Return the duration of the study, or the rest of the shape after the warm-up."""
        duration_ns = self._fill.optional(part.duration)
        levels = workload.profile
        if duration_ns is not None or levels is None or levels.repeats or part.ramp is not None:
            return duration_ns
        place = part.warmup.place if part.warmup is not None else part.place
        if warmup_ns is None:
            message = "an automatic warm-up and no duration: how much of the shape is measured is not known"
            self._fill.fault(message, place, "warmup: 30s, or a duration")
            return None
        if warmup_ns >= levels.length_ns:
            length = duration_text(levels.length_ns / 1e9)
            self._fill.fault(
                f"the shape ends after {length}, within the warm-up",
                place,
                "a shorter warm-up, or a duration",
            )
            return None
        return levels.length_ns - warmup_ns


def _has_shape(workload: Closed | Open) -> bool:
    """True if the load starts in its own way, other than by a ramp."""
    levels: Profile | None = workload.profile
    is_ramp = (
        isinstance(workload, Open) and levels is not None and len(levels.segments) == 1 and not levels.repeats
    )
    return (levels is not None and not is_ramp) or (
        isinstance(workload, Open) and workload.replay is not None
    )
