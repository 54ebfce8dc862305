"""Curves of services that write, by formula."""

from __future__ import annotations

from typing import Any

from loadlens.model.facts import Curve, StorageWatch
from loadlens.model.finding import Estimate, Figure, NotMeasured
from tests.unit.diagnose.build import curve, estimate, process, step

UNREAD = NotMeasured("storage", "not read")


def share(point: float) -> Estimate:
    return Estimate("s", "share", point, max(0.0, point - 0.01), min(1.0, point + 0.01), 3, 20, "built")


def rate(point: float) -> Estimate:
    return (
        estimate(point, unit="bytes/s") if point else Estimate("r", "bytes/s", 0.0, 0.0, 0.0, 3, 0, "built")
    )


def storage(
    written: float = 0.0,
    *,
    appended: float | None = 0.0,
    stalled: float | None = 0.6,
    waiting: float | None = 0.7,
    busy: float | None = 0.7,
    faults: float | None = 0.0,
    others: float = 0.0,
    blocked: float | None = None,
    asleep: float | None = None,
    read: float = 0.0,
    stored: tuple[int, int] | None = None,
) -> StorageWatch:
    def figure(value: float | None, make: Any) -> Figure:
        return UNREAD if value is None else make(value)

    return StorageWatch(
        written=rate(written),
        read=rate(read),
        appended=figure(appended, rate),
        major_faults=figure(faults, rate),
        device="d",
        device_busy=figure(busy, share),
        device_written=rate(written + others),
        waiting=figure(waiting, share),
        stalled=figure(stalled, share),
        blocked=figure(blocked, share),
        blocked_threads=figure(asleep if asleep is not None else blocked, estimate),
        stored=stored,
    )


def writes(
    each: float = 500_000.0,
    *,
    line: float | None = None,
    cores: float = 0.4,
    rates: tuple[float, ...] = (150.0, 300.0, 300.0),
    trials: int = 3,
    more: tuple[float, ...] = (1.0, 1.0, 1.0),
    label: str = "k=1",
    levels: tuple[tuple[str, str], ...] = (),
    **watch: Any,
) -> Curve:
    """1, 8 and 16 users; a request writes so many bytes, `line` of them at the end of a file."""
    steps = []
    for users, per_s, factor in zip((1, 8, 16), rates, more, strict=True):
        appended = watch.get("appended", (each if line is None else line) * per_s * factor)
        seen = storage(each * per_s * factor, **{**watch, "appended": appended})
        steps.append(
            step(
                users,
                per_s,
                users / per_s,
                trials=trials,
                storage=seen,
                processes=(process(cores),),
                host_cpu=estimate(cores + 0.2, unit="cores"),
            )
        )
    return curve(*steps, think=0.0, label=label, levels=levels)
