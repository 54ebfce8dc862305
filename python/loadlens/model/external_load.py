"""Programs of others that may make a load in place of our engine, and what one of them says it cannot do.

Only the names: command lines and parsers of output are in `run/external`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from loadlens.model.workload import Plan

OURS: Final = "loadlens"  # our own engine, as a level of a factor
DRIVERS: Final = ("wrk", "ab", "hey", "oha", "k6", "locust")

Feature = Literal[
    "auth",
    "body",
    "checks",
    "connection",
    "connections",
    "cookies",
    "duration",
    "expect",
    "iterations",
    "method",
    "mix",
    "pauses",
    "probes",
    "rate",
    "requests",
    "secrets",
    "shape",
    "templates",
    "threads",
    "timeout",
    "tls",
    "warmup",
]


@dataclass(frozen=True, slots=True)
class CannotDo:
    """A feature that a plan asks for and a program lacks."""

    feature: Feature
    words: str  # "wrk keeps no rate and no due times"


# Name of a program and a plan -> all that it cannot do of it.
Refusals = Callable[[str, "Plan"], Iterable[CannotDo]]
