"""Full threads, by gauge and by counting; rates are by the bounds of a closed loop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loadlens import diagnose
from loadlens.diagnose.rules.waiting import threads_pool_limit
from loadlens.model.facts import Curve
from loadlens.model.finding import Absent, Finding, Grade, NotAssessed
from tests.unit.diagnose.build import blocked, estimate, facts, process, times
from tests.unit.diagnose.long_holds import held_long, with_alone
from tests.unit.diagnose.waiting import (
    LOCK,
    POOL,
    THREADS,
    places,
    probe,
    renamed,
    waiting,
    with_places,
)

# 8 threads, each request takes 30 ms of one: 267/s; every probe waits as long as the load.


def threads(**more: Any) -> Curve:
    return waiting(
        **{"hold_s": 0.03, "base_s": 0.0, "size": 8, "coupling": 1.0, "exports": "threads", **more}
    )


def with_threads(built: Curve, counts: tuple[int, ...]) -> Curve:
    """Threads of the only process at each level."""
    steps = tuple(
        replace(s, processes=tuple(replace(p, threads=float(count)) for p in s.processes))
        for s, count in zip(built.steps, counts, strict=True)
    )
    return replace(built, steps=steps)


def assessed(built: Curve) -> Finding:
    answer = threads_pool_limit.assess(facts(built))
    assert isinstance(answer, Finding)
    return answer


def silence(built: Curve) -> str:
    answer = threads_pool_limit.assess(facts(built))
    assert isinstance(answer, Absent)
    return answer.reason


def test_busy_threads_at_their_bound_while_everything_waits_are_the_limit() -> None:
    finding = assessed(threads())

    assert finding.grade is Grade.PROBABLE  # first and last bytes were not timed
    assert finding.statement == "All 8 threads are taken: 267 /s, every further request waits for one"
    size = next(e for e in finding.evidence if e.signal == "pool.size")
    assert (size.value, size.text) == (8.0, "threads_busy 8, of threads_max 8 (limit 90 %)")
    assert "16 threads carry 533 /s at 30.0 ms" in finding.advice
    assert finding.impact == pytest.approx(1 - 8 / 32)


def test_other_names_and_times_give_the_same_finding() -> None:
    before = assessed(threads())

    assert assessed(renamed(threads())).grade is before.grade
    assert assessed(threads(hold_s=0.3)).impact == pytest.approx(before.impact)


def test_without_a_gauge_threads_that_no_longer_grow_say_so() -> None:
    finding = assessed(with_threads(threads(exports=""), (4, 5, 7, 11, 11, 11)))

    assert finding.grade is Grade.PROBABLE
    size = next(e for e in finding.evidence if e.signal == "pool.size")
    assert size.value == pytest.approx(8.0)  # 267/s x 30 ms
    assert size.low == pytest.approx(8 * (1 - 2**0.5 * 0.02))
    assert "11 threads at 32 users, 11 at 16 users" in size.text


def test_threads_of_a_database_are_none_of_the_service() -> None:
    """Sixty of them would be most of all, and idle."""
    built = with_threads(threads(exports=""), (4, 5, 7, 11, 11, 11))
    store = replace(process(0.1), threads=60.0, service="store", is_called=True)
    steps = tuple(replace(s, processes=(*s.processes, store)) for s in built.steps)

    assert assessed(replace(built, steps=steps)).grade is Grade.PROBABLE


def test_a_gauge_of_threads_that_serve_something_else_does_not_hide_them() -> None:
    """An executor for tasks by the clock holds none of the 8 requests that are at work at once."""
    counted = with_threads(threads(exports=""), (4, 5, 7, 11, 11, 11))
    other = places("threads", 0.3, None, 50.0, ("executor_active", "", "executor_max"))

    assert assessed(with_places(counted, other)).grade is Grade.PROBABLE


def test_of_two_full_gauges_the_one_with_as_many_as_are_at_work_counts() -> None:
    few = places("threads", 2.0, None, 2.0, ("inner_active", "", "inner_max"))

    finding = assessed(with_places(threads(), few))

    assert "8 threads" in finding.statement


def test_large_answers_leave_a_full_link_open_where_no_gauge_counts_threads() -> None:
    counts = (4, 5, 7, 11, 11, 11)

    assert assessed(with_threads(threads(exports="", answer_bytes=16_000.0), counts)).grade is Grade.PROBABLE
    assert assessed(with_threads(threads(exports="", answer_bytes=17_000.0), counts)).grade is Grade.SUSPECTED
    assert assessed(threads(answer_bytes=17_000.0)).grade is Grade.PROBABLE


def test_a_single_thread_is_found_as_well() -> None:
    finding = assessed(with_threads(threads(size=1, exports=""), (3, 3, 3, 3, 3, 3)))

    assert finding.statement == "Threads are all taken: 1 at once, 33.3 /s, every further request waits"


def test_a_thread_for_each_request_is_no_limit() -> None:
    assert "35 threads at 32 users" in silence(with_threads(threads(exports=""), (4, 5, 7, 11, 19, 35)))


def test_more_at_once_than_there_are_threads_are_admitted_by_something_else() -> None:
    assert "1 threads" in silence(with_threads(threads(exports=""), (1,) * 6))


def test_many_idle_threads_leave_it_suspected() -> None:
    assert assessed(with_threads(threads(size=2, exports=""), (60,) * 6)).grade is Grade.SUSPECTED


def limited(places_at_once: float, counts: tuple[int, ...]) -> Curve:
    """Everything is let through by the clock, so that so many requests of 20 ms are at work at once."""
    built = waiting(0.02 / places_at_once, base_s=0.02 * (1 - 1 / places_at_once), size=1, coupling=1.0)
    return with_threads(built, counts)


@pytest.mark.parametrize(
    ("at_once", "grade"),
    [(1.2, Grade.SUSPECTED), (1.05, Grade.PROBABLE), (1.9, Grade.PROBABLE), (2.4, Grade.SUSPECTED)],
)
def test_a_limiter_before_everything_lets_through_any_number(at_once: float, grade: Grade) -> None:
    """60/s x 20 ms is 1.2 at once, next to three steady threads; threads at work are a whole number."""
    assert assessed(limited(at_once, (3,) * 6)).grade is grade


@pytest.mark.parametrize(("at_once", "grade"), [(7.35, Grade.SUSPECTED), (7.1, Grade.PROBABLE)])
def test_a_large_number_is_no_nearer_to_a_whole_one(at_once: float, grade: Grade) -> None:
    """Any number beyond 5 lies within 10 % of a whole one."""
    assert assessed(limited(at_once, (11,) * 6)).grade is grade


def test_threads_that_were_begun_with_the_load_and_stay_are_a_number_of_their_own() -> None:
    assert assessed(limited(1.2, (3, 4, 4, 4, 4, 4))).grade is Grade.PROBABLE


def test_a_number_at_work_that_is_known_badly_agrees_with_any_and_is_not_clear() -> None:
    """8 at once, by a time alone that is known within 60 %: that would be 4 or 12 threads as well."""
    built = threads()
    quick = replace(built.steps[-1].classes[0], transfer=estimate(0.0001))
    top = replace(built.steps[-1], classes=(quick,), host_cpu=estimate(0.3, unit="cores"))
    gauged = replace(top, places=(*top.places, places("pool", 1, 0.0, 20, POOL)))
    sure = replace(built, steps=(*built.steps[:-1], gauged))
    first = replace(sure.steps[0], response=times(0.03, half=0.6))

    assert assessed(sure).grade is Grade.STRONG
    assert assessed(replace(sure, steps=(first, *sure.steps[1:]))).grade is Grade.PROBABLE


def test_one_thread_is_named_as_one() -> None:
    assert assessed(threads(size=1)).statement == (
        "The only thread is taken: 33.3 /s, every further request waits for it"
    )


def test_from_outside_it_is_suspected() -> None:
    assert assessed(threads(exports="", watched=False)).grade is Grade.SUSPECTED


def test_a_probe_that_does_not_wait_stands_against_it() -> None:
    assert "limit 0.5" in silence(threads(coupling=0.0))
    assert isinstance(threads_pool_limit.assess(facts(threads(coupling=0.45))), Absent)
    assert isinstance(threads_pool_limit.assess(facts(threads(coupling=0.55))), Finding)


def test_threads_that_fill_up_behind_a_small_pool_are_not_the_cause() -> None:
    """The probe waits at the highest level alone; 2 places of 24 threads: 2 at once."""
    built = waiting(0.03, base_s=0.0, size=2, users=(1, 2, 4, 8, 16, 32))
    last = replace(built.steps[-1], probes=(probe(0.3, delayed=1.0),))
    full = replace(built, steps=(*built.steps[:-1], last))

    reason = silence(with_places(full, places("threads", 24, None, 24, THREADS)))

    assert "limit 0.5" in reason


@pytest.mark.parametrize(
    "line", [places("pool", 2, 22, 2, POOL), places("lock", 1.0, 22, None, LOCK)], ids=["pool", "lock"]
)
def test_a_line_behind_the_threads_is_the_cause(line: Any) -> None:
    assert "line behind the threads" in silence(with_places(threads(), line))


def test_a_pool_behind_without_a_line_is_not() -> None:
    assert assessed(with_places(threads(), places("pool", 3, 0.0, 20, POOL))).grade is Grade.PROBABLE


def test_busy_threads_of_which_few_are_at_work_by_littles_law_wait_for_something() -> None:
    built = threads(size=2, exports="")
    crowded = with_places(built, places("threads", 24, None, 24, THREADS))

    assert "throughput x time alone is 2" in silence(crowded)


def test_free_threads_do_not_limit() -> None:
    assert "threads_busy 6" in silence(
        with_places(threads(exports=""), places("threads", 6, None, 8, THREADS))
    )


def test_busy_threads_that_stay_the_same_are_no_bound_without_a_line_of_their_own() -> None:
    """Something in front lets 267/s through: 8 are busy all over the plateau, of an unknown number."""

    def shown(queued: float | None) -> Curve:
        built = threads(exports="")
        busy = (places("threads", 8.0, queued, None, THREADS),)
        return replace(built, steps=tuple(replace(s, places=busy) for s in built.steps))

    assert assessed(shown(None)).grade is Grade.SUSPECTED
    assert assessed(shown(0.0)).grade is Grade.SUSPECTED
    assert assessed(shown(20.0)).grade is Grade.PROBABLE


def test_a_blocked_loop_and_full_cores_are_no_lack_of_threads() -> None:
    assert isinstance(threads_pool_limit.assess(facts(blocked(0.2))), Absent | NotAssessed)
    assert "computes" in silence(threads(processes=(process(1.0, waiting=3.0, hot=8),)))
    assert "full machine" in silence(threads(host_cpu=estimate(3.7, unit="cores")))


def test_a_gauge_alone_is_enough_where_no_probe_could_tell() -> None:
    built = threads()
    alone = replace(built, steps=tuple(replace(s, probes=()) for s in built.steps))

    finding = assessed(alone)

    assert finding.grade is Grade.PROBABLE
    assert any(r.rival == "line behind the threads" and r.ruled_out is None for r in finding.counter)


def test_with_neither_probe_nor_gauge_it_is_open() -> None:
    built = threads(exports="")
    alone = replace(built, steps=tuple(replace(s, probes=()) for s in built.steps))

    answer = threads_pool_limit.assess(facts(alone))

    assert isinstance(answer, NotAssessed)
    assert "needs a probe" in answer.reason


def test_it_is_named_before_what_it_causes() -> None:
    verdict = diagnose.assess(facts(threads()))

    named = {finding.rule: finding for finding in verdict.findings}
    assert named["threads.pool-limit"].explained_by is None
    assert named["saturation.plateau"].explained_by == "threads.pool-limit"


def test_a_load_that_did_not_fill_them_is_no_plateau() -> None:
    assert "no plateau" in silence(threads(size=64))


def test_threads_that_a_share_of_long_requests_holds_are_the_limit_by_their_mean_time() -> None:
    finding = assessed(held_long("threads", coupling=1.0))

    # 4 threads / 90 ms; the long ones hold them 0.2 x 410 of 90 ms; without them 4 / 10 ms.
    assert (
        finding.statement == "All 4 threads are taken: 44.4 /s; 20 % of requests hold them 91 % of the time"
    )
    assert "4 threads / 90.0 ms each = 44.4 /s, and 44.4 /s came out" in finding.explanation
    assert "20 % of POST /b hold one for 410 ms, the others for 10.0 ms" in finding.explanation
    assert "these then carry 400 /s of the others" in finding.advice


def test_the_limit_comes_before_the_path_that_takes_the_places() -> None:
    verdict = diagnose.assess(facts(held_long("threads", coupling=1.0)))

    assert [f.rule for f in verdict.findings if f.explained_by is None] == [
        "threads.pool-limit",
        "mixture.slow-path",
    ]


@pytest.mark.parametrize("alone_s", [0.03, 0.2])
def test_few_requests_of_one_user_with_too_few_or_many_long_ones_do_not_hide_the_limit(
    alone_s: float,
) -> None:
    finding = assessed(with_alone(held_long("threads", coupling=1.0), alone_s))

    (parallel,) = [e.text for e in finding.evidence if e.signal == "threads.parallelism"]
    assert parallel.startswith("throughput x time alone is 4 at work at once")


def test_threads_of_equal_requests_are_not_held_by_few() -> None:
    assert (
        "hold them"
        not in assessed(waiting(0.09, base_s=0.0, size=4, exports="threads", coupling=1.0)).statement
    )


def test_a_kind_of_request_that_takes_long_is_named_with_its_share() -> None:
    """Every fifth request is of a kind that takes 410 ms, the others take 10 ms."""
    built = waiting(0.09, base_s=0.0, size=4, exports="threads", coupling=1.0)
    steps = []
    for level in built.steps:
        wait_s = level.load / level.throughput_trials[0] - 0.09
        kinds = tuple(
            replace(
                kind,
                label=label,
                request=request,
                rate=estimate(rate, unit="1/s"),
                response=times(seconds + wait_s),
            )
            for kind in level.classes
            for label, request, rate, seconds in (
                ("b", "GET /report", 0.2 * level.throughput_trials[0], 0.41),
                ("c", "GET /item", 0.8 * level.throughput_trials[0], 0.01),
            )
        )
        steps.append(replace(level, classes=kinds))

    finding = assessed(replace(built, steps=tuple(steps)))

    assert "20 % (GET /report) hold one for 410 ms, the others for 10.0 ms" in finding.explanation


def sampled(with_one_user: float, *, at_once: float = 2.5, count: float = 10.0) -> Curve:
    """All of these threads are seen to be full, and so many at work with one user, whose request takes 30 ms.

    So many requests are at work at once, by throughput x time alone.
    """
    built = waiting(0.03 / at_once, base_s=0.03 * (1 - 1 / at_once), size=1, coupling=1.0)
    held = places("threads", count, None, count, ("threads at work:", "", "threads:"))
    alone = replace(held.held, mean=estimate(with_one_user, unit="threads"))
    return with_places(built, replace(held, seen_in="stacks", held_alone=alone))


def test_threads_of_which_each_request_takes_several_at_a_time_are_the_limit() -> None:
    """One user takes 4 at a time: 120 ms of threads for each request. 10 over 83.3 /s are 120 ms, too."""
    finding = assessed(sampled(4.0))

    assert finding.grade is Grade.PROBABLE  # first and last bytes were not timed
    assert finding.statement.startswith("All 10 threads are taken: 83.3 /s")
    (held,) = [e for e in finding.evidence if e.signal == "threads.held"]
    assert held.text == (
        "a request holds threads for 120 ms in all, 120 ms with one user (limit 1.25 times that)"
    )
    assert held.chip == "held 1.00 times as long"


@pytest.mark.parametrize("with_one_user", [0.5, 1.9])
def test_threads_that_requests_hold_for_longer_than_alone_wait_for_something(with_one_user: float) -> None:
    """120 ms under load, and 15 or 57 ms with one user: what is behind them is slow."""
    assert "a request holds threads for 120 ms in all" in silence(sampled(with_one_user))


def test_threads_that_are_held_somewhat_longer_leave_it_open() -> None:
    assert assessed(sampled(2.5)).grade is Grade.SUSPECTED  # 120 ms as against 75 ms


def test_threads_that_are_taken_several_at_a_time_may_be_more_than_users() -> None:
    """64 threads are 4 for each of 16 requests at once, of the 32 users."""
    assert assessed(sampled(4.0, at_once=16.0, count=64.0)).statement.startswith("All 64 threads are taken")
