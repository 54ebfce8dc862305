"""From fitted parameters to a model: counted by hand, and simulated where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loadlens.model.plain import read
from loadlens.model.recorded import PlannedCase
from loadlens.whatif.held_out.build import Span, Structure, Values, network_of
from loadlens.whatif.held_out.parameters import ClassFit, Fit, Parameter, ProbeFit, part_of_a_core
from loadlens.whatif.held_out.site import Site
from loadlens.whatif.queueing import LOAD, Network, NoModel, Times, simulate


def parameter(name: str, point: float) -> Parameter:
    return Parameter(name, point, 0.05, "by hand")


def class_fit(
    work: float = 0.1, alone: float = 0.1, shape: Any = None, speed: float = 1.0, name: str = "page"
) -> ClassFit:
    values = np.ones(200) if shape is None else shape
    return ClassFit(name, parameter("work", work), parameter("alone", alone), values, speed)


def site(**keys: Any) -> Site:
    whole = {"replicas": 1, "workers": 1, "threads": 0, "policy": None, "quota": None, "cpus": None}
    return Site("app", **{**whole, **keys})


def case(users: int = 4, think_ms: int = 0, probes: bool = False) -> dict[str, Any]:
    think = {"kind": "fixed", "ns": think_ms * 1_000_000} if think_ms else {"kind": "none"}
    probe = {"name": "health", "workload": {"kind": "open", "rate_per_s": 5.0, "arrivals": "poisson"}}
    page = {"name": "page", "method": "GET", "path": "/page", "think": {"kind": "none"}}
    return {
        "slug": "visit",
        "connection": {"reuse": "keep"},
        "workload": {"kind": "closed", "users": users, "think": think},
        "scenarios": [{"name": "visit", "weight": 1.0, "steps": [page]}],
        "probes": [probe] if probes else [],
    }


def simulated(
    where: Site, structure: Structure, fit: Fit, users: int = 4, cores: float = 2.0
) -> dict[str, Times]:
    plan = read(PlannedCase, case(users, probes=bool(fit.probes)))
    model = network_of(plan, where, structure, Values.typical(fit), cores, Span(20, 200), seed=1)
    return {name: stream.all for name, stream in simulate(model).items()}


def fit_of(
    *classes: ClassFit, probes: tuple[ProbeFit, ...] = (), aside: float | None = None, share: float = 1.0
) -> Fit:
    elsewhere = None if aside is None else parameter("elsewhere", aside)
    return Fit(classes, probes, elsewhere, 0.0, share, ())


def test_a_loop_does_one_thing_at_a_time_and_cores_do_two() -> None:
    fit = fit_of(class_fit())

    assert simulated(site(), Structure("loop"), fit)[LOAD].rate_per_s == pytest.approx(10, rel=0.01)
    assert simulated(site(), Structure("cores"), fit)[LOAD].rate_per_s == pytest.approx(20, rel=0.01)


def test_three_loops_on_two_cores_are_two_cores_worth() -> None:
    loops = site(workers=3)

    rate = simulated(loops, Structure("loop"), fit_of(class_fit()), users=24)[LOAD].rate_per_s

    assert rate == pytest.approx(20, rel=0.01)


def test_replicas_have_their_share_each() -> None:
    # 0.03 s of CPU with 0.3 of a core: 0.1 s, ten a second for each of three.
    where = site(replicas=3, quota=0.3, policy="least-connections")
    fit = fit_of(class_fit(work=0.03, speed=0.3))

    assert simulated(where, Structure("loop"), fit, users=24)[LOAD].rate_per_s == pytest.approx(30, rel=0.01)


def test_shares_that_the_machine_does_not_have_are_not_given() -> None:
    # four shares of 0.9 of a core on two cores: 2 / 0.03
    where = site(replicas=4, quota=0.9, policy="round-robin")
    fit = fit_of(class_fit(work=0.03, alone=0.04, speed=0.9))

    assert simulated(where, Structure("loop"), fit, users=40)[LOAD].rate_per_s == pytest.approx(
        2 / 0.03, rel=0.02
    )


def test_work_in_threads_leaves_the_loop_to_probes() -> None:
    probe = ProbeFit("health", 0.0005, 0.001)
    fit = fit_of(class_fit(), probes=(probe,))

    held, threads = (simulated(site(threads=n), Structure("loop"), fit) for n in (0, 8))

    assert (held["probe health"].mean_s or 0.0) > 0.2
    assert (threads["probe health"].mean_s or 1.0) < 0.005
    assert threads[LOAD].rate_per_s == pytest.approx(20, rel=0.02)


def test_a_request_without_work_needs_no_thread() -> None:
    # Users send either in turn: eight keep one thread busy with requests of 0.1 s; the others take 1 ms.
    plan = case(users=8)
    health = {"name": "health", "method": "GET", "path": "/health", "think": {"kind": "none"}}
    plan["scenarios"][0]["steps"].append(health)
    fit = fit_of(class_fit(), class_fit(work=1e-6, alone=0.001, name="health"))
    model = network_of(
        read(PlannedCase, plan),
        site(threads=1),
        Structure("loop"),
        Values.typical(fit),
        2.0,
        Span(20, 200),
        seed=1,
    )

    times = {each.name: each.times for each in simulate(model)[LOAD].classes}

    assert times["health"].mean_s == pytest.approx(0.001, rel=0.05)
    assert times["page"].rate_per_s == pytest.approx(10, rel=0.01)


def test_a_handler_that_crosses_the_loop_twice_waits_longer_than_a_probe() -> None:
    fit = fit_of(class_fit(alone=0.101), probes=(ProbeFit("health", 0.0, 0.001),))

    once, twice = (simulated(site(), Structure("loop", passes=n), fit, users=8) for n in (1, 2))

    # Users' times are the same, N / X; a probe waits behind half as many passes.
    assert twice[LOAD].mean_s == pytest.approx(once[LOAD].mean_s, rel=0.02)
    assert (twice["probe health"].mean_s or 1.0) < 0.75 * (once["probe health"].mean_s or 0.0)


def test_next_to_other_programs_a_loop_has_the_part_of_a_core_that_it_had_alone() -> None:
    # A quarter of a core, as alone: 0.4 s per request; two loops have a quarter each.
    fit = fit_of(class_fit(alone=0.4, speed=0.25), share=0.25)

    assert simulated(site(), Structure("loop"), fit)[LOAD].rate_per_s == pytest.approx(2.5, rel=0.01)
    two = simulated(site(workers=2), Structure("loop"), fit, users=16)[LOAD].rate_per_s
    assert two == pytest.approx(5, rel=0.01)


def test_work_elsewhere_takes_cores_too() -> None:
    rate = simulated(site(), Structure("cores"), fit_of(class_fit(), aside=0.1), users=24)[LOAD].rate_per_s

    assert rate == pytest.approx(10, rel=0.02)


@pytest.mark.parametrize("structure", [Structure("pool", width=3), Structure("section", width=3)])
def test_a_pool_works_on_so_many_at_once(structure: Structure) -> None:
    # 1 ms of work and 99 ms of waiting in the pool: 3 / 0.1
    fit = fit_of(class_fit(work=0.001))

    assert simulated(site(), structure, fit, users=24)[LOAD].rate_per_s == pytest.approx(30, rel=0.01)


def test_a_slow_path_of_some_requests_holds_no_core() -> None:
    """A tenth waits for half a second: the work is what the others take."""
    times = np.concatenate([np.full(180, 0.1), np.full(20, 0.6)])
    fit = class_fit(work=0.1, alone=float(times.mean()), shape=times / times.mean())

    works, rests = fit.split(0.1, float(times.mean()))

    assert fit.is_steady
    assert works == pytest.approx(np.full(200, 0.1))
    assert sorted(rests)[-20:] == pytest.approx([0.5] * 20)
    assert rests.mean() == pytest.approx(0.05)


def test_work_that_varies_varies_as_the_whole_does() -> None:
    times = -np.log1p(-(np.arange(200) + 0.5) / 200)
    fit = class_fit(work=0.08, alone=0.1, shape=times / times.mean())

    works, rests = fit.split(0.08, 0.1)

    assert not fit.is_steady
    assert works.mean() == pytest.approx(0.08)
    assert rests.mean() == pytest.approx(0.02)
    assert works.std() == pytest.approx(0.08 * (times / times.mean()).std())


def of_plan(plan: dict[str, Any]) -> Network:
    values = Values.typical(fit_of(class_fit()))
    return network_of(read(PlannedCase, plan), site(), Structure("loop"), values, 2.0, Span(1, 1), 1)


def test_repeated_steps_are_written_out() -> None:
    plan = case()
    plan["scenarios"][0]["groups"] = [{"name": "", "first": 0, "steps": 1, "repeat": 3}]

    model = of_plan(plan)

    assert [visit.class_ for visit in model.streams[0].scenarios[0].steps] == ["page"] * 3


def test_users_who_keep_a_pace_have_no_model() -> None:
    plan = case()
    plan["workload"]["pace"] = {"kind": "fixed", "ns": 1}

    with pytest.raises(NoModel, match="pace"):
        of_plan(plan)


@pytest.mark.parametrize(
    ("used", "waited", "speed", "part"),
    [
        (1.0, 0.0, 1.0, 1.0),
        (1.0, 1.0, 1.0, 0.5),  # another program computes as much
        (0.3, 0.7, 0.3, 1.0),  # three tenths of each period are all that the quota allows
        (0.6, 0.4, 0.3, 1.0),
        (0.2, 0.8, 0.3, 0.2),  # less than the quota: others took the rest
    ],
)
def test_the_pauses_of_a_quota_are_not_taken_for_other_programs(
    used: float, waited: float, speed: float, part: float
) -> None:
    assert part_of_a_core(used, waited, speed) == pytest.approx(part)
