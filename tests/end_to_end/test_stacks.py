"""The line of code is named, on real services whose source says which line it must be.

One search of `explain` in full; of the other services one level of load, in a study that samples stacks.
"""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlens.diagnose.code_places import code_evidence
from loadlens.measure import whole_run
from loadlens.model.stacks import CodePlace
from loadlens.record import open_run
from loadlens.report import build
from loadlens.run.study_runner import run_study
from loadlens.study import parse, plan
from tests.calm import where_calm
from tests.end_to_end.explaining import explained, free_port, naming
from tests.end_to_end.running import assert_sound

SERVICES = Path(__file__).with_name("coded")
BUDGET = ("--budget", "30s", "--seed", "5")
STUDY = """\
schema: 1
study: coded
question: where is it?
services:
  web: {{start: "{start} $port", ready: {{get: /, status: 200, within: 60s}}}}
entry: web
trials: 1
fresh: run
stacks: on
experiments:
  full: {{load: {{users: 8, warmup: 300ms, duration: 300ms}}}}
"""


@pytest.fixture(scope="module", autouse=True)
def port_mapper() -> Iterator[None]:
    """Run the port mapper of the BEAM, which a node with a name would else start as a daemon."""
    program = shutil.which("epmd")
    process = None if program is None else subprocess.Popen([program])  # ends at once if there is one
    yield
    if process is not None:
        process.kill()
        process.wait()


def line_of(service: str, mark: str) -> int:
    """Return the number of the line of a service that ends with a mark."""
    lines = (SERVICES / service).read_text().splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith((f"# {mark}", f"// {mark}"))]
    return number


def places_of(answer: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(place["kind"], Path(place["file"]).name, place["line"]) for place in answer["code"]["places"]]


@where_calm
def test_threads_of_a_pool_that_all_sleep_are_named_by_their_line_and_no_figure_sees_it(
    tmp_path: Path,
) -> None:
    record_path, port = tmp_path / secrets.token_hex(4), free_port()  # of one attempt
    start = f"{sys.executable} {SERVICES / 'pool.py'} {port}"

    answer = explained(f"http://127.0.0.1:{port}/", "--start", start, *BUDGET, "-o", str(record_path))

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
    rates = {rung["users"]: rung["throughput_per_s"]["point"] for rung in answer["ladder"] if rung["trials"]}
    assert rates[measured.stacks["ladder"][-1].load] > 0.8 * max(rates.values())  # where the climb ended
    assert naming(str(SERVICES / "pool.py")) == []


def of_python(service: str, folder: Path) -> str:
    return f"{sys.executable} {SERVICES / service}"


def of_java(service: str, folder: Path) -> str:
    subprocess.run(["javac", "-d", str(folder), str(SERVICES / service)], check=True)
    return f"java -cp {folder} com.acme.shop.{Path(service).stem}"


def of_node(service: str, folder: Path) -> str:
    return f"node {SERVICES / service}"


def of_go(service: str, folder: Path) -> str:
    program = folder / Path(service).stem
    subprocess.run(["go", "build", "-o", str(program), service], cwd=SERVICES, check=True)
    return str(program)


def of_c(service: str, folder: Path) -> str:
    program = folder / Path(service).stem
    subprocess.run(["cc", "-O1", "-g", "-pthread", "-o", str(program), service], cwd=SERVICES, check=True)
    return str(program)


def of_elixir(service: str, folder: Path) -> str:
    own = secrets.token_hex(4)
    return f"elixir --sname shop-{own} --cookie {own} {SERVICES / service}"


def needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"no {program} here")


def places_in(record_path: Path, start: str) -> tuple[CodePlace, ...]:
    """Return the places that are named of a service at a level at which it is full."""
    study = record_path.with_suffix(".yaml")
    study.write_text(STUDY.format(start=start))
    run_study(plan.plan(parse.read(study)), record_path, cache=record_path.parent / "cache")
    record = open_run(record_path)
    assert_sound(record)
    (stacks,) = whole_run.measured(record).stacks.values()
    evidence = code_evidence(stacks, (), is_full=True)
    assert evidence.places, evidence
    return evidence.places


@pytest.mark.parametrize(
    ("service", "command", "expected"),
    [
        pytest.param("lock.py", of_python, [("works", "waits"), ("holds", "holds")]),
        pytest.param("connections.py", of_python, [("works", "waits"), ("holds", "mails")]),
        pytest.param("loop.py", of_python, [("works", "hashes")]),
        pytest.param("gate.py", of_python, [("works", "waits"), ("holds", "holds")]),
        pytest.param("Pool.java", of_java, [("works", "asleep")], marks=needs("javac")),
        pytest.param("loop.js", of_node, [("works", "hashes")], marks=needs("node")),
        pytest.param("hash.c", of_c, [("works", "hashes")], marks=needs("perf")),
        pytest.param("lock.go", of_go, [("works", "waits"), ("holds", "holds")], marks=needs("go")),
        pytest.param(
            "ledger.exs", of_elixir, [("works", "waits"), ("holds", "holds")], marks=needs("elixir")
        ),
    ],
)
@where_calm
def test_the_lines_that_a_service_is_full_at_are_named(
    service: str,
    command: Callable[[str, Path], str],
    expected: list[tuple[str, str]],
    tmp_path: Path,
) -> None:
    attempt = tmp_path / secrets.token_hex(4)
    places = places_in(attempt, command(service, tmp_path))

    assert [(place.kind, Path(place.file).name, place.line) for place in places] == [
        (kind, service, line_of(service, mark)) for kind, mark in expected
    ]
    assert all(place.source for place in places) or service.endswith(".java")
