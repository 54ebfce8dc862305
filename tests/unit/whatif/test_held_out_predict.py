"""Predictions of services whose truth is simulated by other code (tests/unit/whatif/services.py)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from loadlens import engine
from loadlens.whatif import held_out
from tests.unit.whatif import made
from tests.unit.whatif.made import Kind
from tests.unit.whatif.services import Load, Trace, behind_lock, blocking_loop, fair_threads

SHOWN = ("throughput", "response_time.mean", "probe")


def loops(load: Load, processes: int) -> Trace:
    return blocking_loop(load, processes=processes)


def threads(load: Load, _: int, cores: int = 2) -> Trace:
    return fair_threads(load, cores=cores)


def lock(load: Load, _: int) -> Trace:
    return behind_lock(load)


def one(record: Any) -> dict[str, Any]:
    slug = next(case["slug"] for case in record.study["cases"] if case["held_out"])
    return held_out.predict(record, [slug])[slug]


def assert_close(content: dict[str, Any], true: dict[str, float], within: dict[str, float]) -> None:
    figures = made.figures(content)
    for metric, share in within.items():
        figure = figures[metric]
        assert figure["point"] == pytest.approx(true[metric], rel=share), metric
        assert figure["low"] <= true[metric] <= figure["high"], (metric, figure, true[metric])


def test_more_users_of_an_event_loop_are_predicted() -> None:
    record = made.record(loops, held_out=[(1, 40)])

    content = one(record)

    assert content["structures"][0]["kind"] in ("loop", "pool")  # all time is work: they are the same
    assert_close(content, made.truth(loops, 1, 40), dict.fromkeys(SHOWN, 0.1))


def test_more_workers_than_were_measured_are_predicted() -> None:
    record = made.record(
        loops, measured=[(1, 1), (1, 5), (1, 20), (2, 1), (2, 5), (2, 20)], held_out=[(4, 20)]
    )

    content = one(record)

    assert content["structures"][0]["policy"] == "random"  # each request lands on any worker
    assert_close(
        content, made.truth(loops, 4, 20), {"throughput": 0.1, "response_time.mean": 0.15, "probe": 0.3}
    )


def test_work_that_moves_into_threads_is_predicted() -> None:
    record = made.record(
        loops,
        held_out=[(1, 20)],
        held_kind=Kind({"workers": 1, "threads": 40}, env={"WORK": "threads"}),
        cores=2,
    )

    content = one(record)

    assert_close(content, made.truth(threads, 1, 20), {"throughput": 0.1, "response_time.mean": 0.1})
    probe = made.figures(content)["probe"]
    assert probe["high"] < 0.1  # behind the loop it was above 3 s


def test_shared_cores_are_not_taken_for_a_loop() -> None:
    record = made.record(partial(threads, cores=2), held_out=[(1, 40)], cores=2)

    content = one(record)

    assert content["structures"][0]["kind"] == "cores"
    assert_close(content, made.truth(threads, 1, 40), {"throughput": 0.05, "response_time.mean": 0.1})


def test_a_lock_that_probes_pass_is_a_section() -> None:
    record = made.record(lock, held_out=[(1, 40)])

    content = one(record)

    assert (content["structures"][0]["kind"], content["structures"][0]["width"]) == ("section", 1)
    assert_close(content, made.truth(lock, 1, 40), dict.fromkeys(SHOWN, 0.1))


def test_intervals_hold_what_short_trials_measure() -> None:
    """Of 12 studies of the same service, each with its own noise, at least 9 intervals hold the truth."""
    inside = 0
    for seed in range(12):
        record = made.record(
            loops, held_out=[(1, 10)], trials=1, seconds=12.0, first_seed=10_000 * (seed + 1)
        )
        figure = made.figures(one(record))["response_time.mean"]
        true = made.truth(loops, 1, 10)["response_time.mean"]
        inside += figure["low"] <= true <= figure["high"]

    assert inside >= 9


def test_the_same_record_gives_the_same_prediction() -> None:
    record = made.record(loops, held_out=[(1, 10)], trials=1, seconds=12.0)

    assert one(record) == one(record)


def test_the_model_that_is_kept_can_be_simulated_again() -> None:
    content = one(made.record(loops, held_out=[(1, 10)], trials=1, seconds=12.0))

    outcome = engine.simulate(content["model"])

    rate = outcome["streams"][0]["all"]["rate_per_s"]
    assert rate == pytest.approx(made.figures(content)["throughput"]["point"], rel=0.1)


def test_a_prediction_names_the_trials_that_it_rests_on_and_no_held_out_one() -> None:
    record = made.record(loops, held_out=[(1, 10)], trials=2, seconds=12.0)

    content = one(record)

    assert {i["case"] for i in content["inputs"]} == {
        c["slug"] for c in record.study["cases"] if not c["held_out"]
    }
    assert {i["trial"] for i in content["inputs"]} == {"block-1", "block-2"}


def test_another_environment_that_nothing_explains_is_not_predicted() -> None:
    record = made.record(loops, held_out=[(1, 20)], held_kind=Kind(env={"WORK": "threads"}), trials=1)

    content = one(record)

    assert "env of web differs, and its `model:` does not say" in content["undecided"]
    assert content["predicted"] == []


def test_without_a_light_case_the_time_alone_is_not_known() -> None:
    record = made.record(loops, measured=[(1, 5), (1, 20)], held_out=[(1, 40)], trials=1)

    assert "measure users: [1] too" in one(record)["undecided"]


def test_a_load_that_changes_is_not_predicted() -> None:
    record = made.record(loops, held_out=[(1, 20)], trials=1)
    held = next(case for case in record.study["cases"] if case["held_out"])
    held["workload"]["profile"] = {"segments": [], "repeats": False}

    assert "changes over time" in one(record)["undecided"]


def test_a_service_that_is_not_ours_is_not_predicted() -> None:
    record = made.record(loops, held_out=[(1, 20)], trials=1)
    for case in record.study["cases"]:
        case["entry"] = {"service": None, "port": None, "url": "http://example.com"}

    assert "does not start" in one(record)["undecided"]
