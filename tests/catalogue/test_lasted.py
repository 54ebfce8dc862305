"""What specimens book of how long things really were, and what of it becomes the truth."""

from __future__ import annotations

import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from catalogue.asking import Answer
from catalogue.cases import case_of
from catalogue.families import FAMILIES
from catalogue.lasted import really
from catalogue.rows import Task
from catalogue.running import running

from catalogue import rows

NOTHING = {"times": 0, "ns": 0}


def books(**told: Any) -> dict[str, Any]:
    return {"holds": {}, "chosen_waits": NOTHING, "pauses": NOTHING, "cpu_ns": 5, "answered": {}} | told


def test_a_hold_that_was_longer_than_asked_for_lowers_the_capacity_with_it() -> None:
    known = FAMILIES["db-pool"].drawn(1).flawed
    asked = known.numbers["hold"].value

    real = really(known, [books(holds={"db": {"times": 4, "ns": round(4 * 1.25e9 * asked)}})])

    assert real.numbers["hold"].value == pytest.approx(1.25 * asked)
    assert real.numbers["capacity"].value == pytest.approx(known.numbers["capacity"].value / 1.25)
    assert real.numbers["size"] == known.numbers["size"]
    assert known.numbers["hold"].value == asked


def test_work_is_all_processor_time_by_what_it_was_spent_on() -> None:
    known = FAMILIES["cpu-threads"].drawn(1).flawed
    asked = known.numbers["work"].value

    real = really(known, [books(cpu_ns=round(1e9 * asked * 60), answered={"/work": 50, "/ping": 999})])

    assert real.numbers["work"].value == pytest.approx(1.2 * asked)
    assert real.numbers["capacity"].value == pytest.approx(known.numbers["capacity"].value / 1.2)


def test_chosen_waits_and_pauses_are_told_as_means_of_all_servers() -> None:
    known = FAMILIES["pauses+slow-path"].drawn(1).flawed
    first = books(chosen_waits={"times": 1, "ns": 200_000_000}, pauses={"times": 2, "ns": 300_000_000})
    second = books(chosen_waits={"times": 3, "ns": 900_000_000})

    real = really(known, [first, second])

    assert real.numbers["shift"].value == pytest.approx(1.1 / 4)
    assert real.numbers["length"].value == pytest.approx(0.15)


@pytest.mark.parametrize("lasted", [None, [], [books()]])
def test_what_never_happened_and_what_nobody_asked_stays_as_it_was_meant(lasted: Any) -> None:
    known = FAMILIES["pauses+slow-path"].drawn(1).flawed

    assert really(known, lasted) == known


def test_a_row_of_the_results_brings_its_truth_along() -> None:
    task = Task("db-lock", 1, "flawed", "C", 30.0)
    held = [books(holds={"db": {"times": 2, "ns": 100_000_000}})]

    row = rows.row(task, Answer({}, None, 1.0), subject="", others_busy=0.0, began="", lasted=held)

    assert case_of(row).known.numbers["hold"].value == pytest.approx(0.05)


def test_a_running_service_tells_it_and_what_really_was_is_never_shorter() -> None:
    known = FAMILIES["db-lock"].drawn(1).flawed
    with running(known.setup) as service:

        def ask(_: int) -> None:
            with urllib.request.urlopen(service.work_url, timeout=30) as answer:
                answer.read()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(20)))
        lasted = service.lasted()

    assert lasted[0]["holds"]["db"]["times"] == 20
    assert really(known, lasted).numbers["hold"].value >= known.numbers["hold"].value
