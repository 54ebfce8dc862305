"""Locks and connections of a PostgreSQL server that a trial's requests hold, by the titles of its processes.

A process that waits for a lock waits for one that is at work or idle in its transaction. Processes that are
connected are the places of a pool, and those that are not idle are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.measure.services.gauges import GaugePlace, Reading
from loadlens.model.readings import BackendsMetrics, PostgresMetrics
from loadlens.signals.read.trial_series import Readings, Series, counted_at, level

WAITING: Final = "waiting"  # states, as the monitor names them
RESTING: Final = "idle in transaction"


def read(readings: Readings, begin: float, end: float) -> Iterator[GaugePlace]:
    """Yield the locks and the connections of each server in the measured part [begin, end], s since t0.

    A server that was asked by SQL said more of its locks.
    """
    asked = {series.labels.service for series in readings.of(PostgresMetrics.connections)}
    for whole in readings.of(BackendsMetrics.backends_in_all):
        service, program = whole.labels.service, whole.labels.process
        name = service if service == program else f"{service} {program}"
        part = whole.between(begin, end)
        if not part.values.any():
            continue
        own = readings.of(BackendsMetrics.backends, service=service, process=program)

        def count(*states: str, of: Sequence[Series] = own, at: Series = part) -> Floats:
            return counted_at(at, [series for series in of if series.labels.state in states]).values

        active, resting, waiting = count("active"), count(RESTING), count(WAITING)
        rest = Reading(f"{name}: {RESTING}", level(resting), float(resting.max()))
        if service not in asked:
            command = _most(own, WAITING, part)
            yield GaugePlace(
                (service, program, WAITING),
                "lock",
                {
                    "held": _reading(f"{name}: at work or {RESTING}", active + resting),
                    "waiting": _reading(f"{name}: {command or 'a command'} waiting", waiting),
                },
                held_is_at_most=True,
                seen_in="titles",
                service=service,
                program=program,
                command=command,
                resting=rest,
            )
        yield GaugePlace(
            (service, program, "connections"),
            "pool",
            {
                "held": _reading(f"{name}: connections at work", active + resting + waiting),
                "present": _reading(f"{name}: connections", part.values),
            },
            seen_in="titles",
            service=service,
            program=program,
            command=_most(own, "active", part),
            resting=rest,
        )


def _reading(name: str, values: Floats) -> Reading:
    return Reading(name, level(values), float(values.max()))


def _most(own: Sequence[Series], state: str, part: Series) -> str:
    """Return the command that most processes in a state execute; empty if none is in it."""
    counts: dict[str, float] = {}
    for series in own:
        if series.labels.state == state:
            seen = float(np.sum(counted_at(part, [series]).values))
            counts[series.labels.kind] = counts.get(series.labels.kind, 0.0) + seen
    return max((command for command in counts if counts[command]), key=lambda each: counts[each], default="")
