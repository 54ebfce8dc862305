"""What the sum service answers: numbers are added, and bad input is the client's fault."""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.topology import Entry
from loadlens.study import parse, plan
from loadlens.temporary import default_cache
from loadlens.testbed import Testbed, prepare
from tests.studies.standing import standing

STUDY = Path(__file__).parents[2] / "studies" / "sum"


@pytest.fixture(scope="module", params=[5_000_000, 100], ids=["kept", "capped at 100"])
def bed(request: pytest.FixtureRequest) -> Iterator[tuple[Testbed, int]]:
    """The study's service, up, keeping connections or not."""
    study = plan.plan(parse.read(STUDY), overrides={"kept": request.param})
    services = study.cases[0].services
    lacking = [program for service in services for program in service.needs if shutil.which(program) is None]
    if lacking:
        pytest.skip(f"sum needs {', '.join(lacking)}")
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder:
        prepared = prepare(services, cache=default_cache(), folder=STUDY)
        marker = f"test-{secrets.token_hex(6)}"
        scratch, logs = Path(folder) / "scratch", Path(folder) / "logs"
        with Testbed(services, prepared, marker=marker, scratch=scratch, logs=logs) as up:
            up.start()
            yield up, int(request.param)


def connect(bed: Testbed, port: str = "http") -> http.client.HTTPConnection:
    target = bed.target(Entry("api", port))
    return http.client.HTTPConnection(target.host, target.port, timeout=10)


def ask(
    connection: http.client.HTTPConnection, body: Any, method: str = "POST", path: str = "/api/sum"
) -> tuple[int, Any]:
    payload = body if isinstance(body, str) or body is None else json.dumps(body)
    connection.request(method, path, payload, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read()
    return response.status, json.loads(text) if text else None


@pytest.mark.parametrize(
    ("body", "status", "content"),
    [
        ({"a": 1, "b": 2}, 200, {"result": 3}),
        ({"a": -1.5, "b": 100}, 200, {"result": 98.5}),
        ({"a": 10**30, "b": 1}, 200, {"result": 10**30 + 1}),
        ({"a": 1.7e308, "b": 1.7e308}, 422, {"errors": {"detail": "Unprocessable Entity"}}),
        ({"a": "1", "b": 2}, 422, {"errors": {"detail": "Unprocessable Entity"}}),
        ({"a": 1}, 422, {"errors": {"detail": "Unprocessable Entity"}}),
        ("[1, 2]", 400, {"errors": {"detail": "Bad Request"}}),
        ('{"a": 1, "b"', 400, {"errors": {"detail": "Bad Request"}}),
    ],
)
def test_two_numbers_are_added_and_nothing_else_is(
    bed: tuple[Testbed, int], body: Any, status: int, content: Any
) -> None:
    assert ask(connect(bed[0]), body) == (status, content)


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/sum"), ("POST", "/api/difference")])
def test_another_method_or_path_is_not_found(bed: tuple[Testbed, int], method: str, path: str) -> None:
    assert ask(connect(bed[0]), None, method, path)[0] == 404


def test_a_connection_is_kept_as_long_as_the_study_says(bed: tuple[Testbed, int]) -> None:
    up, kept = bed
    connection = connect(up)
    answered = 0
    for _ in range(150):
        connection.request("POST", "/api/sum", '{"a": 1, "b": 2}', {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        answered += 1
        if response.will_close:
            break

    assert answered == min(kept, 150)


def test_each_answer_is_counted_once_with_its_time(bed: tuple[Testbed, int]) -> None:
    def totals() -> list[float]:
        connection = connect(bed[0], "metrics")
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        names = [f"sum_request_duration_milliseconds_{kind}" for kind in ("count", "sum")]
        return [sum(float(li.rpartition(" ")[2]) for li in lines if li.startswith(f"{n}{{")) for n in names]

    count, spent_ms = standing(totals)
    for body in ({"a": 1, "b": 2}, {"a": 1}, "["):
        ask(connect(bed[0]), body)
    after, spent_after_ms = standing(totals, lambda told: told[0] >= count + 3)

    assert after - count == 3
    assert 0 < spent_after_ms - spent_ms < 3 * 10_000
