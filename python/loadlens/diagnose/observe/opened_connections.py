"""Connections that programs of the service's machine open themselves, besides those of the load.

The kernel counts them for the whole machine. What has nothing to do with the load opens as many at each
level; a service that opens one for each request opens twice as many for twice the requests.
"""

from __future__ import annotations

from typing import Final

from loadlens.model.facts import Curve, Step

FEWEST: Final = 100  # answers that the last level has more than the first
RISE: Final = 1.5  # times its answers
ALIKE: Final = 0.1  # of a level's connections, from the line between the first level and the last
NEARLY_ONE: Final = 0.9  # for each answer: with fewer, most requests use a connection that stands


def by_load(step: Step) -> int | None:
    """Return how many connections load and probes asked for, over whole trials; None if not counted."""
    watch = step.connections
    return None if watch is None else watch.opened if watch.connects is None else watch.connects


def besides_load(step: Step) -> float | None:
    """Return how many others the machine asked for meanwhile; None if not counted."""
    begun = None if step.kernel is None else step.kernel.begun
    return None if begun is None else max(0.0, begun - (by_load(step) or 0))


def per_request(curve: Curve) -> float | None:
    """Return by how many connections each further request makes more; None if not known, or fewer than one.

    What is opened at each level whatever the load, such as that of checks and scrapes, does not count.
    """
    seen = sorted(
        (step.connections.answered, opened)
        for step in curve.steps
        if step.connections is not None and (opened := besides_load(step)) is not None
    )
    if len(seen) < 2:
        return None
    (fewest, at_fewest), (most, at_most) = seen[0], seen[-1]
    if most - fewest < FEWEST or most < RISE * fewest:
        return None
    each = (at_most - at_fewest) / (most - fewest)
    on_line = all(abs(at_fewest + each * (n - fewest) - opened) <= ALIKE * opened for n, opened in seen)
    return each if on_line and each >= NEARLY_ONE else None


def advice(curve: Curve) -> str:
    """Return a sentence to add to advice on full processors; empty if requests open no connections."""
    each = per_request(curve)
    if each is None:
        return ""
    count = "a new connection" if each < 2 - NEARLY_ONE else f"{each:.0f} new connections"
    return f" Each request opens {count} to another program: keep them open and use them again."
