"""Shared by remedies that are computed without a model: the capacity, and response times of a full service.

The method of every figure says that it is arithmetic, and from what.
"""

from __future__ import annotations

from dataclasses import replace

from loadlens.estimate.interval import Interval
from loadlens.model.finding import Estimate, Prediction
from loadlens.present import words
from loadlens.whatif.queueing import NoModel
from loadlens.whatif.remedies.curve_facts import Ladder
from loadlens.whatif.remedies.predict import more


def capacity_now(ladder: Ladder) -> Estimate:
    """Return the capacity; answers to probes with the load's own requests are part of it.

    Raises:
        NoModel: It is not known.
    """
    if not isinstance(ladder.rate, Estimate):
        raise NoModel(f"the capacity is not known: {ladder.rate.reason}")
    capacity = more(ladder.rate, _of_probes(ladder))
    assert isinstance(capacity, Estimate)
    return capacity


def capacity_then(ladder: Ladder, after: Interval) -> Estimate:
    """Return a computed capacity as a figure."""
    now = capacity_now(ladder)
    return replace(
        now, point=after.point, low=after.low, high=after.high, method=f"arithmetic: {after.method}"
    )


def mean_then(ladder: Ladder, after: Estimate, alone_s: float) -> tuple[Prediction, ...]:
    """Return the mean time at the highest level with a new capacity: users over throughput, less pauses.

    Args:
        ladder: The curve.
        after: The new capacity.
        alone_s: Time of a request on the idle service then; users who no longer fill the service wait another
            time than this, and nothing is predicted.
    """
    users, think, probes = ladder.top.load, ladder.curve.think_s, _of_probes(ladder)

    def mean(rate: float | None) -> float | None:
        return None if rate is None or rate <= probes else max(alone_s, users / (rate - probes) - think)

    point = mean(after.point)
    if point is None or users / (after.point - probes) - think <= alone_s:
        return ()
    figure = replace(
        after,
        metric="response",
        unit="s",
        point=point,
        low=mean(after.high),
        high=mean(after.low),
        method="arithmetic: users over that throughput, less their pauses (Little's law)",
    )
    return (Prediction(f"mean at {words.users(users)}", ladder.top.response.mean, figure),)


def _of_probes(ladder: Ladder) -> float:
    """Return requests per second of probes that send the load's own requests."""
    probe = ladder.probe_load
    return probe.per_s if probe is not None and probe.is_load else 0.0
