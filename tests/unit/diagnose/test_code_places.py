"""Places in the code, from samples that are made by hand: which are named, with which counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from loadlens.diagnose.code_places import FEWEST, code_evidence
from loadlens.diagnose.rules.capacity_limits import healthy
from loadlens.model.finding import Finding, Grade
from loadlens.model.stacks import (
    LANGUAGES,
    CodeEvidence,
    Frame,
    SamplingFailure,
    SourceLine,
    Stack,
    StackSamples,
    ThreadSample,
    Wait,
)

APP = "/srv/shop/orders.py"
POOL = Frame("_worker", "concurrent.futures.thread", "/lib/thread.py", 81)
GET = Frame("get", "queue", "/lib/queue.py", 171)
SELECT = Frame("select", "selectors", "/lib/selectors.py", 468)
RUN = Frame("_run", "asyncio.events", "/lib/events.py", 80)
SERVE = Frame("main", "orders", APP, 90, is_own=True)
MOMENTS = 40
EVERY_S = 0.05
State = tuple[Stack, Wait]  # without a wait: it runs

AT_REST: State = ((POOL, GET), "lock")
LOOP_AT_REST: State = ((SERVE, SELECT), "events")


def own(function: str, line: int) -> Frame:
    return Frame(function, "orders", APP, line, is_own=True)


def working(*frames: Frame, wait: Wait = "") -> State:
    return (POOL, *frames), wait


def sampled(
    loaded: Callable[[int, int], State],
    threads: int,
    *,
    idle: Callable[[int], State] = lambda thread: AT_REST,
    moments: int = MOMENTS,
    lines: Sequence[SourceLine] = (),
    failures: Sequence[SamplingFailure] = (),
) -> StackSamples:
    """Return samples of one process: ten moments without load, then others with it."""
    samples = []
    for moment in range(-10, moments):
        for thread in range(threads):
            stack, wait = idle(thread) if moment < 0 else loaded(moment, thread)
            time_s = moment * EVERY_S + 0.01
            samples.append(ThreadSample(time_s, 7, "python3", thread, f"t-{thread}", not wait, wait, stack))
    return StackSamples(
        8.0, True, 0.0, moments * EVERY_S, tuple(samples), tuple(lines), tuple(failures), cores=0.1
    )


def limit(rule: str, grade: Grade = Grade.PROBABLE) -> Finding:
    return Finding(rule, grade, 0.9, "", "", "", (), (), "", "")


def evidence(
    stacks: StackSamples, rule: str | None = "waiting.none", *, is_full: bool = True
) -> CodeEvidence:
    return code_evidence([stacks], [] if rule is None else [limit(rule)], is_full=is_full)


def test_a_pool_that_sleeps_in_one_line_is_named_by_it() -> None:
    asleep = working(own("query", 41), wait="timer")
    stacks = sampled(lambda moment, thread: asleep, 8, lines=[SourceLine(APP, 41, "time.sleep(0.1)")])

    (place,) = evidence(stacks).places

    assert (place.kind, place.file, place.line, place.function) == ("works", APP, 41, "query")
    assert (place.samples, place.of_samples) == (8 * MOMENTS, 8 * MOMENTS)
    assert place.text == "8 of 8 threads at work sleep at query() orders.py:41 (320 of 320 samples)"
    assert place.source == "time.sleep(0.1)"


def test_a_service_and_the_program_that_it_calls_each_have_a_line() -> None:
    asks, answers = working(own("ask", 23), wait="socket"), working(own("answer", 30), wait="timer")
    stacks = sampled(lambda moment, thread: asks if thread < 4 else answers, 8)
    samples = tuple(replace(s, pid=8 if s.tid >= 4 else 7) for s in stacks.samples)

    places = evidence(replace(stacks, samples=samples)).places

    assert {(place.function, place.line, place.samples, place.of_samples) for place in places} == {
        ("ask", 23, 4 * MOMENTS, 4 * MOMENTS),
        ("answer", 30, 4 * MOMENTS, 4 * MOMENTS),
    }


def test_requests_and_the_threads_that_they_wait_for_each_have_a_line() -> None:
    """Nine requests wait for nine readers: neither are most of all eighteen."""
    reads = working(own("read", 50), wait="timer")
    collects = working(own("collect", 60), GET, wait="lock")
    stacks = sampled(lambda moment, thread: reads if thread < 9 else collects, 18)
    samples = tuple(
        replace(s, thread=f"reader-{s.tid}" if s.tid < 9 else f"request-{s.tid}") for s in stacks.samples
    )

    places = evidence(replace(stacks, samples=samples)).places

    assert {(place.line, place.text) for place in places} == {
        (50, "9 of 9 threads at work sleep at read() orders.py:50 (360 of 360 samples)"),
        (
            60,
            (
                "9 of 9 threads at work wait for a lock in queue.get, called from collect() orders.py:60 "
                "(360 of 360 samples)"
            ),
        ),
    }
    assert evidence(stacks).places == ()  # of one name: no pool has a place of its own


@pytest.mark.parametrize(("computes", "named"), [(8, ["match"]), (2, [])])
def test_where_threads_come_and_go_the_place_that_computes_is_named(computes: int, named: list[str]) -> None:
    running = working(own("screen", 54), own("match", 12))

    def loaded(moment: int, thread: int) -> State:
        if thread == moment % 8:  # one at a time, on its core for so many of ten moments
            return running if moment % 10 < computes else AT_REST
        return working(own("read", 30), wait="timer") if moment % 4 == 0 else AT_REST

    places = evidence(sampled(loaded, 8)).places

    assert [(place.kind, place.function) for place in places] == [("computes", name) for name in named]


def test_the_call_of_a_library_and_the_caller_are_named_with_the_line() -> None:
    library = Frame("get", "requests.api", "/lib/requests/api.py", 73)
    deeper = Frame("recv_into", "socket", "/lib/socket.py", 706)
    asking = working(own("view", 12), own("fetch", 20), library, deeper, wait="socket")

    (place,) = evidence(sampled(lambda moment, thread: asking, 4)).places

    assert place.call == "requests.api.get"
    assert place.text == (
        "4 of 4 threads at work wait for a socket in requests.api.get, called from fetch() orders.py:20 "
        "(from view() orders.py:12) (160 of 160 samples)"
    )


def test_where_most_wait_for_a_lock_the_place_of_the_other_is_named_too() -> None:
    waits, holds = working(own("query", 41), wait="lock"), working(own("query", 42), wait="timer")

    first, second = evidence(
        sampled(lambda moment, thread: holds if thread == moment // 4 % 8 else waits, 8)
    ).places

    assert (first.kind, first.line, first.samples) == ("works", 41, 7 * MOMENTS)
    assert first.text.startswith("7 of 8 threads at work wait for a lock at query() orders.py:41")
    assert (second.kind, second.line, second.samples, second.of_samples) == ("holds", 42, MOMENTS, MOMENTS)
    assert second.text.startswith("the one thread that is past it sleeps at query()")


def test_states_that_changed_around_a_sample_do_not_hide_what_the_others_wait_for() -> None:
    def states(unclear: int) -> StackSamples:
        waits, changed = (working(own("query", 41), wait=wait) for wait in ("lock", "other"))
        return sampled(lambda moment, thread: changed if moment % 10 < unclear else waits, 4)

    (mostly_clear,), (unclear,) = evidence(states(4)).places, evidence(states(5)).places

    assert mostly_clear.text.startswith("4 of 4 threads at work wait for a lock at query()")
    assert unclear.text.startswith("4 of 4 threads at work are at query()")


def test_one_thread_that_computes_is_named_with_its_share_of_the_samples() -> None:
    # an event loop that is at rest at every tenth moment
    hashing: State = ((SERVE, RUN, own("register", 31)), "")
    stacks = sampled(
        lambda moment, thread: LOOP_AT_REST if moment % 10 == 0 else hashing,
        1,
        idle=lambda thread: LOOP_AT_REST,
    )

    for rule in ("eventloop.blocked", "saturation.plateau"):
        (place,) = evidence(stacks, rule).places
        assert (place.function, place.line, place.samples) == ("register", 31, 36)

    assert evidence(stacks, "eventloop.blocked").places[0].text == (
        "100 % of the CPU samples are at register() orders.py:31, called from main() orders.py:90 "
        "(36 of 36 samples)"
    )


def test_code_that_computes_is_one_place_however_it_moves_from_line_to_line() -> None:
    at = [working(own("total", line)) for line in (12, 13, 14)]

    (place,) = evidence(sampled(lambda moment, thread: at[moment % 3], 2), "cpu.saturated").places

    assert (place.line, place.last_line, place.function) == (12, 14, "total")
    assert "at total() orders.py:12-14" in place.text


def test_threads_that_take_turns_in_an_interpreter_are_at_one_place() -> None:
    runs, waits = working(own("total", 12)), working(own("total", 12), wait="interpreter")

    (place,) = evidence(sampled(lambda m, t: runs if t == m % 8 else waits, 8), "cpu.saturated").places
    (at_work,) = evidence(sampled(lambda m, t: runs if t == m % 8 else waits, 8), "waiting.none").places

    assert (place.samples, place.of_samples) == (MOMENTS, MOMENTS)  # on a CPU: one of them at a time
    assert (at_work.samples, at_work.of_samples) == (8 * MOMENTS, 8 * MOMENTS)
    assert at_work.text.startswith("8 of 8 threads at work wait for their turn in the interpreter at total()")


@pytest.mark.parametrize(("wait", "rule"), [("socket", "waiting.none"), ("", "processor.none")])
def test_where_a_call_is_done_in_several_places_the_line_of_the_call_is_named(wait: Wait, rule: str) -> None:
    """Three calls, none of which holds half, below one line of the handler; a fourth stands next to it."""
    places = [
        working(own("handle", 20), own("deliver", 60), own(name, line), GET, wait=wait)
        for name, line in (("connect", 41), ("greet", 47), ("send", 53))
    ]
    other = working(own("handle", 25), own("store", 80), GET, wait=wait)
    stacks = sampled(lambda moment, thread: [*places, *places, other, other][(moment + thread) % 8], 1)

    (place,) = evidence(stacks, rule).places

    assert (place.function, place.line, place.samples, place.of_samples) == ("deliver", 60, 30, 40)


def test_a_line_whose_call_holds_half_and_no_more_is_not_named() -> None:
    calls = [
        working(own("handle", 20 + n % 2), own(f"call_{n}", 40 + n), GET, wait="socket") for n in range(8)
    ]
    stacks = sampled(lambda moment, thread: calls[moment % 8], 1)

    assert evidence(stacks).places == ()


def test_cpu_time_outside_own_code_counts_against_a_place() -> None:
    json = Frame("loads", "json", "/lib/json.py", 346)
    here, elsewhere = working(own("total", 12)), working(json)

    given = evidence(sampled(lambda m, t: here if m % 5 < 2 else elsewhere, 1), "cpu.saturated")

    assert given.places == ()  # 40 % of the CPU samples


@pytest.mark.parametrize("rule", ["waiting.none", "cpu.saturated"])
def test_a_thread_that_does_the_same_without_load_is_not_at_work(rule: str) -> None:
    flushes: State = ((own("flush", 5),), "timer")
    asleep = working(own("query", 41), wait="timer")

    given = evidence(
        sampled(
            lambda moment, thread: flushes if thread < 5 else asleep,
            8,
            idle=lambda thread: flushes if thread < 5 else AT_REST,
        ),
        rule,
    )

    assert [(place.line, place.of_samples) for place in given.places] == [(41, 3 * MOMENTS)]


def test_nothing_is_named_where_nothing_limits() -> None:
    stacks = sampled(lambda moment, thread: working(own("query", 41), wait="timer"), 8)

    assert evidence(stacks, None, is_full=False).lines == ()
    assert code_evidence([stacks], [limit(healthy.ID)], is_full=False).lines == ()
    suspected = [limit("waiting.none", Grade.SUSPECTED)]
    assert code_evidence([stacks], suspected, is_full=False).lines == ()


@pytest.mark.parametrize(
    ("rule", "is_named"),
    [("eventloop.blocked", True), ("db.pool", True), ("http.no-reuse", False), ("host.interference", False)],
)
def test_before_the_capacity_only_findings_on_work_and_waits_of_the_service_name_a_line(
    rule: str, is_named: bool
) -> None:
    stacks = sampled(lambda moment, thread: working(own("query", 41), wait="timer"), 8)

    assert bool(evidence(stacks, rule, is_full=False).places) == is_named


def test_nothing_is_named_on_too_few_samples() -> None:
    asleep = working(own("query", 41), wait="timer")
    one_less = sampled(lambda moment, thread: asleep, 1, moments=FEWEST - 1)
    few_moments = sampled(lambda moment, thread: asleep, 8, moments=9)

    assert evidence(one_less).places == ()
    assert evidence(one_less).why_none == "19 samples of threads at work in its own code, needs 20"
    assert evidence(few_moments).places == ()
    assert evidence(few_moments).why_none == (
        "one place holds 100 % of the threads at work, in 72 samples at 9 moments; needs 20 at 10"
    )
    assert evidence(sampled(lambda moment, thread: asleep, 1, moments=FEWEST)).places != ()


def test_threads_that_come_and_go_are_not_where_the_limit_is() -> None:
    # Poisson arrivals at a service that is at work a quarter of the time
    random_ = random.Random(3)
    busy = {(m, t) for m in range(MOMENTS) for t in range(8) if random_.random() < 0.25}
    at = working(own("query", 41), wait="timer")

    given = evidence(sampled(lambda m, t: at if (m, t) in busy else AT_REST, 8))

    assert given.places == ()
    assert given.why_none.startswith("its threads are often at rest: ")


def test_no_place_is_named_where_none_holds_most() -> None:
    places = [working(own("query", line), wait="timer") for line in (10, 20, 30)]

    given = evidence(sampled(lambda m, t: places[t % 3], 9))

    assert given.places == ()
    assert given.why_none == (
        "no place in its code holds most of the threads at work; the first one holds 33.3 %"
    )


@pytest.mark.parametrize(
    ("why", "help_"),
    [
        ("not permitted", "sudo sysctl kernel.yama.ptrace_scope=0"),
        ("py-spy is not installed", "pip install 'loadlens[lab]'"),
        ("perf is not installed", "sudo apt install linux-perf"),
        ("perf is not permitted", "sudo sysctl kernel.perf_event_paranoid=2"),
    ],
)
def test_a_missing_right_or_program_is_named_with_the_command(why: str, help_: str) -> None:
    blind: State = ((), "")
    stacks = sampled(
        lambda m, t: blind, 2, idle=lambda t: blind, failures=[SamplingFailure("python3", why, 3)]
    )

    (line,) = evidence(stacks).lines

    assert why in line
    assert help_ in line


def test_a_language_whose_frames_are_not_read_is_named() -> None:
    given = evidence(sampled(lambda m, t: ((), ""), 2, idle=lambda t: ((), "")))

    assert given.lines == (f"no line: the code of python3 was not read: {LANGUAGES}",)


def renamed_frame(frame: Frame) -> Frame:
    return replace(frame, function=f"x{frame.function}", file=frame.file.replace("orders", "a"))


def test_names_of_files_and_functions_change_nothing_but_names() -> None:
    waits, holds = working(own("query", 41), wait="lock"), working(own("query", 42), wait="timer")
    stacks = sampled(lambda m, t: holds if t == 0 else waits, 8)
    renamed = replace(
        stacks,
        samples=tuple(replace(s, stack=tuple(renamed_frame(f) for f in s.stack)) for s in stacks.samples),
    )

    before, after = evidence(stacks).places, evidence(renamed).places

    assert [(p.kind, p.line, p.samples) for p in before] == [(p.kind, p.line, p.samples) for p in after]


def test_a_record_without_stacks_says_nothing() -> None:
    assert code_evidence([], [limit("waiting.none")], is_full=True) == CodeEvidence()
