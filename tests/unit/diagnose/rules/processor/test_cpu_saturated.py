"""The rule fires where threads or processes wait for cores, and stays silent on what else makes a plateau."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.processor.cpu_saturated import ID, assess_after
from loadlens.model.facts import ConcurrencyLimit, Curve, Facts, Gauge, ProcessWatch, QuotaWatch
from loadlens.model.finding import Absent, Estimate, Figure, Finding, Grade, NotAssessed, Undecided
from tests.unit.diagnose.build import (
    UNWATCHED,
    blocked,
    curve,
    estimate,
    facts,
    found,
    generator,
    process,
    step,
)

WORK_S = 0.02


def full(
    *, cores: float = 2.0, trials: int = 3, own: bool = True, work_s: float = WORK_S, **last: Any
) -> Curve:
    """Threads that compute 20 ms per request on so many cores: X = min(N, cores) / D."""
    steps = []
    for users in (1, 4, 16):
        busy = min(float(users), cores)
        rate = busy / work_s
        steps.append(
            step(
                users,
                rate,
                users / rate,
                trials=trials,
                processes=(process(0.99 * busy, waiting=max(0.0, users - cores), hot=users),),
            )
        )
    steps[-1] = replace(steps[-1], **last)
    return curve(
        *steps,
        work=estimate(0.99 * work_s, trials=trials),
        think=0.0,
        cores_allotted=cores,
        shares_cores=not own,
    )


def ask(built: Curve, *, cores: int = 4) -> Finding | Absent | NotAssessed:
    return assess_after(facts(built, cores=cores), ())


def test_full_cores_are_found_with_the_cpu_time_of_a_request() -> None:
    finding = found(ask(full()))

    assert finding.grade is Grade.STRONG
    assert finding.statement == "All 2 cores are used at 100 /s: 19.8 ms of CPU per request"  # 2 / 0.02 s
    work = next(e for e in finding.evidence if e.signal == "work.cpu")
    assert work.value == pytest.approx(0.0198)
    assert "each brings 50.5 /s" in finding.advice  # 1 / 0.0198 s


def test_a_rate_that_trials_do_not_agree_on_is_left_out() -> None:
    apart = Undecided("throughput", "1/s", "trials differ")

    built = full(trials=1)
    finding = ask(replace(built, steps=tuple(replace(level, throughput=apart) for level in built.steps)))

    assert isinstance(finding, Finding)
    assert "undecided" not in finding.statement


@pytest.mark.parametrize(("taken", "kind"), [(0.0, Finding), (1.0, Absent)])
def test_a_level_that_others_disturbed_gives_way_to_a_calm_one(taken: float, kind: type) -> None:
    """At 16 users others take 0.9 of the cores, and there the service cannot fill them."""
    disturbed = full(processes=(process(1.1, waiting=14.0, hot=16),), other_cores=0.9)
    lower = replace(disturbed.steps[1], other_cores=taken)

    answer = ask(replace(disturbed, steps=(disturbed.steps[0], lower, disturbed.steps[2])))

    assert isinstance(answer, kind)


@pytest.mark.parametrize(
    ("used", "waited", "host", "is_full"),
    [
        (1.1, 1.2, 2.0, True),  # it would use 2.3 of 2 cores, and has what others leave
        (0.6, 0.5, 2.0, False),  # a single thread
        (1.1, 1.2, 1.5, False),  # cores are idle: it waits for another reason
    ],
)
def test_a_service_that_has_what_others_leave_is_out_of_cores(
    used: float, waited: float, host: float, *, is_full: bool
) -> None:
    rate = used / WORK_S
    disturbed: dict[str, Any] = {
        "throughput": estimate(rate),
        "throughput_trials": (rate,) * 3,
        "completed_trials": (rate,) * 3,
        "processes": (process(used, waiting=waited, hot=16),),
        "other_cores": 2.0 - used,
        "host_cpu": estimate(host, unit="cores"),
    }
    built = full(own=False)
    first, *rest = built.steps

    answer = ask(replace(built, steps=(first, *(replace(each, **disturbed) for each in rest))), cores=2)

    assert isinstance(answer, Finding) is is_full, answer
    if isinstance(answer, Finding):
        assert answer.grade is Grade.PROBABLE  # others are on the same cores
        assert (
            answer.statement
            == "All 2 cores are used at 55.0 /s: 19.8 ms of CPU per request; other programs take 0.90"
        )


def test_where_others_have_more_than_the_service_full_cores_are_only_suspected() -> None:
    disturbed: dict[str, Any] = {
        "processes": (process(0.9, waiting=2.0, hot=16),),
        "other_cores": 1.1,
        "host_cpu": estimate(2.0, unit="cores"),
    }
    built = full(own=False)
    first, *rest = built.steps

    finding = found(
        ask(replace(built, steps=(first, *(replace(each, **disturbed) for each in rest))), cores=2)
    )
    assert finding.grade is Grade.SUSPECTED


def behind(own: float, other: float, *, is_called: bool = True) -> tuple[ProcessWatch, ...]:
    """A service and a program behind it: cores that each uses."""
    app = replace(process(own, waiting=7.0, hot=8), service="s", program="app")
    store = replace(process(other, waiting=7.0, hot=8), service="t", program="store", is_called=is_called)
    return app, store


def test_a_program_that_the_service_calls_and_that_uses_most_is_named() -> None:
    finding = found(ask(full(processes=behind(0.4, 1.58))))

    assert finding.statement.endswith("19.8 ms of CPU per request, 80 % of it in store")  # 1.58 / 1.98
    assert "store 1.58 of them" in next(e.text for e in finding.evidence if e.signal == "cpu.used")
    assert "EXPLAIN" not in finding.advice


@pytest.mark.parametrize("processes", [behind(1.5, 0.48), behind(0.4, 1.58, is_called=False)])
def test_a_program_that_uses_less_or_is_the_service_is_not_named(processes: Any) -> None:
    assert "store" not in found(ask(full(processes=processes))).statement


def test_of_a_database_the_command_is_named() -> None:
    titles = ConcurrencyLimit(
        "pool",
        Gauge("at work", estimate(2.0), 2.0),
        seen_in="titles",
        service="t",
        program="store",
        command="SELECT",
    )

    finding = found(ask(full(processes=behind(0.4, 1.58, is_called=False), places=(titles,))))

    assert "80 % of it in store" in finding.statement
    assert "store computes, most of all for SELECT: an index may lack" in finding.advice


@pytest.mark.parametrize(("high", "grade"), [(0.0172, Grade.PROBABLE), (0.0168, Grade.SUSPECTED)])
def test_work_that_accounts_for_the_cores_at_an_end_of_its_interval_is_enough(
    high: float, grade: Grade
) -> None:
    """16 ms allow 125 /s where 100 came out; 17 ms, which 1.98 cores take at 100 / 0.85, are the limit."""
    work = replace(estimate(0.016, trials=3), low=0.012, high=high)

    built = full(processes=(process(1.98, waiting=0.05, hot=2),))  # none of two waits for a core
    assert found(ask(replace(built, work=work, work_all=work))).grade is grade


def test_twice_the_cores_are_twice_the_throughput() -> None:
    prediction = found(ask(full())).predictions[0]

    assert isinstance(prediction.after, Estimate)
    assert prediction.what == "most requests/s with 4 cores"
    assert prediction.after.point == pytest.approx(200.0)


def test_one_trial_a_level_is_enough_to_be_probable() -> None:
    assert found(ask(full(trials=1))).grade is Grade.PROBABLE


def test_one_cpu_of_a_larger_machine_is_full_when_the_service_may_use_no_other() -> None:
    assert found(ask(full(cores=1.0), cores=16)).statement.startswith("The one core is used at 50.0 /s")


def test_the_same_cpu_on_a_machine_that_is_free_to_use_is_not_full() -> None:
    answer = ask(replace(full(cores=1.0), cores_allotted=2.0))

    assert isinstance(answer, Absent)
    assert "0.99 of 2 cores" in answer.reason


def test_a_quota_bounds_what_it_may_use() -> None:
    quota = QuotaWatch("group", 0.4, 0.1, estimate(0.39, unit="cores"), UNWATCHED, UNWATCHED)
    built = full(cores=0.4, quotas=(quota,))

    assert isinstance(ask(replace(built, cores_allotted=1.0)), Finding)
    assert isinstance(ask(replace(full(cores=0.4), cores_allotted=1.0)), Absent)


def test_a_quota_of_one_service_does_not_bound_another_that_it_calls() -> None:
    quota = QuotaWatch("api.1", 0.4, 0.1, estimate(0.39, unit="cores"), UNWATCHED, UNWATCHED, service="api")
    own, called = (replace(process(0.3, waiting=14.0, hot=16), service=name) for name in ("api", "store"))
    alone = full(cores=0.4, quotas=(quota,), processes=(replace(own, cpu=estimate(0.6, unit="cores")),))
    both = full(cores=0.4, quotas=(quota,), processes=(own, called))

    assert isinstance(ask(replace(alone, cores_allotted=1.0)), Finding)
    assert isinstance(ask(replace(both, cores_allotted=1.0)), Absent)


@pytest.mark.parametrize(("used", "is_full"), [(1.69, False), (1.71, True)])  # limit 0.85 of 2
def test_85_percent_count_as_full(used: float, *, is_full: bool) -> None:
    answer = ask(full(processes=(process(used, waiting=14.0, hot=16),)))

    assert isinstance(answer, Finding) is is_full


@pytest.mark.parametrize(
    ("work_s", "waiting", "expected"),
    # full at 111, 121 and 138 a second; 100 came
    [(0.018, 0.05, Finding), (0.0165, 0.05, Finding), (0.0145, 0.05, Absent), (0.0145, 14.0, Finding)],
)
def test_a_request_too_cheap_to_fill_the_cores_contradicts_it(
    work_s: float, waiting: float, expected: type
) -> None:
    """Unless threads wait for a core: then they are full, and of more than what the requests take."""
    built = full(processes=(process(1.98, waiting=waiting, hot=2),))
    answer = ask(replace(built, work=estimate(work_s), work_all=estimate(work_s)))

    assert isinstance(answer, expected), answer
    if isinstance(answer, Finding):
        assert (answer.grade is Grade.SUSPECTED) == (work_s < 0.85 * WORK_S and waiting < 1)
        # 100/s of 14.5 ms are 1.45 cores: nothing is said of what a request takes or a core brings
        assert (
            ("of CPU per request" in answer.statement)
            == ("each brings" in answer.advice)
            == (work_s > 0.0145)
        )


def test_a_request_that_takes_more_cpu_under_load_leaves_full_cores_and_is_said_to() -> None:
    """100/s of 1.98 cores are 19.8 ms each, 10 ms over all levels; below 93 % it may be something else."""
    full_up, less = (
        replace(
            full(processes=(process(used, waiting=14.0, hot=16),)),
            work=estimate(0.01),
            work_all=estimate(0.01),
        )
        for used in (1.98, 1.8)
    )

    finding = found(ask(full_up))
    assert finding.grade is Grade.PROBABLE
    assert finding.statement == "All 2 cores are used (1.98) at 100 /s"
    work = next(e for e in finding.evidence if e.signal == "work.cpu")
    assert work.text.endswith("but 99 % of the cores are used (limit 93 %), and 14.0 threads wait for one")
    assert found(ask(less)).grade is Grade.SUSPECTED


def test_a_request_that_takes_more_cpu_than_with_fewer_users_is_said_to() -> None:
    """19.8 ms with one user and with 16; then 39.6 ms at half of the rate."""
    usual, slower = full(processes=(process(1.98, waiting=14.0, hot=16),)), (50.0,) * 3
    dearer = replace(usual.steps[-1], completed_trials=slower)

    assert "grows with the load" not in found(ask(usual)).explanation
    finding = found(ask(replace(usual, steps=(*usual.steps[:-1], dearer))))
    assert "A request takes 39.6 ms of CPU there, 19.8 ms at 1: it grows with the load" in finding.explanation


def test_full_cores_are_only_suspected_where_throughput_falls() -> None:
    built = full(processes=(process(1.98, waiting=14.0, hot=16),))
    first, *rest, last = built.steps
    higher = [replace(each, throughput_trials=(125.0,) * 3) for each in rest]

    falling = replace(built, steps=(first, *higher, last), work=estimate(0.01), work_all=estimate(0.01))
    assert found(ask(falling)).grade is Grade.SUSPECTED


def test_what_the_generator_takes_of_shared_cores_was_not_there() -> None:
    busy = generator(cpu_cores=0.28)
    processes = (process(1.72, waiting=14.0, hot=16),)
    shared = full(own=False, processes=processes, generator=busy, completed_trials=(86.0,) * 3)

    finding = found(ask(shared, cores=2))

    assert finding.grade is Grade.PROBABLE  # generator and service fill the cores that they share
    assert "(-0.2 %" in finding.evidence[2].text  # (2 - 0.28 - 0.02) / 0.0198 = 85.9; others take 0.02


def test_more_hot_threads_than_cores_that_wait_for_none_contradict_it() -> None:
    answer = ask(full(processes=(process(1.84, waiting=0.4, hot=16),)))

    assert isinstance(answer, Absent)
    assert "0.4 threads wait for a core (limit 0.5)" in answer.reason


def test_a_runtime_that_starts_as_many_threads_as_cores_lets_requests_wait_within_itself() -> None:
    """Go hands its two running threads to six in turn: each works, and none waits for a core."""
    finding = found(ask(full(processes=(process(1.88, waiting=0.1, hot=6),))))

    assert "94 % of the cores are used (limit 93 %)" in finding.evidence[3].text


def test_a_pool_as_large_as_the_cores_fills_them_without_anybody_waiting_for_one() -> None:
    finding = found(ask(full(processes=(process(1.98, waiting=0.05, hot=2),))))

    assert "no more threads work (2) than there are cores" in finding.evidence[3].text


def test_event_loops_one_for_each_core_are_the_cause_not_the_cores() -> None:
    verdict = diagnose.assess(facts(replace(blocked(0.2, k=2), cores_allotted=2.0), cores=2))

    assert [f.rule for f in verdict.findings if f.explained_by is None] == ["eventloop.blocked"]
    cores = next(f for f in verdict.findings if f.rule == ID)
    assert cores.explained_by == "eventloop.blocked"
    assert cores.grade is Grade.PROBABLE


def test_more_event_loops_than_cores_wait_for_them_and_the_cores_come_first() -> None:
    crowded = tuple(process(0.5, waiting=0.48, label=f"p{i}") for i in range(4))
    built = replace(blocked(0.2, k=2, processes=crowded), cores_allotted=2.0)

    verdict = diagnose.assess(facts(built, cores=2))

    assert [f.rule for f in verdict.findings if f.explained_by is None] == [ID]
    assert "eventloop.blocked" in {f.rule for f in verdict.findings if f.explained_by == ID}


def test_loops_that_are_blocked_elsewhere_too_are_not_folded_under_the_cores() -> None:
    crowded = tuple(process(0.5, waiting=0.48, label=f"p{i}") for i in range(4))
    many = replace(blocked(0.2, k=2, processes=crowded), label="k=4", cores_allotted=2.0)
    loop = replace(blocked(0.2), cores_allotted=2.0)

    verdict = diagnose.assess(facts(loop, many, cores=2))

    assert {f.rule for f in verdict.findings if f.explained_by is None} >= {ID, "eventloop.blocked"}


def test_a_loop_on_one_of_two_cores_leaves_the_other() -> None:
    answer = ask(replace(blocked(0.2), cores_allotted=2.0))

    assert isinstance(answer, Absent)
    assert "1.00 of 2 cores (50 %" in answer.reason


@pytest.mark.parametrize("rest", [{"processes": (process(0.04, hot=0),)}])
def test_a_lock_or_a_pool_uses_no_cpu(rest: dict[str, Any]) -> None:
    assert isinstance(ask(full(**rest)), Absent)


def test_a_load_that_never_filled_it_is_silent() -> None:
    steps = [step(n, n / 0.02, 0.02, processes=(process(0.98 * n, hot=n),)) for n in (1, 2)]

    answer = ask(curve(*steps, work=estimate(0.0196), think=0.0, cores_allotted=2.0))

    assert isinstance(answer, Absent)
    assert "last doubling" in answer.reason


@pytest.mark.parametrize(("before", "is_full"), [(1.90, True), (1.80, False)])
def test_cores_that_were_full_with_half_of_the_users_are_the_limit_though_it_still_grows(
    before: float, is_full: bool
) -> None:
    """Requests become cheaper with more users: 12 % more for each doubling, from the same cores."""
    shown = ((1, 50.0, 1.0), (16, 103.0, before), (32, 115.0, before), (64, 129.0, 1.96))
    steps = [
        step(users, rate, users / rate, processes=(process(used, waiting=users / 4, hot=users),))
        for users, rate, used in shown
    ]
    answer = ask(curve(*steps, work=estimate(0.0152), think=0.0, cores_allotted=2.0), cores=2)

    assert isinstance(answer, Finding) == is_full, answer
    if isinstance(answer, Finding):
        assert answer.grade >= Grade.PROBABLE


def test_answers_most_of_which_are_refusals_are_not_its_work() -> None:
    refused = Estimate("f", "share", 0.7, 0.68, 0.72, 3, 5000, "built")

    assert isinstance(ask(full(failed=refused)), Absent)


def test_time_taken_by_other_machines_leaves_it_probable() -> None:
    assert found(ask(full(steal=0.05))).grade is Grade.PROBABLE
    assert found(ask(full(steal=None))).grade is Grade.PROBABLE


def test_a_late_generator_leaves_it_probable() -> None:
    assert found(ask(full(generator=generator(verdict="limit")))).grade is Grade.PROBABLE


def test_without_the_cpu_of_processes_it_is_not_assessed() -> None:
    answer = ask(full(processes=()))

    assert isinstance(answer, NotAssessed)
    assert "watch them" in answer.reason


@pytest.mark.parametrize("work", [UNWATCHED, estimate(0.0)])
def test_without_the_cpu_time_of_a_request_it_is_suspected(work: Figure) -> None:
    """Background that hides what requests take leaves nothing of it."""
    finding = found(ask(replace(full(), work=work, work_all=work)))

    assert finding.grade is Grade.SUSPECTED
    assert finding.statement == "All 2 cores are used (1.98) at 100 /s"


def test_without_waiting_times_of_the_kernel_it_is_suspected() -> None:
    unread = replace(process(1.98, hot=16), waiting=UNWATCHED)

    assert found(ask(full(processes=(unread,)))).grade is Grade.SUSPECTED


def test_no_curve_is_not_assessed() -> None:
    assert isinstance(assess_after(Facts(2, (), ()), ()), NotAssessed)


@pytest.mark.parametrize("work_s", [0.0002, 0.02, 3.0])
def test_it_holds_for_other_times(work_s: float) -> None:
    assert found(ask(full(work_s=work_s))).grade is Grade.STRONG
