"""What the single sign-on service answers, its switches off and on: real processes, a small database."""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loadlens import promql
from loadlens.model.topology import Entry, Scalar
from loadlens.study import parse, plan
from loadlens.temporary import default_cache
from loadlens.testbed import Testbed, calibrate, missing, prepare
from tests.calm import where_calm
from tests.studies.standing import standing

STUDY = Path(__file__).parents[2] / "studies" / "sso"
ROWS, PEOPLE = 1000, 50


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    content: Any


def up(folder: Path, **switches: Scalar) -> Testbed:
    """The study's service on a database of its own; it is up when the testbed is entered."""
    overrides: dict[str, Scalar] = {"rows": ROWS, "people": PEOPLE, **switches}
    service = plan.plan(parse.read(STUDY), overrides=overrides).cases[0].services[0]
    lacking = missing([service], STUDY)
    if lacking:
        pytest.skip(f"sso needs {', '.join(one.program for one in lacking)}")
    prepared = prepare([service], cache=default_cache(), folder=STUDY)
    found = calibrate(service, prepared, on_line=lambda _: None)
    return Testbed(
        [service],
        prepared,
        marker=f"test-{secrets.token_hex(6)}",
        scratch=folder / "scratch",
        logs=folder / "logs",
        values={found.name: found.value},
    )


@pytest.fixture(scope="module", params=["none", "scan"])
def plain(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    """As the study's table has it, and with the look-ups that no index serves: both answer the same."""
    cost = str(request.param)
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder, up(Path(folder), cost=cost) as bed:
        bed.start()
        yield bed


@pytest.fixture(scope="module")
def guarded() -> Iterator[Testbed]:
    """The serialised section, which requests wait for 100 ms at most, three at once, bans cut short."""
    switches: dict[str, Scalar] = {
        "cost": "serialised",
        "section": "1s",
        "timeout": "100ms",
        "most": 3,
        "shortcut": True,
    }
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder, up(Path(folder), **switches) as bed:
        bed.start()
        yield bed


def ask(bed: Testbed, path: str, body: Any = None, *, port: str = "http") -> Answer:
    target = bed.target(Entry("api", port))
    connection = http.client.HTTPConnection(target.host, target.port, timeout=20)
    payload = body if isinstance(body, str) or body is None else json.dumps(body)
    method = "GET" if body is None else "POST"
    connection.request(method, path, payload, {"Content-Type": "application/json"} if payload else {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    is_json = "json" in response.headers.get("content-type", "")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, json.loads(text) if text and is_json else text)


def rows(bed: Testbed) -> dict[str, int]:
    return dict(ask(bed, "/actuator/rows", port="management").content)


def counted(bed: Testbed) -> float:
    page = ask(bed, "/actuator/prometheus", port="management").content
    name = "http_server_requests_seconds_count"
    return sum(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name))


def test_it_begins_with_the_rows_that_the_study_asks_for(plain: Testbed) -> None:
    found = rows(plain)

    assert (found["logs"], found["usergroup_user"], found["usergroups"]) == (ROWS, PEOPLE, 2)


def test_a_log_is_written_down(plain: Testbed) -> None:
    before = rows(plain)["logs"]

    answer = ask(plain, "/api/v1/logs/", {"userId": 7, "event": "came"})

    assert answer.status == 201
    assert len(answer.content["id"]) == 36
    assert rows(plain)["logs"] == before + 1


def test_a_name_is_given_once(plain: Testbed) -> None:
    name = secrets.token_hex(8)
    body = {"username": name, "email": "somebody@example.org"}

    first, second = (ask(plain, "/api/v1/users/", body) for _ in range(2))

    assert (first.status, first.content["username"]) == (201, name)
    assert first.content["id"] > PEOPLE
    assert second.status == 409


def test_whoever_is_in_the_group_and_not_banned_is_let_in_and_all_asking_is_written_down(
    plain: Testbed,
) -> None:
    def enter(name: str, group: str) -> tuple[int, Any]:
        answer = ask(plain, "/api/v1/users/authorize", {"username": name, "group": group})
        return answer.status, answer.content.get("authorized")

    before = rows(plain)["login_history"]
    asked = [enter("user3", "members"), enter("user3", "staff"), enter("nobody", "members")]
    ask(plain, "/api/v1/users/ban", {"username": "user3"})
    banned = enter("user3", "members")
    ask(plain, "/api/v1/users/unban", {"id": 3})
    again = enter("user3", "members")

    assert asked == [(200, True), (403, False), (404, None)]
    assert (banned, again) == ((403, False), (200, True))
    assert rows(plain)["login_history"] == before + 4  # nobody knows who `nobody` is


def test_bans_are_set_and_taken_back_however_often(plain: Testbed) -> None:
    banned = [ask(plain, "/api/v1/users/ban", {"username": "user5"}) for _ in range(2)]
    after = rows(plain)["banned"]
    taken_back = [ask(plain, "/api/v1/users/unban", {"id": 5}) for _ in range(2)]

    assert [(one.status, one.content) for one in banned] == [(200, {"username": "user5"})] * 2
    assert [(one.status, one.content) for one in taken_back] == [(200, {"id": 5, "banned": False})] * 2
    assert (after, rows(plain)["banned"]) == (1, 0)
    assert ask(plain, "/api/v1/users/ban", {"username": "nobody"}).status == 404
    assert ask(plain, "/api/v1/users/unban", {"id": 10**9}).status == 404


def test_a_website_is_registered_once_and_by_somebody(plain: Testbed) -> None:
    url = f"https://{secrets.token_hex(8)}.example.org/"

    first, second = (ask(plain, "/api/v1/websites/", {"ownerId": 1, "url": url}) for _ in range(2))
    nobodys = ask(plain, "/api/v1/websites/", {"ownerId": 10**9, "url": f"{url}2"})

    assert (first.status, first.content["url"]) == (201, url)
    assert (second.status, nobodys.status) == (409, 409)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/api/v1/logs/", {"event": "no user"}, 422),
        ("/api/v1/logs/", {"userId": 1, "event": "x" * 256}, 422),
        ("/api/v1/users/", {"username": " ", "email": "a@example.org"}, 422),
        ("/api/v1/users/", {"username": "x" * 65, "email": "a@example.org"}, 422),
        ("/api/v1/users/authorize", {"username": "user1"}, 422),
        ("/api/v1/users/ban", {}, 422),
        ("/api/v1/users/unban", {"id": "seven"}, 400),
        ("/api/v1/users/ban", '{"username": ', 400),
        ("/api/v1/websites/", {"ownerId": 1}, 422),
        ("/api/v1/nothing/", {}, 404),
    ],
)
def test_what_is_not_as_it_should_be_is_the_clients_fault(
    plain: Testbed, path: str, body: Any, status: int
) -> None:
    assert ask(plain, path, body).status == status


def test_answers_are_counted_once_each_and_looking_counts_nothing(plain: Testbed) -> None:
    before = standing(lambda: counted(plain))

    for path in ("/api/v1/users/ban", "/api/v1/logs/"):
        ask(plain, path, {})
    rows(plain)
    ask(plain, "/actuator/health", port="management")

    assert standing(lambda: counted(plain), lambda told: told >= before + 2) - before == 2


def test_its_jvm_its_threads_and_its_connections_are_told(plain: Testbed) -> None:
    page = ask(plain, "/actuator/prometheus", port="management").content

    names = {line.split("{")[0].split(" ")[0] for line in page.splitlines() if not line.startswith("#")}
    assert {
        "jvm_memory_used_bytes",
        "jvm_threads_live_threads",
        "jvm_compilation_time_ms_total",
        "tomcat_threads_busy_threads",
        "tomcat_threads_config_max_threads",
        "hikaricp_connections_active",
        "hikaricp_connections_pending",
        "hikaricp_connections_acquire_seconds_sum",
    } <= names


def test_whatever_the_dashboard_asks_for_is_told(plain: Testbed) -> None:
    ask(plain, "/api/v1/users/ban", {"username": "user1"})
    ask(plain, "/api/v1/users/unban", {"id": 1})
    page = ask(plain, "/actuator/prometheus", port="management").content
    names = {line.split("{")[0].split(" ")[0] for line in page.splitlines() if not line.startswith("#")}

    dashboard = json.loads((STUDY / "grafana" / "dashboard.json").read_text())
    asked = {
        metric
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
        for metric in promql.metrics_of(promql.parse(target["expr"].replace("$__rate_interval", "5s")))
    }

    assert len(asked) > 10
    assert asked - names <= {"jvm_gc_pause_seconds_sum"}  # begins with the first collection


def test_a_trial_is_warmed_and_its_rows_are_seen_to(plain: Testbed) -> None:
    def data(verb: str, port: str, *numbers: int) -> subprocess.CompletedProcess[str]:
        address = f"127.0.0.1:{plain.target(Entry('api', port)).port}"
        command = [sys.executable, str(STUDY / "service" / "data.py"), verb, address, *map(str, numbers)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    before = rows(plain)
    warmed = data("warm", "http", 20, PEOPLE)
    after = rows(plain)
    wrong = data("verify", "management", 21, PEOPLE, ROWS)

    assert (warmed.returncode, warmed.stdout.strip()) == (0, "")
    made = {table: after[table] - before[table] for table in ("users", "websites", "login_history", "logs")}
    assert made == {"users": 20, "websites": 20, "login_history": 20, "logs": 20}
    assert wrong.returncode == 1
    assert " rows, not " in wrong.stdout


@where_calm
def test_one_at_a_time_goes_through_the_section_and_the_others_give_up_in_time(guarded: Testbed) -> None:
    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(ask, guarded, "/api/v1/users/authorize", {"username": "user1", "group": "members"})
            for _ in range(3)
        ]
        answers = [one.result() for one in asked]

    # one holds the section for 1 s of CPU time; the others wait for it and give up after 100 ms
    assert sorted(one.status for one in answers) == [200, 503, 503]
    late = [one for one in answers if one.status == 503]
    assert [(one.content, one.headers["retry-after"]) for one in late] == [
        ({"error": "took too long"}, "1")
    ] * 2


def test_more_than_so_many_at_once_are_refused_at_once(guarded: Testbed) -> None:
    with ThreadPoolExecutor(12) as pool:
        asked = [
            pool.submit(ask, guarded, "/api/v1/users/authorize", {"username": "user1", "group": "members"})
            for _ in range(12)
        ]
        answers = [one.result() for one in asked]

    refused = [one for one in answers if one.content == {"error": "too many requests at once"}]
    assert refused
    assert {one.status for one in refused} == {503}
    assert sum(one.status == 200 for one in answers) <= 3  # those that were let in


@where_calm
def test_a_ban_of_somebody_banned_does_not_wait_for_the_section(guarded: Testbed) -> None:
    ask(guarded, "/api/v1/users/ban", {"username": "user9"})
    began = time.monotonic()
    for _ in range(5):
        assert ask(guarded, "/api/v1/users/ban", {"username": "user9"}).status == 200
    again = time.monotonic() - began

    assert rows(guarded)["banned"] == 1
    assert again < 5 * 1.0  # the section alone would take as long


def test_classes_come_from_the_archive(plain: Testbed) -> None:
    (running,) = plain.processes()

    assert "-XX:SharedArchiveFile=target/sso.jsa" in running.command
    mapped = Path(f"/proc/{running.pid}/maps")
    if not mapped.exists() or shutil.which("java") is None:
        pytest.skip("no /proc here")
    assert "/target/sso.jsa" in mapped.read_text()
