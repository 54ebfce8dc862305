"""Effects of remedies, compared with closed forms, other simulations and models that are wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from loadlens import engine
from loadlens.diagnose import Verdict
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.model.facts import BalanceWatch, Curve, Facts, ReplicaWatch, Step
from loadlens.model.finding import (
    Evidence,
    Finding,
    Grade,
    NotMeasured,
    Prediction,
    Undecided,
)
from loadlens.whatif import remedies
from loadlens.whatif.remedies.predict import too_many
from loadlens.whatif.remedies.service_model import ServiceModel
from tests.oracles import closed_forms as queues
from tests.unit.diagnose import build
from tests.unit.whatif.ladders import (
    LADDER,
    after,
    assert_holds,
    caused_by,
    curve_of,
    dropped,
    locked,
    predictions_of,
    repaired,
    why_not,
)

# --- closed forms ------------------------------------------------------------------------------------------


def test_twice_the_threads_are_the_machine_repairman_with_twice_the_servers() -> None:
    before, then = repaired(0.04, 0.1, 4), repaired(0.04, 0.1, 8)
    curve = curve_of(before, think=0.1)

    effects = predictions_of(curve, caused_by("threads.pool-limit", pool__size=4))

    assert_holds(after(effects, "8 threads in place of 4", "capacity"), 8 / 0.04)
    assert_holds(after(effects, "8 threads", "mean at 64 users"), then(64)[1])
    assert after(effects, "8 threads", "mean at 32 users").point == pytest.approx(then(32)[1], rel=0.2)


def test_twice_the_cores_are_the_machine_repairman_with_twice_the_servers() -> None:
    """Processor sharing on c cores of which a request takes one at most is M/M/c in the mean."""
    before, then = repaired(0.02, 0.05, 2), repaired(0.02, 0.05, 4)
    curve = curve_of(before, think=0.05, work=build.estimate(0.02), cores_allotted=2.0)

    effects = predictions_of(curve, caused_by("cpu.saturated"))

    assert_holds(after(effects, "4 cores in place of 2", "capacity"), 4 / 0.02)
    assert_holds(after(effects, "4 cores in place of 2", "mean at 64 users"), then(64)[1])


def test_a_lock_held_half_as_long_is_mean_value_analysis_with_half_the_demand() -> None:
    before, then = locked(0.005, 0.02, 0.0), locked(0.015, 0.01, 0.0)  # what left the lock takes its time

    effects = predictions_of(curve_of(before), caused_by("db.lock", lock__hold=0.02))

    assert_holds(after(effects, "half the time under the lock", "capacity"), 100.0)
    assert_holds(after(effects, "half the time under the lock", "mean at 64 users"), then(64)[1])


def test_many_patient_users_meet_what_arrivals_at_random_meet() -> None:
    """400 users who think 3 s are a Poisson stream, and a lock of fixed time then is M/D/1."""
    hold, base, think = 0.010, 0.002, 3.0

    def served(users: int) -> tuple[float, float]:
        if users > 300:
            return 1 / hold, users * hold - think
        wait = queues.md1_wait(users / (think + base + hold), hold) if users > 1 else 0.0
        return users / (think + base + hold + wait), base + hold + wait

    curve = curve_of(served, users=(1, 100, 200, 400, 800), think=think)

    effects = predictions_of(curve, caused_by("db.lock", lock__hold=hold))

    knee = after(effects, "half the time", "mean at 400 users")
    rate = 400 / (think + knee.point)
    assert knee.point == pytest.approx(base + hold + queues.md1_wait(rate, hold / 2), rel=0.1)


def test_the_bounds_of_a_closed_system_hold_for_every_prediction() -> None:
    curve = build.blocked(0.2)
    predictions = _rooted(build.facts(curve))

    most = queues.bounds([0.2], 0.15, 20, servers=2)
    assert after(predictions, "2 processes", "capacity").point <= 1.02 * most.most_throughput
    assert after(predictions, "2 processes", "mean at 20").point >= 0.95 * most.least_response


# --- an event loop, by the rules' own findings -------------------------------------------------------------


def _rooted(facts: Facts) -> tuple[Prediction, ...]:
    """Of what the rule itself finds."""
    effects = eventloop_blocked.assess(facts)
    assert isinstance(effects, Finding), effects
    return remedies.with_predictions(facts, Verdict((effects,), (), ())).findings[0].predictions


def test_work_in_threads_brings_the_cores_over_the_work() -> None:
    effects = after(_rooted(build.facts(build.blocked(0.2))), "in threads", "capacity")

    assert_holds(effects, (4 - 0.02 - 0.05) / 0.2)  # cores less other programs and the generator


def test_a_loop_on_as_many_processes_as_cores_gains_nothing_from_more() -> None:
    facts = build.facts(replace(build.blocked(0.2, k=4, think=0.0), cores_allotted=4.0), cores=8)

    assert {p.remedy for p in _rooted(facts)} == {"the work in threads"}


def test_a_probe_no_longer_waits_for_work_that_is_in_threads() -> None:
    effects = after(_rooted(build.facts(build.blocked(0.2))), "in threads", "GET /a at 20 users")

    assert effects.point < 0.02  # behind the loop it took 3.65 s


@pytest.mark.parametrize("faster", [0.1, 7.0])
def test_a_service_that_is_faster_in_everything_gets_the_same_prediction_faster(faster: float) -> None:
    usual = _rooted(build.facts(build.blocked(0.2)))
    scaled = _rooted(build.facts(build.blocked(0.2 / faster, think=0.15 / faster)))

    for what, times in (("capacity", faster), ("mean at 20 users", 1 / faster)):
        before, scaled_after = (after(effects, "2 processes", what) for effects in (usual, scaled))
        assert scaled_after.point == pytest.approx(times * before.point, rel=0.05)


def test_names_change_nothing() -> None:
    usual = _rooted(build.facts(build.blocked(0.2)))
    curve = build.blocked(0.2)
    renamed = replace(
        curve,
        label="x",
        costliest="ж",
        steps=tuple(
            replace(
                s,
                label="Schritt",
                classes=tuple(replace(c, label="ж", request="PUT /ж") for c in s.classes),
                probes=tuple(replace(p, label="ü", request="HEAD /ü") for p in s.probes),
            )
            for s in curve.steps
        ),
    )

    effects = _rooted(build.facts(renamed))

    assert [p.after for p in effects] == [p.after for p in usual]


# --- other simulations -------------------------------------------------------------------------------------

SPECIMENS: Mapping[str, tuple[str, dict[str, float], dict[str, object], dict[str, object]]] = {
    "pool": (
        "threads.pool-limit",
        {"pool__size": 5},
        {"width": 5, "hold": 0.030},
        {"width": 10, "hold": 0.030},
    ),
    "lock": (
        "db.lock",
        {},
        {"width": 1, "hold": 0.012, "base": 0.003},
        {"width": 1, "hold": 0.006, "base": 0.009},
    ),
    "connections": (
        "db.pool",
        {"pool__size": 3, "pool__hold": 0.04},
        {"width": 3, "hold": 0.04, "base": 0.01},
        {"width": 6, "hold": 0.04, "base": 0.01},
    ),
}  # fmt: skip


def _simulated(plan: dict[str, object], users: int, *, seed: int, requests: int) -> tuple[float, float]:
    """Throughput and mean of a gate that is written here by hand: nothing of the code under test is used."""
    width, hold, base = (float(plan.get(key, 0.0)) for key in ("width", "hold", "base"))  # type: ignore[arg-type]
    rate = min(width / hold, users / (hold + base))
    model = {
        "schema_version": 1, "seed": seed, "warmup_s": 3 * users / rate, "duration_s": requests / rate,
        "groups": [],
        "stations": [{"name": "g", "discipline": "fifo", "capacity": width}],
        "classes": [
            {"name": "r", "route": [
                {"do": "delay", "time": {"kind": "fixed", "s": base}},
                {"do": "serve", "station": "g", "work": {"kind": "erlang", "shape": 3, "mean_s": hold}},
            ]}
        ],
        "streams": [
            {"name": "l", "load": {"kind": "closed", "users": users, "think": {"kind": "fixed", "s": 0.0}},
             "scenarios": [{"weight": 1.0, "steps": [{"class": "r"}]}]}
        ],
    }  # fmt: skip
    times = engine.simulate(model)["streams"][0]["all"]
    return float(times["rate_per_s"]), float(times["mean_s"])


def _noisy(plan: dict[str, object], seed: int) -> Curve:
    """A ladder of three trials of 400 requests a level, each with its own noise."""
    steps = []
    for users in LADDER[:-1]:
        trials = [_simulated(plan, users, seed=1000 * seed + 3 * users + i, requests=400) for i in range(3)]
        rates, means = zip(*trials, strict=True)
        step = build.step(users, sum(rates) / 3, sum(means) / 3)
        steps.append(replace(step, throughput_trials=rates, completed_trials=rates))
    return build.curve(*steps, think=0.0, label="ladder", shares_cores=False)


@pytest.mark.parametrize("name", SPECIMENS)
def test_what_short_noisy_ladders_predict_comes_true(name: str) -> None:
    """Of 8 ladders every figure is within 15 %, and 13 of the 16 intervals at least hold the truth."""
    rule, claims, plan, changed = SPECIMENS[name]
    true = dict(
        zip(
            ("capacity", "mean at 32 users"), _simulated(changed, 32, seed=999, requests=200_000), strict=True
        )
    )
    inside = 0
    for seed in range(8):
        effects = predictions_of(_noisy(plan, seed), caused_by(rule, **claims))
        for what, value in true.items():
            figure = after(effects, "", what)
            assert figure.point == pytest.approx(value, rel=0.15), (what, seed)
            inside += (figure.low or 0.0) <= value <= (figure.high or math.inf)

    assert inside >= 13


# --- replicas ----------------------------------------------------------------------------------------------


def _balanced(curve: Curve, shares: Sequence[float], times: Sequence[float]) -> Curve:
    replicas = tuple(
        ReplicaWatch(
            f"r{i}", 1000, build.estimate(share, unit="share"), build.estimate(time), NotMeasured("w", "")
        )
        for i, (share, time) in enumerate(zip(shares, times, strict=True))
    )
    balance = BalanceWatch("b", "log", replicas, 1.0)
    return replace(curve, steps=tuple(replace(step, balances=(balance,)) for step in curve.steps))


def test_equal_turns_bring_the_mean_over_the_most() -> None:
    """Three replicas of 4 at once and 20 ms; one gets half of all: 4 / 0.02 / 0.5 = 400/s, evenly 600/s."""
    alone, most = 0.02, 400.0
    curve = curve_of(lambda n: (min(n / alone, most), max(alone, n / most)))
    uneven = _balanced(curve, (0.25, 0.5, 0.25), (alone,) * 3)

    effects = predictions_of(uneven, caused_by("lb.imbalance"))

    assert_holds(after(effects, "equal turns", "capacity"), 600.0)
    assert after(effects, "equal turns", "mean at 64 users").point == pytest.approx(64 / 600, rel=0.05)


def test_a_slow_replica_as_fast_as_the_others_lets_all_bear_as_much() -> None:
    """Three replicas of 8 at once, 20 ms and one 60 ms: 3 x 8 / 0.06 = 400/s in turns, else 1,200/s."""
    alone, most = (0.02 + 0.02 + 0.06) / 3, 400.0
    curve = curve_of(lambda n: (min(n / alone, most), max(alone, n / most)))
    slow = _balanced(curve, (1 / 3,) * 3, (0.02, 0.06, 0.02))
    cause = caused_by("backend.slow-one")
    ratio = Evidence("backends.slowest-ratio", "", "", 3.0, 2.9, 3.1, 1.25, True)

    effects = predictions_of(slow, replace(cause, evidence=(ratio,)))

    assert_holds(after(effects, "as fast as the others", "capacity"), 1200.0)


def test_replicas_that_were_not_watched_predict_nothing() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))

    assert "no model" in why_not(predictions_of(curve, caused_by("lb.imbalance")))


def test_a_slow_replica_without_shares_at_the_highest_load_predicts_nothing() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))
    ratio = Evidence("backends.slowest-ratio", "", "", 3.0, 2.9, 3.1, 1.25, True)

    assert "no model" in why_not(
        predictions_of(curve, replace(caused_by("backend.slow-one"), evidence=(ratio,)))
    )


# --- models that are wrong ---------------------------------------------------------------------------------


def test_a_pool_of_another_size_than_the_throughput_has_predicts_nothing() -> None:
    curve = curve_of(repaired(0.04, 0.0, 4))

    why = why_not(predictions_of(curve, caused_by("threads.pool-limit", pool__size=16)))

    assert "16 at once would answer" in why
    assert "alone one takes 40 ms" in why


def test_levels_that_no_queue_explains_predict_nothing() -> None:
    """The capacity agrees with the work, but halfway up a request takes twice as long as any queue has it."""
    whole = build.blocked(0.2)
    first, middle, last = whole.steps
    odd = replace(middle, response=build.times(2 * 0.85))
    facts = build.facts(replace(whole, steps=(first, odd, last)))

    (prediction,) = _rooted(facts)

    assert isinstance(prediction.after, Undecided)
    assert "at 5 users the model has" in prediction.after.reason


def test_cpu_time_that_the_throughput_contradicts_predicts_nothing() -> None:
    curve = curve_of(repaired(0.02, 0.0, 2), work=build.estimate(0.01), cores_allotted=2.0)

    assert "20 ms of CPU a request, 10 ms were measured" in why_not(
        predictions_of(curve, caused_by("cpu.saturated"))
    )


def test_a_lock_that_is_said_to_be_held_much_shorter_predicts_nothing() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))

    assert "under it each, 5 ms were measured" in why_not(
        predictions_of(curve, caused_by("db.lock", lock__hold=0.005))
    )


def test_a_curve_that_did_not_reach_its_limit_predicts_nothing() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0), users=(1, 2))

    assert "not reached" in why_not(predictions_of(curve, caused_by("db.lock")))


def test_without_a_level_of_one_user_nothing_is_predicted() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0), users=(4, 8, 16), work=build.estimate(0.001))

    assert "no level of one user" in why_not(predictions_of(curve, caused_by("db.lock")))


def test_what_lies_far_beyond_the_measured_gets_no_prediction() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))

    effects = predictions_of(curve, caused_by("db.lock", lock__hold=0.02))

    capacity = next(p.after for p in effects if p.remedy == "the lock shared" and p.what == "capacity")
    assert isinstance(capacity, Undecided)
    assert "the next one is not known" in capacity.reason


def test_a_finding_that_is_only_suspected_or_explained_or_without_remedies_predicts_nothing() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))
    sure = caused_by("db.lock")

    assert predictions_of(curve, sure)
    assert predictions_of(curve, replace(sure, grade=Grade.SUSPECTED)) == ()
    assert predictions_of(curve, replace(sure, explained_by="x")) == ()
    assert predictions_of(curve, caused_by("gen.bottleneck")) == ()


def test_every_rule_with_remedies_answers_or_says_why() -> None:
    steps: tuple[Step, ...] = curve_of(locked(0.005, 0.02, 0.0)).steps
    odd = build.curve(*steps[:1], think=0.0, label="ladder")

    for rule in (*remedies.TREATMENTS, *remedies.ARITHMETIC):
        assert why_not(predictions_of(odd, caused_by(rule)))
        assert why_not(predictions_of(replace(odd, label="other"), caused_by(rule)))


def test_the_same_facts_give_the_same_prediction() -> None:
    facts = build.facts(build.blocked(0.2))

    assert _rooted(facts) == _rooted(facts)


def test_more_users_than_are_simulated_leave_a_capacity_undecided() -> None:
    """Two cores at 1 ms of work do 2,000/s; with users who pause for 3 s it takes 6,002 of them."""
    fast = ServiceModel(work_s=0.001, rest_s=0.0, cores=2.0, members=2)

    assert "6,002 users" in too_many(fast, 3.0)
    assert too_many(fast, 1.0) == ""


# --- a lower bound -----------------------------------------------------------------------------------------


def test_no_model_is_fitted_to_a_lower_bound() -> None:
    curve = curve_of(locked(0.005, 0.02, 0.0))
    cause = caused_by("db.lock", lock__hold=0.02)

    assert after(predictions_of(curve, cause), "half the time under the lock", "capacity").point > 50
    assert why_not(predictions_of(dropped(curve), cause)) == (
        "of the capacity a lower bound is known: clients waited to ask for connections again"
    )
