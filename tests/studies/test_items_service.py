"""What the items service answers, whichever way it is built: one suite for all variants.

Statuses and bodies are those of an API that Phoenix' generators make (`mix phx.gen.json`) over an Ecto schema
with one required boolean.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.topology import Entry
from loadlens.testbed import Testbed
from tests.studies.standing import standing
from tests.studies.variants import running, variants_of

STUDY = Path(__file__).parents[2] / "studies" / "items"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: Any  # none: no body


@pytest.fixture(scope="module", params=variants_of(STUDY))
def bed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """The study's services, up, in one variant."""
    with running(STUDY, request.param) as up:
        yield up


def ask(bed: Testbed, method: str, path: str, body: Any = None, port: str = "http") -> Answer:
    target = bed.target(Entry("api", port))
    connection = http.client.HTTPConnection(target.host, target.port, timeout=10)
    payload = body if isinstance(body, str) or body is None else json.dumps(body)
    connection.request(method, path, payload, {"Content-Type": "application/json"} if payload else {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    is_json = response.headers.get("content-type", "").startswith("application/json")
    return Answer(
        response.status,
        {name.lower(): value for name, value in response.headers.items()},
        json.loads(text) if text and is_json else text or None,
    )


def make(bed: Testbed, value: bool = True) -> int:
    return int(ask(bed, "POST", "/api/items", {"item": {"value": value}}).content["data"]["id"])


def test_a_made_item_is_told_with_its_place(bed: Testbed) -> None:
    answer = ask(bed, "POST", "/api/items", {"item": {"value": True}})

    made = answer.content["data"]
    assert (answer.status, made["value"]) == (201, True)
    assert answer.headers["location"] == f"/api/items/{made['id']}"
    assert ask(bed, "GET", f"/api/items/{made['id']}").content == {"data": {"id": made["id"], "value": True}}


def test_a_value_that_is_not_given_is_false(bed: Testbed) -> None:
    answer = ask(bed, "POST", "/api/items", {"item": {}})

    assert (answer.status, answer.content["data"]["value"]) == (201, False)


@pytest.mark.parametrize(
    ("body", "status", "errors"),
    [
        ({"item": {"value": "blue"}}, 422, {"value": ["is invalid"]}),
        ({"item": {"value": 3}}, 422, {"value": ["is invalid"]}),
        ({"item": {"value": None}}, 422, {"value": ["can't be blank"]}),
        ({"thing": {}}, 400, {"detail": "Bad Request"}),
        ('{"item": ', 400, {"detail": "Bad Request"}),
    ],
)
def test_what_is_no_item_is_refused(bed: Testbed, body: Any, status: int, errors: Any) -> None:
    answer = ask(bed, "POST", "/api/items", body)

    assert (answer.status, answer.content) == (status, {"errors": errors})


@pytest.mark.parametrize(("written", "value"), [("true", True), ("1", True), ("false", False), ("0", False)])
def test_texts_that_mean_a_truth_value_are_cast(bed: Testbed, written: str, value: bool) -> None:
    assert ask(bed, "POST", "/api/items", {"item": {"value": written}}).content["data"]["value"] is value


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_item_is_changed(bed: Testbed, method: str) -> None:
    number = make(bed, value=True)

    changed = ask(bed, method, f"/api/items/{number}", {"item": {"value": False}})
    refused = ask(bed, method, f"/api/items/{number}", {"item": {"value": "blue"}})

    assert (changed.status, changed.content) == (200, {"data": {"id": number, "value": False}})
    assert refused.status == 422
    assert ask(bed, "GET", f"/api/items/{number}").content["data"]["value"] is False


def test_an_item_is_deleted_once(bed: Testbed) -> None:
    number = make(bed)

    first, second = (ask(bed, "DELETE", f"/api/items/{number}") for _ in range(2))

    assert (first.status, first.content) == (204, None)
    assert (second.status, second.content) == (404, {"errors": {"detail": "Not Found"}})


def test_the_list_holds_what_was_made(bed: Testbed) -> None:
    numbers = {make(bed) for _ in range(3)}

    answer = ask(bed, "GET", "/api/items")

    assert answer.status == 200
    assert numbers <= {item["id"] for item in answer.content["data"]}


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_is_not_there_is_404_and_what_is_no_id_400(bed: Testbed, method: str) -> None:
    body = {"item": {"value": True}} if method == "PUT" else None

    statuses = [ask(bed, method, f"/api/items/{number}", body).status for number in (10**9, "x", 10**30)]

    assert statuses == [404, 400, 400]


def test_each_answer_is_counted_once_with_its_time(bed: Testbed) -> None:
    def totals() -> tuple[float, float]:
        lines = ask(bed, "GET", "/metrics", port="metrics").content.splitlines()
        return tuple(  # type: ignore[return-value]  # of two
            sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name}_{kind}"))
            for name, kind in [("cowboy_request_duration_milliseconds", k) for k in ("count", "sum")]
        )

    count, spent_ms = standing(totals)
    for path in ("/api/items", "/api/items/999999999", "/nowhere"):
        ask(bed, "GET", path)
    ask(bed, "POST", "/api/items", '{"item": ')
    after, spent_after_ms = standing(totals, lambda told: told[0] >= count + 4)

    assert after - count == 4
    assert 0 < spent_after_ms - spent_ms < 4 * 10_000


def test_the_run_queue_and_the_processes_are_told(bed: Testbed) -> None:
    page = ask(bed, "GET", "/metrics", port="metrics").content

    names = {line.split("{")[0].split(" ")[0] for line in page.splitlines() if not line.startswith("#")}
    assert {"erlang_vm_system_counts_process_count", "erlang_vm_run_queue_total"} <= names
