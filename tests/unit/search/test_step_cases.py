"""Study cases of a search's decisions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens import engine
from loadlens.model.search import Aim, Bounds
from loadlens.model.study import Case
from loadlens.model.topology import Outside, Service
from loadlens.model.workload import Closed, Open, Step, Target
from loadlens.run import engine_plan
from loadlens.search import step_cases
from loadlens.search.ladder import Next

COSTLY, OTHER, CHEAP = (
    Step("/costly", "GET", "/costly"),
    Step("/other", "GET", "/other"),
    Step("/ok", "GET", "/ok"),
)
AIM = Aim(
    origin="http://127.0.0.1:8080",
    tls=None,
    steps=(COSTLY, CHEAP),
    probe=None,
    outside=Outside("service", "127.0.0.1", True, (("http", 8080),)),
    services=(),
    timeout_ns=10_000_000_000,
    bounds=Bounds(90.0, 20_000.0, 1024),
    seed=7,
)
ALONE = {"/costly": 0.020, "/other": 0.040, "/ok": 0.001}
CLIMB = Next("climb", 8, 1.0, 5.0)


def load_of(case: Case) -> Closed:
    assert isinstance(case.workload, Closed)
    return case.workload


def test_the_cheapest_of_several_urls_is_the_probe_and_no_load() -> None:
    chosen = step_cases.choose(replace(AIM, steps=(CHEAP, COSTLY, OTHER)), ALONE)

    assert chosen.load == (COSTLY, OTHER)
    assert chosen.probe is CHEAP
    assert not chosen.probe_is_load
    assert chosen.alone_s == pytest.approx(0.030)
    assert chosen.probe_alone_s == 0.001


def test_of_urls_that_cost_the_same_all_are_load_and_another_request_is_the_probe() -> None:
    health = replace(CHEAP, name="/health")
    aim = replace(AIM, steps=(COSTLY, OTHER), candidates=(health,))

    chosen = step_cases.choose(aim, {**dict.fromkeys((COSTLY.name, OTHER.name), 0.020), "/health": 0.002})
    without = step_cases.choose(replace(aim, candidates=()), {COSTLY.name: 0.020, OTHER.name: 0.019})

    assert chosen.load == (COSTLY, OTHER)
    assert chosen.probe is health
    assert without.load == (COSTLY,)
    assert without.probe is OTHER, "the cheapest, where nothing else is cheap"


def test_a_probe_that_was_asked_for_leaves_all_urls_to_the_load() -> None:
    chosen = step_cases.choose(replace(AIM, steps=(COSTLY, OTHER), probe=CHEAP), ALONE)

    assert chosen.load == (COSTLY, OTHER)
    assert chosen.probe is CHEAP


def test_an_only_url_is_load_and_probe_and_that_is_kept() -> None:
    chosen = step_cases.choose(replace(AIM, steps=(COSTLY,)), ALONE)

    assert chosen.load == (COSTLY,)
    assert (chosen.probe.path, chosen.probe_is_load) == ("/costly", True)
    assert chosen.probe.name != COSTLY.name


HEALTH = Step("/health", "GET", "/health")
NO_PAGE = Step("/no-page", "GET", "/no-page", expect=(404,))
HEAD = Step("HEAD /costly", "HEAD", "/costly")


@pytest.mark.parametrize(
    ("times", "probe"),
    [
        ((0.0019, 0.001, 0.003), HEALTH),  # at most twice the fastest
        ((0.0021, 0.001, 0.003), NO_PAGE),
        ((None, 0.004, 0.003), HEAD),
        ((0.0099, 0.011, 0.012), HEALTH),
    ],
)
def test_of_several_requests_the_fastest_or_a_health_check_is_the_probe(
    times: tuple[float | None, ...], probe: Step
) -> None:
    aim = replace(AIM, steps=(COSTLY,), candidates=(HEALTH, NO_PAGE, HEAD))
    names = [step.name for step in aim.candidates]

    chosen = step_cases.choose(aim, ALONE | dict(zip(names, times, strict=True)))

    assert (chosen.load, chosen.probe, chosen.probe_is_load) == ((COSTLY,), probe, False)


def test_a_request_that_takes_more_than_half_of_the_loads_is_no_probe() -> None:
    aim = replace(AIM, steps=(COSTLY,), candidates=(HEALTH,))

    assert step_cases.choose(aim, ALONE | {"/health": 0.0101}).probe_is_load


def test_a_url_that_never_answered_is_not_taken_for_the_cheapest() -> None:
    assert step_cases.choose(AIM, {"/costly": 0.020, "/ok": None}).probe is COSTLY


def test_the_first_look_asks_every_url_calmly_and_a_few_times() -> None:
    case = step_cases.case_of(replace(AIM, probe=OTHER), Next("look", 1, 0.0, 3.0), None)

    assert [step.path for scenario in case.scenarios for step in scenario.steps] == [
        "/costly",
        "/ok",
        "/other",
    ]
    assert (load_of(case).users, load_of(case).requests) == (1, 15)
    assert case.purpose == "look"
    assert case.probes == ()


def test_a_level_is_a_closed_load_with_a_poisson_probe_on_new_connections() -> None:
    case = step_cases.case_of(AIM, CLIMB, step_cases.choose(AIM, ALONE))
    probe = case.probes[0]

    assert (case.slug, case.experiment, case.purpose) == ("ladder-users-8", "ladder", "load")
    assert load_of(case) == Closed(users=8)
    assert isinstance(probe.workload, Open)
    assert (probe.name, probe.workload.rate_per_s, probe.workload.arrivals) == ("/ok", 20.0, "poisson")
    assert probe.connection.reuse == "new"
    assert (case.warmup_ns, case.duration_ns) == (1_000_000_000, 5_000_000_000)


def test_users_who_pause_are_a_ladder_of_their_own() -> None:
    patient = replace(CLIMB, pause_s=0.010)

    case = step_cases.case_of(AIM, patient, step_cases.choose(AIM, ALONE))

    assert (case.experiment, case.slug) == ("patient", "patient-users-8")
    assert load_of(case).think.mean_s == 0.010


def test_a_dense_look_is_no_level_of_the_ladder() -> None:
    case = step_cases.case_of(AIM, Next("dense", 1, 1.0, 10.0), step_cases.choose(AIM, ALONE))

    assert (case.experiment, case.purpose) == ("dense", "dense")
    assert isinstance(case.probes[0].workload, Open)
    assert case.probes[0].workload.rate_per_s == 200.0


def test_every_case_is_a_plan_that_the_engine_takes() -> None:
    aim = replace(AIM, steps=(replace(COSTLY, path="/dear?a=1,2&b=x y%20z"[:15]), CHEAP))
    chosen = step_cases.choose(aim, ALONE)

    for wanted in (Next("look", 1, 0.0, 3.0), CLIMB, Next("dense", 1, 1.0, 10.0)):
        case = step_cases.case_of(aim, wanted, chosen)
        plan = engine_plan.plan_of(
            step_cases.planned(aim, case, 1, 1), Target("127.0.0.1", 8080, "127.0.0.1:8080")
        )
        assert engine.validate(plan.to_json()) == (), case.name


def test_seeds_follow_from_the_search_and_the_place() -> None:
    case = step_cases.case_of(AIM, CLIMB, step_cases.choose(AIM, ALONE))

    first, again, second = (step_cases.planned(AIM, case, block, 3) for block in (1, 1, 2))

    assert first.seed == again.seed
    assert first.seed != second.seed
    assert first.seed != step_cases.planned(replace(AIM, seed=8), case, 1, 3).seed


def test_what_is_started_lives_as_long_as_the_search() -> None:
    started = replace(AIM, services=(Service("service", "serve", ports=()),))
    chosen = step_cases.choose(started, ALONE)

    assert step_cases.case_of(started, CLIMB, chosen).fresh == "run"
    assert step_cases.case_of(AIM, CLIMB, chosen).fresh == "trial"
