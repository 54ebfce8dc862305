"""The trace of a request, by the ids of W3C Trace Context that the engine sent with it.

They follow from what the record holds (docs/reference/record.md), so no row needs a column for them. The same
formula is in `crates/plan/src/program/render.rs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_BITS: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Trace:
    """Ids of a trace and of its first span, hexadecimal."""

    trace_id: str
    span_id: str

    @property
    def header(self) -> str:
        """The value of `traceparent`: version 00, sampled."""
        return f"00-{self.trace_id}-{self.span_id}-01"


def trace_of(seed: int, t0_unix_ns: int, stream: int, seq: int) -> Trace:
    """Return the trace of a request.

    Args:
        seed: Of the plan.
        t0_unix_ns: Start of the trial since 1970.
        stream: Index in the plan.
        seq: Number of the request in its stream.
    """
    of_run = _mixed(_mixed(_mixed(seed) ^ stream) ^ t0_unix_ns)
    high, low = _mixed(of_run ^ seq), _mixed(of_run ^ seq ^ _BITS)
    return Trace(f"{high:016x}{low:016x}", f"{_mixed(high):016x}")


def _mixed(number: int) -> int:
    """One draw of SplitMix64 (Steele, Lea and Flood 2014)."""
    number = (number + 0x9E3779B97F4A7C15) & _BITS
    number = ((number ^ number >> 30) * 0xBF58476D1CE4E5B9) & _BITS
    number = ((number ^ number >> 27) * 0x94D049BB133111EB) & _BITS
    return number ^ number >> 31
