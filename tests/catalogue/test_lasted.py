"""Durations that specimens record while they run, and the true values derived from them."""

from __future__ import annotations

import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from catalogue.asking import Answer
from catalogue.cases import case_of
from catalogue.families import FAMILIES
from catalogue.lasted import as_measured
from catalogue.rows import Task
from catalogue.running import running

from catalogue import rows

NOTHING = {"times": 0, "ns": 0}


def durations(**changed: Any) -> dict[str, Any]:
    return {"holds": {}, "chosen_waits": NOTHING, "pauses": NOTHING, "cpu_ns": 5, "answered": {}} | changed


def test_a_hold_that_was_longer_than_asked_for_lowers_the_capacity_with_it() -> None:
    specimen = FAMILIES["db-pool"].drawn(1).flawed
    asked = specimen.numbers["hold"].value

    real = as_measured(specimen, [durations(holds={"db": {"times": 4, "ns": round(4 * 1.25e9 * asked)}})])

    assert real.numbers["hold"].value == pytest.approx(1.25 * asked)
    assert real.numbers["capacity"].value == pytest.approx(specimen.numbers["capacity"].value / 1.25)
    assert real.numbers["size"] == specimen.numbers["size"]
    assert specimen.numbers["hold"].value == asked


def test_work_is_all_processor_time_by_what_it_was_spent_on() -> None:
    specimen = FAMILIES["cpu-threads"].drawn(1).flawed
    asked = specimen.numbers["work"].value

    real = as_measured(
        specimen, [durations(cpu_ns=round(1e9 * asked * 60), answered={"/work": 50, "/ping": 999})]
    )

    assert real.numbers["work"].value == pytest.approx(1.2 * asked)
    assert real.numbers["capacity"].value == pytest.approx(specimen.numbers["capacity"].value / 1.2)


def test_chosen_waits_and_pauses_are_reported_as_means_over_all_servers() -> None:
    specimen = FAMILIES["pauses+slow-path"].drawn(1).flawed
    first = durations(chosen_waits={"times": 1, "ns": 200_000_000}, pauses={"times": 2, "ns": 300_000_000})
    second = durations(chosen_waits={"times": 3, "ns": 900_000_000})

    real = as_measured(specimen, [first, second])

    assert real.numbers["shift"].value == pytest.approx(1.1 / 4)
    assert real.numbers["length"].value == pytest.approx(0.15)


@pytest.mark.parametrize("lasted", [None, [], [durations()]])
def test_what_never_happened_keeps_its_specified_value(lasted: Any) -> None:
    specimen = FAMILIES["pauses+slow-path"].drawn(1).flawed

    assert as_measured(specimen, lasted) == specimen


def test_a_row_of_the_results_brings_its_truth_along() -> None:
    task = Task("db-lock", 1, "flawed", "C", 30.0)
    held = [durations(holds={"db": {"times": 2, "ns": 100_000_000}})]

    row = rows.row(task, Answer({}, None, 1.0), subject="", others_busy=0.0, began="", lasted=held)

    assert case_of(row).truth.numbers["hold"].value == pytest.approx(0.05)


def test_a_running_service_reports_durations_no_shorter_than_specified() -> None:
    specimen = FAMILIES["db-lock"].drawn(1).flawed
    with running(specimen.setup) as service:

        def ask(_: int) -> None:
            with urllib.request.urlopen(service.work_url, timeout=30) as answer:
                answer.read()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(20)))
        lasted = service.lasted()

    assert lasted[0]["holds"]["db"]["times"] == 20
    assert as_measured(specimen, lasted).numbers["hold"].value >= specimen.numbers["hold"].value
