"""Quality of measurements, from records whose trials are known."""

from __future__ import annotations

import json
import math
from dataclasses import astuple, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.estimate.interval_counts import counts_from_values
from loadlens.measure import quality, whole_run
from loadlens.measure.services import request_counters
from loadlens.model.facts import Step
from loadlens.model.plain import read
from loadlens.model.recorded import Placement
from loadlens.model.result import ExternalCounts, ExternalError
from loadlens.signals.read import resources
from loadlens.signals.read.trial_series import Readings
from tests.unit.measure.records import Run, Trial, record
from tests.unit.whatif import services

SCHEMA = ["time_ns", "source", "metric", "labels", "unit", "value"]


def cpu_rows(cpu: str, *, user: float, system: float = 0.0, soft: float = 0.0) -> list[tuple[Any, ...]]:
    """Cores used of one processor, read each second."""
    text = json.dumps({"cpu": cpu})
    rates = {"cpu_user_s": user, "cpu_system_s": system, "cpu_softirq_s": soft}
    return [
        (int(at * 1e9), "host", metric, text, "s", rate * at)
        for at in range(16)
        for metric, rate in rates.items()
    ]


def generator_rows(cores: float) -> list[tuple[Any, ...]]:
    text = json.dumps({"service": "(generator)", "replica": 1, "pid": 9, "process": "loadlens"})
    rates = {"cpu_user_s": cores, "cpu_system_s": 0.0}
    return [
        (int(at * 1e9), "proc", metric, text, "s", rate * at)
        for at in range(16)
        for metric, rate in rates.items()
    ]


def with_rows(run: Run, rows: list[Any], **placement: Any) -> Run:
    placed = read(Placement, placement)
    return replace(
        run, trials=[replace(trial, further_readings=rows, placement=placed) for trial in run.trials]
    )


@cache
def one_level(trials: int = 1) -> Run:
    return record(
        lambda load, _: services.blocking_loop(load, work_s=0.02), users=(4,), trials=trials, seconds=9.0
    )


def only_step(run: Run) -> Step:
    (curve,) = whole_run.facts(run).curves
    (step,) = curve.steps
    return step


def test_each_processor_is_read_by_itself() -> None:
    rows = [*cpu_rows("0", user=0.5, system=0.25), *cpu_rows("1", user=0.1)]
    rows += cpu_rows("all", user=0.85, soft=0.2)

    used = resources.read(Readings(pl.DataFrame(rows, schema=SCHEMA, orient="row")), 3.0, 9.0)

    assert used.busy_by_cpu == pytest.approx({0: 0.75, 1: 0.1})
    assert used.soft == pytest.approx(0.2)


def thread_rows(tid: int, cores: float) -> list[tuple[Any, ...]]:
    own = {"service": "x", "replica": 1, "pid": 7, "process": "node"}
    text, of = json.dumps(own), json.dumps({**own, "tid": tid, "thread": "t"})
    rows = [(int(at * 1e9), "proc", "thread_run_s", of, "s", cores * at) for at in range(16)]
    return [*rows, *((int(at * 1e9), "proc", "cpu_user_s", text, "s", 0.9 * at) for at in range(16))]


@pytest.mark.parametrize(
    ("threads", "hot", "busiest"),
    # Of 0.9 cores; what no thread used was used by threads that have ended.
    [((0.72, 0.12, 0.01), 2, 0.8), ((0.9,), 1, 1.0), ((0.3, 0.3, 0.3), 3, 1 / 3), ((0.0,), 0, 0.0)],
)
def test_the_share_of_the_busiest_thread_is_that_of_its_process(
    threads: tuple[float, ...], hot: int, busiest: float
) -> None:
    rows = [row for tid, cores in enumerate(threads) for row in thread_rows(tid, cores)]

    (process,) = resources.read(Readings(pl.DataFrame(rows, schema=SCHEMA, orient="row")), 3.0, 9.0).processes

    assert process.hot_threads == hot
    assert process.busiest_thread == pytest.approx(busiest)


def test_a_thread_is_occupied_while_it_runs_and_while_it_waits_for_a_core() -> None:
    rows = [*thread_rows(1, 0.72), *thread_rows(2, 0.12)]
    waited = {1: 0.2, 2: 0.6}  # of each second
    rows += [
        (time_ns, source, "thread_runq_wait_s", of, unit, waited[tid] * time_ns / 1e9)
        for tid in waited
        for time_ns, source, metric, of, unit, _ in thread_rows(tid, 0.0)
        if metric == "thread_run_s"
    ]

    (process,) = resources.read(Readings(pl.DataFrame(rows, schema=SCHEMA, orient="row")), 3.0, 9.0).processes

    assert process.busiest_occupied == pytest.approx(0.72 + 0.2)


def test_others_and_soft_interrupts_are_those_of_one_trial() -> None:
    """0.9 with 0.8 of the network is less of others than 0.5 with 0.1."""
    used = [SimpleNamespace(others=0.9, soft=0.8), SimpleNamespace(others=0.5, soft=0.1)]
    trials = [
        SimpleNamespace(resources=resources_of)
        for resources_of in [*used, SimpleNamespace(others=None, soft=0.0)]
    ]

    most: Any = quality.most_others(SimpleNamespace(usable=trials))  # type: ignore[arg-type]

    assert (most.others, most.soft) == (0.5, 0.1)


def test_the_generators_cores_are_those_it_was_pinned_to_or_all_that_were_allowed() -> None:
    rows = [*cpu_rows("0", user=0.9), *cpu_rows("1", user=0.4), *generator_rows(0.3)]

    pinned = only_step(with_rows(one_level(), rows, generator_cpus=[1], cores_allowed=[0, 1]))
    free = only_step(with_rows(one_level(), rows, generator_cpus=None, cores_allowed=[0, 1]))
    unread = only_step(with_rows(one_level(), rows, cores_allowed=[0, 7]))

    of_pinned, of_free = pinned.quality.own_cores, free.quality.own_cores
    assert of_pinned is not None
    assert of_free is not None
    assert list(astuple(of_pinned)) == pytest.approx([1, 0.4, 0.3])
    assert list(astuple(of_free)) == pytest.approx([2, 1.3, 0.3])
    assert unread.quality.own_cores is None


def test_variation_is_that_of_the_trials_mean_response_times() -> None:
    run = one_level(3)

    variation = only_step(run).quality.variation

    logs = np.log([mean_response(trial) for trial in run.trials])
    low, middle, high = np.sort(logs)
    near = np.array([low, middle] if high - middle > middle - low else [middle, high])
    assert variation is not None
    assert variation.trials == 3
    assert variation.order_p == 1.0
    assert variation.without_one == pytest.approx(near.std(ddof=1), rel=1e-6)
    assert variation.between <= logs.std(ddof=1) <= math.hypot(variation.between, variation.within) + 1e-9


def mean_response(trial: Trial) -> float:
    """By hand from the trace: successes of the load that ended in the measured part."""
    assert trial.trace is not None
    kept = [
        r.done - r.due
        for r in trial.trace.requests
        if r.stream == 0 and trial.warmup_s <= r.done < trial.seconds
    ]
    return float(np.mean(kept))


def test_settling_keeps_the_order_of_the_runs_and_the_length_of_what_was_measured() -> None:
    settling = only_step(one_level(3)).quality.settling

    assert [trial.order for trial in settling] == [1, 2, 3]
    assert {trial.measured_s for trial in settling} == {6.0}  # 9 s less a third


def test_what_the_slow_part_does_to_the_median_is_told_beside_the_rest() -> None:
    # 4 intervals of 1 s: the first has 60 requests of 30 ms, the others 10 each of 10 ms.
    place = np.repeat([0, 1, 2, 3], [60, 10, 10, 10])
    times = counts_from_values(4, place, np.where(place == 0, 0.03, 0.01))
    whole = SimpleNamespace(response=times, service=times)
    grid = SimpleNamespace(starts_s=np.arange(4.0), edges_s=np.arange(5.0))
    load: Any = SimpleNamespace(all_steps=lambda: whole, external=None, grid=grid)

    assert quality._bias(load, 1.0) == pytest.approx(2.0, rel=0.01)  # 30 ms in place of 10 ms


def test_a_slow_part_that_chance_makes_does_nothing_to_the_median() -> None:
    # 20 requests before the cut, 80 behind it, where half take 9 and half 10 ms; `slow` of the 20 take 30 ms.
    def bias(slow: int) -> float | None:
        place = np.repeat([0, 1], [20, 80])
        values = np.concatenate([np.repeat([0.03, 0.008], [slow, 20 - slow]), np.repeat([0.009, 0.01], 40)])
        times = counts_from_values(2, place, values)
        whole = SimpleNamespace(response=times, service=times)
        grid = SimpleNamespace(starts_s=np.arange(2.0), edges_s=np.arange(3.0))
        load: Any = SimpleNamespace(all_steps=lambda: whole, external=None, grid=grid)
        return quality._bias(load, 1.0)

    # The limit: 10 + 3.5 * sqrt(20 * (1 + 20 / 80)) / 2 = 18.75 of the 20.
    assert bias(18) == 0.0
    assert bias(19) == pytest.approx(0.01 / 0.009 - 1, rel=0.01)


def test_quantiles_are_watched_with_their_neighbours_only_where_they_are_wide() -> None:
    for quantile in only_step(one_level()).quality.quantiles:
        figure: Any = quantile.figure
        is_wide = figure.low is None or figure.high is None or figure.high > 2 * figure.low
        assert is_wide or (quantile.lower is None and quantile.upper is None)


def test_a_closed_load_has_no_omission_and_little_is_as_the_engine_says() -> None:
    quality_of = only_step(one_level()).quality

    assert quality_of.omission is None
    assert [law.ratio for law in quality_of.little] == [1.0]


def test_lengths_that_a_program_calls_failures_are_summed_over_trials() -> None:
    def external(by_length: int, unexpected: int | None) -> Any:
        counts = ExternalCounts(answered=100, failed=2, unexpected_status=unexpected)
        load = SimpleNamespace(errors={"length": ExternalError(by_length)})
        return SimpleNamespace(name="tool", load=load, counts=counts)

    def told(*reports: Any) -> Any:
        case: Any = SimpleNamespace(loads=[SimpleNamespace(external=report) for report in reports])
        return quality._called_failed(case)

    both = told(external(90, 0), external(80, 1))

    assert (both.by_length, both.failed, both.unexpected, both.answered) == (170, 4, 1, 200)
    assert told(external(90, 0), external(80, None)).unexpected is None
    assert told(external(0, 0)) is None


def test_a_counter_that_goes_back_has_begun_anew() -> None:
    again = request_counters.Counter(np.array([0.0, 1.0, 3.5]), np.array([5.0, 10.0, 3.0]))

    assert (again.restarts, again.seconds_between) == (1, 3.5)
    assert request_counters.Counter(np.array([0.0, 1.0]), np.array([5.0, 5.0])).restarts == 0
