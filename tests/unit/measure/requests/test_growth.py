"""Memory and times over the trials of one life, from readings and requests whose growth is known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loadlens.estimate.pauses import Pauses
from loadlens.measure.requests import growth
from loadlens.measure.requests.kept import Requests, counted, step_rows
from loadlens.measure.requests.samples import Rows
from loadlens.measure.source import StepPlan, StreamPlan
from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.model.readings import ProcMetrics
from loadlens.model.recorded import ServiceProcess
from loadlens.model.result import EngineResult
from loadlens.model.shapes import HeapGrowth, MemoryBound
from loadlens.signals.read.trial_series import Series
from tests.records import engine_result

EDGES = np.arange(0.0, 5.25, 0.25)
BASE = 10 * 2.0**20


class Life:
    """Trials of 5 s one after the other, 7 s apart; each answers so many requests."""

    def __init__(
        self,
        took: Callable[[Any, float], Any],
        kept: float = 0.0,
        *,
        bound: float = np.inf,
        fresh: bool = False,
        left: float = 0.0,
    ) -> None:
        self.took, self.kept, self.bound, self.fresh, self.left = took, kept, bound, fresh, left
        self.answered, self.number = 0, 0
        self.cases: dict[float, Any] = {}

    def trial(self, users: float, requests: int) -> Life:
        number, begin = self.number, 7.0 * self.number
        due = np.linspace(0, 4.99, requests)
        took = self.took(self.answered + np.arange(requests), begin) + np.zeros(requests)
        none = np.zeros(0)
        each = Requests(due, took, np.zeros(requests))
        part = step_rows(each, counted(none, none, EDGES), 0, EDGES)
        stops = Pauses(none, none, 0.1, None)
        rows = Rows(0.0, stops, (), 0.01, 0.01, (part,), lambda _: each, none, none)
        seconds = np.arange(0.0, 5.1, 0.5)
        done = self.answered + requests * seconds / 5
        resident = BASE + np.minimum(self.bound, self.kept * done) + 65_536.0 * users  # threads of users
        threads = Series(seconds, 12 + users + np.floor(self.left * done))
        series = {ProcMetrics.rss_bytes: Series(seconds, resident), ProcMetrics.threads: threads}
        process = SimpleNamespace(service="s", series=series)
        by_interval = np.full(20, requests / 20)
        plan = StreamPlan(0, "load", False, True, users, 0.0, "keep", 5.0, (StepPlan(0, "a", "GET", "/a"),))
        source = SimpleNamespace(
            t0_monotonic_ns=round(begin * 1e9),
            services=(ServiceProcess("s", pid=number if self.fresh else 7),),
            result=EngineResult.from_json(engine_result(requests)),
        )
        built = SimpleNamespace(
            source=source,
            rows=rows,
            grid=SimpleNamespace(edges_s=EDGES, seconds=5.0),
            load=SimpleNamespace(plan=plan, ok=by_interval, not_ok=0 * by_interval),
            resources=SimpleNamespace(services=(process,)),
            memory=None,
        )
        case = self.cases.setdefault(
            users, SimpleNamespace(slug=f"u{users}", usable=[], reference=SimpleNamespace(plan=plan))
        )
        case.usable.append(built)
        self.answered, self.number = self.answered + requests, number + 1
        return self

    def ladder(self) -> list[Any]:
        """Users double; the highest level three times and the lowest once more at the end."""
        for users in (1, 2, 4, 8, 16, 32, 32, 32, 1):
            self.trial(users, 200 * users)
        return list(self.cases.values())


def constant(_: Any, __: float) -> Any:
    return 0.01


def test_what_each_request_leaves_is_measured_without_the_threads_of_users() -> None:
    cases = Life(constant, 8_192.0).ladder()

    (growing,) = growth.memory_growth(cases, cases)

    assert isinstance(growing.slope, Estimate)
    assert growing.slope.point == pytest.approx(8_192.0, rel=1e-6)
    assert growing.requests == 200 * (1 + 2 + 4 + 8 + 16 + 32 * 3 + 1)
    assert growing.grown_bytes == pytest.approx(8_192.0 * growing.requests)
    assert growing.late == pytest.approx(1.0)
    assert growing.follows == "requests"
    assert growth.memory_growth(cases, cases, called=["s"]) == ()
    assert growing.fallen_bytes == pytest.approx(0.0, abs=31 * 65_536.0)  # threads that ended
    assert type(growing.per_minute) is float  # a record is JSON
    level = BASE + 8_192.0 * growing.requests + 65_536.0
    assert growing.per_minute == pytest.approx(60 * 8_192.0 * growing.requests / 45 / level, rel=0.01)


def test_threads_that_requests_leave_behind_are_counted_without_those_of_users() -> None:
    cases = Life(constant, left=0.5).ladder()

    (threads,) = growth.handle_growth(cases, cases)

    assert isinstance(threads.slope, Estimate)
    assert threads.slope.point == pytest.approx(0.5, rel=0.01)
    assert threads.what == "threads"
    assert threads.requests == 200 * (1 + 2 + 4 + 8 + 16 + 32 * 3 + 1)
    assert threads.grown == pytest.approx(0.5 * threads.requests, rel=0.01)
    assert threads.end == pytest.approx(12 + 1 + 0.5 * threads.requests)
    assert threads.fallen == 0  # the 31 of users end between trials
    assert threads.late == pytest.approx(1.0, abs=0.05)
    assert growth.handle_growth(cases, cases, called=["s"]) == ()


def test_a_cache_that_fills_levels_off() -> None:
    cases = Life(constant, 8_192.0, bound=30 * 2.0**20).ladder()

    (growing,) = growth.memory_growth(cases, cases)

    assert growing.late == pytest.approx(0.0)


def test_memory_that_grows_with_the_clock_follows_it() -> None:
    life = Life(constant)
    cases = life.ladder()
    for case in cases:
        for trial in case.usable:
            (process,) = trial.resources.services
            seconds = np.arange(0.0, 5.1, 0.5)
            begin = trial.source.t0_monotonic_ns / 1e9
            process.series[ProcMetrics.rss_bytes] = Series(seconds, BASE + 1e6 * (begin + seconds))

    (growing,) = growth.memory_growth(cases, cases)

    assert growing.follows == "clock"
    assert isinstance(growing.slope, Estimate)
    assert growing.slope.point == pytest.approx(1e6)
    assert growing.slope.unit == "bytes/s"
    assert growing.late == pytest.approx(1.0)


def test_threads_alone_are_no_growth() -> None:
    cases = Life(constant).ladder()

    (growing,) = growth.memory_growth(cases, cases)

    assert growing.grown_bytes == 0.0


def test_the_heap_is_compared_by_thirds_and_the_limit_is_that_of_the_last_trial() -> None:
    # A saw-tooth of 2 bytes on a floor that rises by one with each of 9 trials of 11 readings.
    cases = Life(constant, 8_192.0).ladder()
    trials = sorted((t for case in cases for t in case.usable), key=lambda t: t.source.t0_monotonic_ns)
    for number, trial in enumerate(trials):
        used = Series(np.arange(0.0, 5.1, 0.5), number + np.array([0.0, 2.0] * 5 + [0.0]))
        bound = MemoryBound("heap", 1e9, 1e9 - number)
        trial.memory = SimpleNamespace(bounds={"s": bound}, heaps={"s": used})

    (growing,) = growth.memory_growth(cases, cases)

    assert growing.heap == HeapGrowth(floor_bytes=6.0, peak_bytes=6.0)  # trials 0 to 2, and 6 to 8
    assert growing.bound == MemoryBound("heap", 1e9, 1e9 - 8)


def test_few_readings_say_so() -> None:
    cases = list(Life(constant, 8_192.0).trial(1, 200).cases.values())

    (growing,) = growth.memory_growth(cases, cases)

    assert isinstance(growing.slope, Undecided)


def test_times_that_grow_with_the_data_are_measured_at_one_level() -> None:
    cases = Life(lambda number, _: 0.01 * (1 + number / 10_000)).ladder()

    (slowdown,) = growth.slowdowns(cases, cases)

    # One user: requests 0 to 200 first, and 200 after 200 x (1 + ... + 32 + 32 + 32) = 25,400 last.
    assert isinstance(slowdown.change, Estimate)
    assert slowdown.change.point == pytest.approx((1 + 25_500 / 10_000) / (1 + 100 / 10_000), rel=0.01)
    assert (slowdown.load, slowdown.requests, slowdown.seconds) == (1, 25_400, 56.0)
    assert slowdown.doubling == pytest.approx(10_000, rel=0.02)
    assert slowdown.falling == 0
    assert slowdown.rising >= 4
    assert slowdown.follows == "requests"


def test_times_that_grow_with_the_clock_follow_it() -> None:
    def later(number: Any, begin: float) -> Any:
        return 0.01 * np.exp(0.01 * (begin + 5 * (number - number[0]) / number.size))

    cases = Life(later).ladder()

    (slowdown,) = growth.slowdowns(cases, cases)

    assert slowdown.follows == "clock"


def test_a_cold_start_falls() -> None:
    def warmer(number: Any, begin: float) -> Any:
        return 0.01 * (1 + 5 * np.exp(-(begin + 5 * (number - number[0]) / number.size) / 8))

    cases = Life(warmer).ladder()

    (slowdown,) = growth.slowdowns(cases, cases)

    assert slowdown.falling >= 3
    assert slowdown.rising == 0
    assert isinstance(slowdown.change, Estimate)
    assert slowdown.change.point < 0.5


def test_times_that_stay_show_neither() -> None:
    rng = np.random.default_rng(5)
    cases = Life(lambda number, _: rng.exponential(0.01, number.size)).ladder()

    (slowdown,) = growth.slowdowns(cases, cases)

    assert isinstance(slowdown.change, Estimate)
    assert slowdown.change.low is not None
    assert slowdown.change.high is not None
    assert slowdown.change.low < 1.1  # medians of 200 exponential times scatter by 7 % each
    assert slowdown.change.high > 0.9
    assert slowdown.rising <= 1


def test_services_that_start_anew_for_each_trial_have_no_level_twice() -> None:
    cases = Life(constant, fresh=True).ladder()

    (slowdown,) = growth.slowdowns(cases, cases)

    assert isinstance(slowdown.change, NotMeasured)
