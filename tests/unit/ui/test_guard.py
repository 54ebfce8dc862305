"""A hostile page in another tab, and requests that no browser sends: none of them gets anything."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Iterator

import pytest

from loadlens.ui import guard, server
from loadlens.ui.server import MOST_CONNECTIONS, Server
from tests.unit.ui.pages import KEPT, asked, sent, served


@pytest.fixture(scope="module")
def page() -> Iterator[Server]:
    with served(KEPT, is_run=True) as running:
        yield running


def test_the_token_opens_a_session_whose_cookie_reads_and_does_nothing_else(page: Server) -> None:
    opened = asked(page, "/api/session", "POST")

    name, _, rest = opened.headers["Set-Cookie"].partition("=")
    cookie = f"{name}={rest.partition(';')[0]}"
    assert opened.status == 204
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(opened.headers["Set-Cookie"].split("; "))
    assert asked(page, "/api/runs", token=None, Cookie=cookie).status == 200
    assert asked(page, "/api/session", token=None, Cookie=cookie).json() == {"token": page.guard.token}
    assert asked(page, "/api/session", "POST", token=None, Cookie=cookie).status == 401


@pytest.mark.parametrize("path", ["/api/runs", "/api/session", "/api/runs/x", "/api/runs/x/stream"])
def test_nothing_is_read_without_a_token_or_with_another_one(page: Server, path: str) -> None:
    other = f"loadlens-{page.guard.port}=AAAA"

    assert asked(page, path, token=None).status == 401
    assert asked(page, path, token="AAAA").status == 401
    assert asked(page, path, token=None, Cookie=other).status == 401
    assert asked(page, path, token=None, Cookie=f"loadlens={page.guard.cookie}").status == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", "localhost.:{port}", ""],
)
def test_a_name_that_was_pointed_here_is_refused(page: Server, host: str) -> None:
    answer = asked(page, "/api/runs", Host=host.format(port=page.guard.port))

    assert answer.status == 403


def test_the_names_of_loopback_are_the_server_s_own(page: Server) -> None:
    hosts = [f"{name}:{page.guard.port}" for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]")]

    assert [asked(page, "/api/runs", Host=host).status for host in hosts] == [200] * 4


def test_two_hosts_or_none_are_refused(page: Server) -> None:
    own, token = f"Host: 127.0.0.1:{page.guard.port}\r\n", f"X-Loadlens-Token: {page.guard.token}\r\n"
    heads = [f"GET /api/runs HTTP/1.1\r\n{hosts}{token}\r\n" for hosts in ("", own + own)]

    answers = [sent(page, head.encode()) for head in heads]

    assert [answer and answer.status for answer in answers] == [403, 403]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},  # another port of this machine
    ],
    ids=str,
)
def test_another_page_is_refused_even_with_the_token(page: Server, headers: dict[str, str]) -> None:
    assert asked(page, "/api/runs", **headers).status == 403
    assert asked(page, "/api/session", "POST", **headers).status == 403


def test_a_request_of_the_page_itself_passes(page: Server) -> None:
    own = f"http://127.0.0.1:{page.guard.port}"

    assert asked(page, "/api/runs", Origin=own, Sec_Fetch_Site="same-origin").status == 200


def test_a_proxy_in_front_is_another_name_of_the_server() -> None:
    with served(KEPT, is_run=True, origins=("https://load.example.com",)) as behind:
        answer = asked(behind, "/api/runs", Host="load.example.com", Origin="https://load.example.com")
        other = asked(behind, "/api/runs", Host="load.example.com", Origin="http://load.example.com")

    assert (answer.status, other.status) == (200, 403)


def test_no_answer_lets_another_page_read_it(page: Server) -> None:
    answers = [asked(page, "/api/runs"), asked(page, "/nothing"), asked(page, "/api/runs", token=None)]

    for answer in answers:
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize(
    "path",
    [
        "/../../../etc/passwd",
        "/api/runs/../../etc/passwd",
        "/api/runs/..%2F..%2Fetc",
        "/api/runs/%2Fetc/trials/a/b",
        "/api/runs/{run}/trials/../block-1",
        "/api/runs/{run}/trials/..%2F..%2Falone-users-1/block-1",
        "/api/runs/{run}/trials/alone-users-1/..%2Fblock-1",
        "/api/runs/{run}/trials/alone-users-1/block-1%00",
        "//etc/passwd",
        "http://evil.example/api/runs",
    ],
)
def test_no_path_leads_out_of_the_records(page: Server, path: str) -> None:
    run = asked(page, "/api/runs").json()["single"]

    answer = asked(page, path.format(run=run))

    assert answer.status == 404
    assert b"root:" not in answer.body


def test_a_method_that_changes_nothing_here_is_refused(page: Server) -> None:
    answers = [asked(page, "/api/runs", method).status for method in ("PUT", "DELETE", "OPTIONS", "HEAD")]

    assert answers == [501] * 4


@pytest.mark.parametrize("header", [{"Content_Length": "5"}, {"Transfer_Encoding": "chunked"}], ids=str)
def test_no_request_has_a_body(page: Server, header: dict[str, str]) -> None:
    assert asked(page, "/api/session", "POST", **header).status == 413


def test_a_head_that_is_too_long_is_cut_off(page: Server) -> None:
    answer = asked(page, "/api/runs", X_Long="x" * 20_000)

    assert answer.status == 431


def test_a_head_that_comes_too_slowly_is_cut_off(page: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEAD_WITHIN_S", 0.2)

    answer = sent(page, b"GET / HTTP/1.1\r\nHost: ")  # and nothing more

    assert answer is not None
    assert answer.status == 431


def test_connections_are_bounded_and_free_again_once_they_end(page: Server) -> None:
    held = [
        socket.create_connection(("127.0.0.1", page.guard.port), timeout=20) for _ in range(MOST_CONNECTIONS)
    ]
    refused = asked(page, "/api/runs")
    for connection in held:
        connection.close()

    wanted = threading.Event()
    status = 503
    for _ in range(200):
        status = asked(page, "/api/runs").status
        if status == 200 or wanted.wait(0.02):
            break
    assert (refused.status, status) == (503, 200)


def test_the_policy_of_the_page_names_its_own_scripts_alone() -> None:
    text = "<script>let a = 1;</script><style>p{}</style><script type=module>run()</script>"

    policy = guard.page_policy(text.encode())

    def digest(of: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(of.encode()).digest()).decode()}'"

    assert f"script-src {digest('let a = 1;')} {digest('run()')};" in policy
    assert f"style-src {digest('p{}')};" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_secrets_are_long_and_new_for_each_server() -> None:
    first, other = guard.Guard(80), guard.Guard(80)

    assert len({first.token, first.cookie, other.token, other.cookie}) == 4
    assert len(base64.urlsafe_b64decode(first.token)) * 8 >= 128
    assert first.url.endswith(f"/#{first.token}")  # a fragment reaches no server
