"""Effects of removing a slow path: by hand, and of a full pool by other simulations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from loadlens import engine
from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate, Finding, Grade, Prediction, Undecided
from loadlens.model.shapes import SlowLevel, SlowPath, Took
from tests.unit.diagnose import build
from tests.unit.whatif.ladders import (
    after,
    assert_holds,
    caused_by,
    claiming,
    curve_of,
    predictions_of,
    why_not,
)

GONE = "the slow path gone"
USERS = (1, 2, 4, 8, 16, 32, 64)


def took(mean: float, p99: float, *, half: float = 0.02) -> Took:
    return Took(build.estimate(mean, half=half), build.estimate(p99, half=half))


def path(
    *, share: float = 0.1, shift: float = 0.3, usual: float = 0.02, half: float = 0.2, label: str = "b"
) -> SlowPath:
    """Seen at one user; the share is known within `half`, all times within 2 %, the usual mean within 1 %."""
    weight = build.estimate(share, unit="share", half=half)
    whole = took(usual + share * shift, usual + shift)
    level = SlowLevel(
        1,
        1_000,
        round(1_000 * share),
        weight,
        build.estimate(shift),
        (usual + shift) / usual,
        whole,
        took(usual, 1.5 * usual, half=0.01),
    )
    return SlowPath(
        label,
        f"POST /{label}",
        4_000,
        2_000,
        0,
        0,
        0.07,
        level,
        1_000,
        weight=weight,
        shift=build.estimate(shift),
    )


def with_path(curve: Curve, slow: SlowPath) -> Curve:
    return replace(curve, slow_paths=(path(share=0.3, label="other"), slow))


def taken(slow: SlowPath) -> Finding:
    assert isinstance(slow.weight, Estimate)
    return caused_by("mixture.slow-path", component__weight=slow.weight.point)


def names(predictions: Sequence[Prediction]) -> list[str]:
    return [prediction.what for prediction in predictions]


IDLE = curve_of(lambda n: (n / 0.05, 0.05))  # no request waits at any level


def test_without_it_a_request_takes_what_the_others_take() -> None:
    """0.02 + 0.1 x 0.3 = 0.05 s on average now; p99 is the slow path's, 0.32 s."""
    effects = predictions_of(with_path(IDLE, path()), taken(path()))

    assert names(effects) == ["mean at 1 user", "p99 at 1 user"]
    mean, p99 = effects
    assert isinstance(mean.before, Estimate)
    assert mean.before.point == pytest.approx(0.05)
    assert_holds(after(effects, GONE, "mean at 1 user"), 0.05 - 0.1 * 0.3, within=1e-9)
    assert after(effects, GONE, "mean at 1 user").low == pytest.approx(0.99 * 0.02)
    assert after(effects, GONE, "mean at 1 user").method.startswith("arithmetic: ")
    assert isinstance(p99.before, Estimate)
    assert p99.before.point == pytest.approx(0.32)
    assert after(effects, GONE, "p99 at 1 user").point == pytest.approx(0.03)


@pytest.mark.parametrize(("share", "is_predicted"), [(0.0101, True), (0.0099, False)])
def test_p99_is_predicted_where_more_than_one_in_a_hundred_takes_it(share: float, is_predicted: bool) -> None:
    slow = path(share=share)

    assert ("p99 at 1 user" in names(predictions_of(with_path(IDLE, slow), taken(slow)))) is is_predicted


def test_one_kind_of_request_among_several_is_named() -> None:
    first, *rest = IDLE.steps
    several = replace(first, classes=(*first.classes, replace(first.classes[0], label="c")))

    effects = predictions_of(with_path(replace(IDLE, steps=(several, *rest)), path()), taken(path()))

    assert names(effects) == ["mean of POST /b at 1 user", "p99 of POST /b at 1 user"]


def test_times_of_the_others_that_are_not_known_give_no_prediction() -> None:
    slow = path()
    assert slow.alone is not None
    unread = Undecided("response_time.mean", "s", "too few")
    blind = replace(slow, alone=replace(slow.alone, usual=Took(unread, unread)))

    assert "how long requests take without it" in why_not(predictions_of(with_path(IDLE, blind), taken(slow)))
    assert "which requests take it" in why_not(predictions_of(IDLE, taken(slow)))


# --- a pool that is full -----------------------------------------------------------------------------------

WIDTH, USUAL, SHIFT, WEIGHT = 8, 0.013, 0.25, 0.04  # 8 / 0.023 = 348/s, and 615/s without


@cache
def _simulated(users: int, weight: float, seed: int, requests: int) -> tuple[float, float]:
    """Throughput and mean of a pool that is written here by hand: nothing of the code under test is used."""
    rate = min(WIDTH / (USUAL + weight * SHIFT), users / (USUAL + weight * SHIFT))

    def route(seconds: float) -> list[dict[str, object]]:
        work = {"kind": "erlang", "shape": 20, "mean_s": seconds}
        return [{"do": "serve", "station": "p", "work": work}]

    model = {
        "schema_version": 1, "seed": seed, "warmup_s": 3 * users / rate, "duration_s": requests / rate,
        "groups": [],
        "stations": [{"name": "p", "discipline": "fifo", "capacity": float(WIDTH)}],
        "classes": [
            {"name": "quick", "route": route(USUAL)},
            {"name": "slow", "route": route(USUAL + SHIFT)},
        ],
        "streams": [
            {"name": "l", "load": {"kind": "closed", "users": users, "think": {"kind": "fixed", "s": 0.0}},
             "scenarios": [{"weight": 1 - weight, "steps": [{"class": "quick"}]},
                           {"weight": weight, "steps": [{"class": "slow"}]}]}
        ],
    }  # fmt: skip
    times = engine.simulate(model)["streams"][0]["all"]
    return float(times["rate_per_s"]), float(times["mean_s"])


def _ladder(seed: int, *, requests: int = 1_500) -> Curve:
    """Three trials of so many requests a level, each with its own noise."""
    steps = []
    for users in USERS:
        trials = [_simulated(users, WEIGHT, 1000 * seed + 3 * users + i, requests) for i in range(3)]
        rates, means = zip(*trials, strict=True)
        step = build.step(users, sum(rates) / 3, sum(means) / 3)
        mean = build.estimate(sum(means) / 3, half=0.15)
        step = replace(step, throughput_trials=rates, completed_trials=rates)
        steps.append(replace(step, response=replace(step.response, mean=mean)))
    return build.curve(*steps, think=0.0, label="ladder", shares_cores=False)


POOL = path(share=WEIGHT, shift=SHIFT, usual=USUAL)
FULL = claiming(caused_by("threads.pool-limit"), "pool.size", WIDTH, WIDTH, WIDTH)


def test_a_full_pool_does_what_a_simulated_one_does_without_slow_requests() -> None:
    """Of 6 ladders each capacity is within 5 %, and 5 of the 6 intervals at least hold the truth."""
    true, mean = _simulated(64, 0.0, 999, 100_000)
    assert true == pytest.approx(WIDTH / USUAL, rel=0.01)
    inside = 0
    for seed in range(6):
        effects = predictions_of(with_path(_ladder(seed), POOL), taken(POOL), FULL)

        capacity = after(effects, GONE, "capacity")
        assert capacity.point == pytest.approx(true, rel=0.05), seed
        assert after(effects, GONE, "mean at 64 users").point == pytest.approx(mean, rel=0.05)
        assert "predicted by simulation" in capacity.method
        inside += (capacity.low or 0.0) <= true <= (capacity.high or 0.0)
        assert names(effects)[-2:] == ["mean at 1 user", "p99 at 1 user"]

    assert inside >= 5


def test_a_size_that_is_only_concluded_is_one_of_those_that_capacity_and_times_allow() -> None:
    """X R1 of a few requests says 6 to 12; with a share known to half of it 7 to 9 would do 348/s."""
    unsure = claiming(caused_by("threads.pool-limit"), "pool.size", 9.1, 6.0, 12.0)
    slow = path(share=WEIGHT, shift=SHIFT, usual=USUAL, half=0.5)

    effects = after(predictions_of(with_path(_ladder(1), slow), taken(slow), unsure), GONE, "capacity")

    assert_holds(effects, WIDTH / USUAL, within=0.13)
    wide = claiming(caused_by("threads.pool-limit"), "pool.size", 11.0, 10.0, 12.0)
    beyond = predictions_of(with_path(_ladder(1), POOL), taken(POOL), wide)
    assert isinstance(beyond[0].after, Undecided)


def test_a_pool_of_another_size_than_the_slow_ones_leave_room_for_predicts_only_times() -> None:
    twice = claiming(caused_by("threads.pool-limit"), "pool.size", 16, 16, 16)

    effects = predictions_of(with_path(_ladder(1), POOL), taken(POOL), twice)

    capacity, *rest = effects
    assert isinstance(capacity.before, Estimate)
    assert isinstance(capacity.after, Undecided)
    assert "16 at once would answer" in capacity.after.reason
    assert "with the slow ones they take 23 ms on average" in capacity.after.reason
    assert names(rest) == ["mean at 1 user", "p99 at 1 user"]


@pytest.mark.parametrize(
    "limit",
    [
        caused_by("db.lock"),  # whether it is taken before the lock or under it is not known
        replace(FULL, grade=Grade.SUSPECTED),
        replace(FULL, curves=("other",)),
    ],
)
def test_what_is_not_known_to_be_held_all_along_predicts_no_throughput(limit: Finding) -> None:
    effects = predictions_of(with_path(_ladder(1), POOL), taken(POOL), limit)

    assert names(effects) == ["mean at 1 user", "p99 at 1 user"]


def test_a_path_of_one_kind_among_several_leaves_the_capacity_open() -> None:
    curve = _ladder(1)
    first = curve.steps[0]
    several = replace(first, classes=(*first.classes, replace(first.classes[0], label="c")))

    effects = predictions_of(
        with_path(replace(curve, steps=(several, *curve.steps[1:])), POOL), taken(POOL), FULL
    )

    assert isinstance(effects[0].after, Undecided)
    assert "several kinds" in effects[0].after.reason


def test_a_capacity_far_beyond_the_measured_gets_no_prediction() -> None:
    """8 / 0.002 = 4,000/s, and 8 / 0.062 = 129/s with the slow ones."""
    curve = curve_of(lambda n: (min(n, 8) / 0.062, max(n, 8) / 8 * 0.062))
    slow = path(share=0.2, shift=0.3, usual=0.002)

    effects = predictions_of(with_path(curve, slow), taken(slow), FULL)

    assert isinstance(effects[0].after, Undecided)
    assert "more than 4 times what was measured" in effects[0].after.reason
