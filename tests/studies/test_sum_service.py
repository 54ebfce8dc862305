"""What the sum service answers in each variant: numbers are added, and bad input is the client's fault."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.topology import Entry
from loadlens.testbed import Testbed
from tests.studies.standing import standing
from tests.studies.variants import running, variants_of

STUDY = Path(__file__).parents[2] / "studies" / "sum"


@pytest.fixture(scope="module", params=[5_000_000, 100], ids=["kept", "capped at 100"])
def kept(request: pytest.FixtureRequest) -> int:
    """Requests after which a connection ends."""
    return int(request.param)


@pytest.fixture(scope="module", params=variants_of(STUDY))
def bed(request: pytest.FixtureRequest, kept: int) -> Iterator[Testbed]:
    """The study's service, up, in one variant."""
    with running(STUDY, request.param, kept=kept) as up:
        yield up


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
    bed: Testbed, body: Any, status: int, content: Any
) -> None:
    assert ask(connect(bed), body) == (status, content)


@pytest.mark.parametrize(("method", "path"), [("GET", "/api/sum"), ("POST", "/api/difference")])
def test_another_method_or_path_is_not_found(bed: Testbed, method: str, path: str) -> None:
    assert ask(connect(bed), None, method, path)[0] == 404


def test_a_connection_is_kept_as_long_as_the_study_says(bed: Testbed, kept: int) -> None:
    connection = connect(bed)
    answered = 0
    for _ in range(150):
        connection.request("POST", "/api/sum", '{"a": 1, "b": 2}', {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        answered += 1
        if response.will_close:
            break

    assert answered == min(kept, 150)


def test_each_answer_is_counted_once_with_its_time(bed: Testbed) -> None:
    def totals() -> list[float]:
        connection = connect(bed, "metrics")
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        names = [f"sum_request_duration_milliseconds_{kind}" for kind in ("count", "sum")]
        return [sum(float(li.rpartition(" ")[2]) for li in lines if li.startswith(f"{n}{{")) for n in names]

    count, spent_ms = standing(totals)
    for body in ({"a": 1, "b": 2}, {"a": 1}, "["):
        ask(connect(bed), body)
    ask(connect(bed), None, "GET", "/nowhere")
    after, spent_after_ms = standing(totals, lambda told: told[0] >= count + 4)

    assert after - count == 4
    assert 0 < spent_after_ms - spent_ms < 4 * 10_000
