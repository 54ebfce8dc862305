"""What several remedies need that are reckoned without a model: the capacity, and what users of a full
service then wait.

Every figure says in its method that it is arithmetic, and from what.
"""

from __future__ import annotations

from dataclasses import replace

from loadlens.estimate.interval import Interval
from loadlens.model.finding import Estimate, Prediction
from loadlens.present import words
from loadlens.whatif.remedies.curve_facts import Known
from loadlens.whatif.remedies.predict import more
from loadlens.whatif.remedies.service_model import NoModel


def capacity_now(known: Known) -> Estimate:
    """The most per second; what probes got that ask what the load asks belongs to it.

    Raises:
        NoModel: It is not known.
    """
    if not isinstance(known.rate, Estimate):
        raise NoModel(f"the capacity is not known: {known.rate.reason}")
    found = more(known.rate, _beside(known))
    assert isinstance(found, Estimate)
    return found


def capacity_then(known: Known, after: Interval) -> Estimate:
    """A reckoned capacity as a figure."""
    now = capacity_now(known)
    return replace(
        now, point=after.point, low=after.low, high=after.high, method=f"arithmetic: {after.method}"
    )


def mean_then(known: Known, after: Estimate, alone_s: float) -> tuple[Prediction, ...]:
    """What users at the highest level wait when more is done: users over throughput, less their pauses.

    Args:
        known: The curve.
        after: The capacity then.
        alone_s: What a request takes then when nobody is there; users who no longer fill the service wait
            another time than this, and nothing is told of it.
    """
    users, think, beside = known.top.load, known.curve.think_s, _beside(known)

    def mean(rate: float | None) -> float | None:
        return None if rate is None or rate <= beside else max(alone_s, users / (rate - beside) - think)

    point = mean(after.point)
    if point is None or users / (after.point - beside) - think <= alone_s:
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
    return (Prediction(f"mean at {words.users(users)}", known.top.response.mean, figure),)


def _beside(known: Known) -> float:
    """Requests per second of probes that ask what the load asks."""
    return known.beside.per_s if known.beside is not None and known.beside.is_load else 0.0
