"""Effects of ending standstills, by hand and by a simulated lock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate, Finding, Grade, Prediction
from loadlens.model.shapes import SparedRequests, StandstillWatch, Took
from tests.unit.diagnose import build
from tests.unit.whatif.ladders import (
    after,
    caused_by,
    claiming,
    curve_of,
    dropped,
    predictions_of,
    why_not,
)

HOLD, SHARE = 0.006, 0.15  # a lock of 6 ms; 300 ms of every 2 s


def stopped(users: int) -> tuple[float, float]:
    """A lock in a process that stands still: 1 / hold between standstills, and all wait for it."""
    rate = (1 - SHARE) / HOLD
    return rate, users / rate


def pausing(rule: str = "pause.periodic", *, low: float = 0.147, high: float = 0.153) -> Finding:
    return claiming(caused_by(rule, pause__length=0.3), "pause.share", SHARE, low, high)


def spared(mean: float, *, met: int, requests: int = 300) -> SparedRequests:
    return SparedRequests(requests, met, Took(build.estimate(mean), build.estimate(2 * mean)))


def names(predictions: Sequence[Prediction]) -> list[str]:
    return [prediction.what for prediction in predictions]


def test_a_full_service_does_as_much_more_as_it_stood_still() -> None:
    effects = predictions_of(curve_of(stopped), pausing())

    capacity = after(effects, "no standstills", "capacity")
    assert capacity.point == pytest.approx(1 / HOLD)
    assert capacity.unit == "1/s"
    assert capacity.method.startswith("arithmetic: ")
    assert after(effects, "no standstills", "mean at 64 users").point == pytest.approx(64 * HOLD)


def test_its_interval_is_that_of_the_share_and_of_the_capacity() -> None:
    """Other waits remain: at the lower end 300 ms are shorter by the 7.06 ms of a lone request."""
    now = curve_of(stopped)
    (now_predicted, *_) = predictions_of(now, pausing())
    before = now_predicted.before
    assert isinstance(before, Estimate)
    assert before.low is not None
    assert before.high is not None

    effects = after(predictions_of(now, pausing()), "", "capacity")

    lost = 0.147 * (1 - HOLD / (1 - SHARE) / 0.3)
    below = math.hypot(math.log(before.point / before.low), math.log((1 - lost) / (1 - SHARE)))
    above = math.hypot(math.log(before.high / before.point), math.log((1 - SHARE) / (1 - 0.153)))
    assert effects.low == pytest.approx(math.exp(-below) / HOLD)
    assert effects.high == pytest.approx(math.exp(above) / HOLD)


def test_a_lock_simulated_with_stops_at_random_does_what_was_predicted_without() -> None:
    """Stops of 0.1 to 0.5 s at exponential distances; a holder goes on when they end."""
    rng = np.random.default_rng(3)
    begins = np.cumsum(rng.exponential(2.0, 400))
    lengths = rng.uniform(0.1, 0.5, begins.size)
    at, answered, stopped_s = 0.0, 0, 0.0
    for begin, length in zip(begins, lengths, strict=True):
        while at + HOLD <= begin:
            at, answered = at + HOLD, answered + 1
        at, stopped_s = at + length, stopped_s + length
    rate, share = answered / at, stopped_s / at
    cause = caused_by("pause.aperiodic", pause__length=0.3)
    finding = claiming(cause, "pause.share", share, 0.9 * share, 1.1 * share)

    effects = after(predictions_of(curve_of(lambda n: (rate, n / rate)), finding), "", "capacity")

    assert effects.point == pytest.approx(1 / HOLD, rel=0.01)


def watched(step: Step, **more: object) -> Step:
    return replace(step, standstills=(StandstillWatch("7", 0.0, 20.0, 0.07, 0.005, 0.005),), **more)  # type: ignore[arg-type]


def idle(requests: SparedRequests) -> Curve:
    """No request waits at any level; at the lowest the requests that met a standstill are recorded."""
    first, *rest = curve_of(lambda n: (n / 0.01, 0.01)).steps
    return replace(curve_of(stopped), steps=(watched(first, spared=requests), *map(watched, rest)))


def test_a_service_that_was_not_filled_gets_no_throughput() -> None:
    effects = predictions_of(idle(spared(0.009, met=2)), pausing())

    assert names(effects) == ["mean at a light load", "p99 at a light load"]
    assert after(effects, "no standstills", "mean").point == 0.009


@pytest.mark.parametrize(("p99", "is_predicted"), [(0.0190, True), (0.0198, False)])
def test_p99_is_predicted_where_standstills_reach_it(p99: float, is_predicted: bool) -> None:
    """20 ms with them; the one without is known within 2 %."""
    requests = spared(0.009, met=4)
    requests = replace(requests, took=replace(requests.took, p99=build.estimate(p99)))

    assert ("p99 at a light load" in names(predictions_of(idle(requests), pausing()))) is is_predicted


def test_probes_that_come_at_any_moment_show_what_a_user_alone_does_not_meet() -> None:
    curve = curve_of(stopped)
    curve = replace(curve, steps=tuple(map(watched, curve.steps)))
    probe = replace(build.probe(0.01), spared=spared(0.001, met=600, requests=3_400))
    dense = watched(build.step(1, 100.0, 0.01, probes=(probe,)))

    effects = predictions_of(curve, pausing(), dense=[dense])

    p99 = after(effects, "no standstills", "p99 of GET /a at a light load")
    assert p99.point == 0.002
    assert "3,400 requests that met none" in p99.method


def test_a_level_at_which_requests_wait_for_each_other_is_no_light_load() -> None:
    curve = curve_of(stopped)
    last = watched(curve.steps[-1], spared=spared(0.3, met=20))
    crowded = replace(curve, steps=(*map(watched, curve.steps[:-1]), last))

    assert names(predictions_of(crowded, pausing())) == ["capacity", "mean at 64 users"]


def test_a_limiter_that_goes_by_the_clock_brings_no_more_without_them() -> None:
    limiter = caused_by("ratelimit.active")

    assert "by the clock" in why_not(predictions_of(curve_of(stopped), pausing(), limiter))
    suspected = replace(limiter, grade=Grade.SUSPECTED)
    assert "capacity" in names(predictions_of(curve_of(stopped), pausing(), suspected))
    assert "capacity" in names(
        predictions_of(curve_of(stopped), pausing(), replace(limiter, curves=("other",)))
    )


def test_a_share_that_no_finding_claims_gives_no_prediction() -> None:
    assert "for what share" in why_not(
        predictions_of(curve_of(stopped), caused_by("pause.periodic", pause__length=0.3))
    )


def test_a_service_that_stands_still_most_of_the_time_gets_no_prediction() -> None:
    finding = claiming(caused_by("pause.periodic", pause__length=0.3), "pause.share", 0.8, 0.79, 0.81)

    assert "more than 4 times" in why_not(predictions_of(curve_of(stopped), finding))


@pytest.mark.parametrize(("most", "is_predicted"), [(34, False), (36, True)])
def test_users_who_no_longer_fill_the_service_get_no_mean(most: int, is_predicted: bool) -> None:
    """Of half the time 18 users with pauses of 200 ms fill the lock, of all of it 166.7 x 0.206 = 34.3."""
    rate, alone = 0.5 / HOLD, HOLD / 0.5
    curve = curve_of(
        lambda n: (min(n / (0.2 + alone), rate), max(alone, n / rate - 0.2)),
        users=(1, 8, 16, 24, most),
        think=0.2,
    )
    finding = claiming(caused_by("pause.periodic", pause__length=0.3), "pause.share", 0.5, 0.49, 0.51)

    effects = names(predictions_of(curve, finding))

    assert "capacity" in effects
    assert (f"mean at {most} users" in effects) is is_predicted


def test_a_lower_bound_of_the_capacity_predicts_none() -> None:
    assert "a lower bound is known: clients waited" in why_not(
        predictions_of(dropped(curve_of(stopped)), pausing())
    )
    assert "capacity" in names(predictions_of(dropped(curve_of(stopped), 0.04), pausing()))
