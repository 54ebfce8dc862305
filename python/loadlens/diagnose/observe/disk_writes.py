"""Observations of storage: bytes per request over the levels of a curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.measure.curve import completed
from loadlens.model.facts import Curve, Facts, Step, StorageWatch
from loadlens.model.finding import Counter, Estimate, Figure
from loadlens.present import numbers

OWN_SHARE = 0.5  # of what the device wrote: below, others may have kept it busy


@dataclass(frozen=True, slots=True)
class PerRequest:
    """Bytes per request at each level, ascending."""

    each: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the levels."""
        return float(np.mean(self.each))

    @property
    def variation(self) -> float | None:
        """Coefficient of variation over the levels; none for a single one."""
        if len(self.each) < 2 or self.mean <= 0:
            return None
        return float(np.std(self.each, ddof=1)) / self.mean


def known(curve: Curve) -> list[tuple[Step, StorageWatch]]:
    """Return the levels at which storage was watched, ascending."""
    return [(step, step.storage) for step in curve.steps if step.storage is not None]


def per_request(curve: Curve, *names: str) -> PerRequest | None:
    """Return the sum of some rates of storage per request; none where a rate is not known at any level."""
    each = []
    for step, storage in known(curve):
        figures: list[Figure] = [getattr(storage, name) for name in names]
        rates = [figure.point for figure in figures if isinstance(figure, Estimate)]
        if len(rates) == len(figures) and completed(step) > 0:
            each.append(sum(rates) / completed(step))
    return PerRequest(tuple(each)) if each else None


def own_rival(storage: StorageWatch) -> Counter:
    """Weigh other programs that write to the same device: ruled out when the services wrote most of it."""
    name, own, whole = "other programs' writes", storage.written, storage.device_written
    if not isinstance(own, Estimate) or not isinstance(whole, Estimate) or whole.point <= 0:
        return grading.rival(name, "what the device wrote for all is not known", None)
    share = min(1.0, own.point / whole.point)
    text = f"the services wrote {numbers.percent(share)} of {numbers.with_unit(whole.point, 'bytes/s')}"
    return grading.rival(name, text, True if share >= OWN_SHARE else None)


def why_none(facts: Facts) -> str:
    """Return why storage is not known, and what would show it."""
    lack = "what the processes write is not known: /proc/PID/io may be read by their user and by root"
    return grading.unwatched(facts, lack)


def size(value: float) -> str:
    """Return bytes in words."""
    return numbers.with_unit(value, "bytes")
