"""Results of `doctor` for this machine, kept for later loads.

It belongs to one machine in one state (`fingerprint`): another kernel, core count or clock makes it void.
It is a cache: what cannot be read is not there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from loadlens.machine import inventory

SCHEMA_VERSION = 1
LARGEST_BYTES = 1 << 16

Limit = Literal["generator", "server", "machine", "others"]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that got answered by a server that does nothing."""

    threads: int  # of the engine
    connections: int
    requests_per_s: float
    busy: float  # share of its core that the busiest engine thread worked
    cpu_per_request_s: float  # of the generator
    limit: Limit  # in the way of more; `machine`: both sides share its cores, `others`: who else runs


@dataclass(frozen=True, slots=True)
class Lateness:
    """Lateness of the generator where only the machine can delay it."""

    rate_per_s: float
    p50_s: float
    p90_s: float
    p99_s: float
    max_s: float
    busy: float


@dataclass(frozen=True, slots=True)
class Timer:
    """Lateness of a 1 ms sleep, and the cost of reading the clock."""

    late_p50_s: float
    late_p99_s: float
    late_max_s: float
    clock_read_s: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Capability of this machine with this version of the generator."""

    fingerprint: str
    made: str  # date and time, UTC, ISO 8601
    one_thread: Ceiling
    all_threads: Ceiling
    lateness: tuple[Lateness, ...]  # by rising rate
    timer: Timer

    def ceiling_of(self, threads: int) -> Ceiling:
        """The ceiling that a load on so many engine threads is compared with."""
        return self.one_thread if threads <= 1 else self.all_threads

    def most_per_s(self, threads: int) -> float:
        """Requests per second at which so many cores do nothing but send; no load goes beyond it."""
        return threads / min(self.one_thread.cpu_per_request_s, self.all_threads.cpu_per_request_s)


def fingerprint() -> str:
    """Names the machine in its present state, and this version of the generator."""
    from loadlens import __version__

    parts = json.dumps([inventory.identity(), __version__], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def place(name: str) -> Path:
    """Return the calibration file in the user's cache folder."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(cache_home) if os.path.isabs(cache_home) else Path.home() / ".cache"
    return root / "loadlens" / f"calibration-{name}.json"


def keep(made: Calibration) -> Path:
    """Write it; an OSError when the cache folder cannot be written."""
    path = place(made.fingerprint)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"schema_version": SCHEMA_VERSION} | asdict(made), indent=1) + "\n")
    fresh.replace(path)
    return path


def of_this_machine() -> Calibration | None:
    """The calibration of this machine as it is; none: there is none, or it is of another state."""
    name = fingerprint()
    try:
        with place(name).open("rb") as file:
            content = json.loads(file.read(LARGEST_BYTES))
        if content["schema_version"] != SCHEMA_VERSION or content["fingerprint"] != name:
            return None
        return _read(content)
    except (OSError, RuntimeError, ValueError, TypeError, KeyError):
        return None


def _read(content: Mapping[str, Any]) -> Calibration:
    return Calibration(
        fingerprint=str(content["fingerprint"]),
        made=str(content["made"]),
        one_thread=Ceiling(**content["one_thread"]),
        all_threads=Ceiling(**content["all_threads"]),
        lateness=tuple(Lateness(**part) for part in content["lateness"]),
        timer=Timer(**content["timer"]),
    )


@dataclass(frozen=True, slots=True)
class Reach:
    """A load as a share of the ceiling of its machine."""

    made: str  # date and time of the calibration
    ceiling_rps: float
    threads: int
    limit: Limit
    share: float


def reach(requests_per_s: float | None, threads: int | None, made: Calibration | None) -> Reach | None:
    """Compare a load with the ceiling of its machine; none without a calibration or without a rate.

    Args:
        requests_per_s: Of the load.
        threads: Of the engine.
        made: The calibration of the machine; none: it has none.
    """
    if made is None or requests_per_s is None or threads is None:
        return None
    ceiling = made.ceiling_of(threads)
    share = requests_per_s / ceiling.requests_per_s
    return Reach(made.made, ceiling.requests_per_s, ceiling.threads, ceiling.limit, share)
