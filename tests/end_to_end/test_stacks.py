"""`explain` names the line of code, on real services whose source says which line it must be."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadlens.measure import whole_run
from loadlens.record import open_run
from loadlens.report import build
from tests.calm import where_calm
from tests.end_to_end.explaining import explained, free_port, naming
from tests.end_to_end.running import assert_sound

SERVICES = Path(__file__).with_name("coded")
BUDGET = ("--budget", "60s", "--seed", "5")  # a search ends earlier where it is certain


def line_of(service: str, mark: str) -> int:
    """Return the number of the line of a service that ends with a mark."""
    lines = (SERVICES / service).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith((f"# {mark}", f"// {mark}"))]
    return number


def explained_service(service: str, *arguments: str) -> dict[str, Any]:
    port = free_port()
    start = f"{sys.executable} {SERVICES / service} {port}"
    return explained(f"http://127.0.0.1:{port}/", "--start", start, *BUDGET, *arguments)


def places_of(answer: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(place["kind"], Path(place["file"]).name, place["line"]) for place in answer["code"]["places"]]


@where_calm
def test_threads_of_a_pool_that_all_sleep_are_named_by_their_line_and_no_figure_sees_it(
    tmp_path: Path,
) -> None:
    record_path = tmp_path / secrets.token_hex(4)  # of one attempt
    answer = explained_service("pool.py", "-o", str(record_path))

    assert places_of(answer) == [("works", "pool.py", line_of("pool.py", "asleep"))]
    (place,) = answer["code"]["places"]
    assert " threads at work sleep at query() pool.py:" in place["text"]
    assert place["source"].startswith("time.sleep(")
    record = open_run(record_path)
    slugs = {trial.case.slug for trial in record.trials if trial.case.slug.startswith("stacks-")}
    measured = whole_run.measured(record)
    assert_sound(record)
    assert slugs
    planned = sum(trial["case"] not in slugs for trial in record.study["trials"])
    assert build.report(record).badges[0].text == f"{planned} of {planned} trials valid"
    assert slugs.isdisjoint(case.slug for case in measured.cases)
    assert {rung["curve"] for rung in answer["ladder"]} == {"ladder"}
    assert measured.stacks[-1].load == max(rung["users"] for rung in answer["ladder"])
    assert naming(str(SERVICES / "pool.py")) == []


@pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK here")
@where_calm
def test_a_jvm_is_named_by_its_line_too(tmp_path: Path) -> None:
    subprocess.run(["javac", "-d", str(tmp_path), str(SERVICES / "Pool.java")], check=True)
    port = free_port()
    start = f"java -cp {tmp_path} com.acme.shop.Pool {port}"

    answer = explained(f"http://127.0.0.1:{port}/", "--start", start, *BUDGET)

    assert places_of(answer) == [("works", "Pool.java", line_of("Pool.java", "asleep"))]
    (place,) = answer["code"]["places"]
    assert place["call"] == "java.lang.Thread.sleep"
    assert " threads at work sleep in java.lang.Thread.sleep, called from query() Pool.java:" in place["text"]


@where_calm
def test_a_lock_that_is_held_during_a_call_names_both_lines(tmp_path: Path) -> None:
    answer = explained_service("lock.py")

    assert places_of(answer) == [
        ("works", "lock.py", line_of("lock.py", "waits")),
        ("holds", "lock.py", line_of("lock.py", "holds")),
    ]


@where_calm
def test_a_hash_on_an_event_loop_is_named_by_its_line(tmp_path: Path) -> None:
    answer = explained_service("loop.py")

    assert [(file, line) for _, file, line in places_of(answer)] == [
        ("loop.py", line_of("loop.py", "hashes"))
    ]


@where_calm
def test_connections_of_a_pool_that_are_held_during_another_call_are_named(tmp_path: Path) -> None:
    answer = explained_service("connections.py")

    assert places_of(answer) == [
        ("works", "connections.py", line_of("connections.py", "waits")),
        ("holds", "connections.py", line_of("connections.py", "mails")),
    ]


@where_calm
def test_no_line_of_a_service_that_is_not_full_is_named(tmp_path: Path) -> None:
    answer = explained_service("pool.py", "--rate-cap", "15", "--max-users", "2")

    assert answer["code"]["places"] == []
    assert answer["code"]["why_none"] == ""


@where_calm
def test_without_stacks_nothing_is_sampled(tmp_path: Path) -> None:
    record = tmp_path / secrets.token_hex(4)
    answer = explained_service("pool.py", "--budget", "15s", "--no-stacks", "-o", str(record))

    assert answer["code"] == {"places": [], "why_none": "", "cost": ""}
    assert not any(trial.case.slug.startswith("stacks") for trial in open_run(record).trials)
