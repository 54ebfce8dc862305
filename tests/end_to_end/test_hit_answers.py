"""Checks of answers by `hit`, against a service whose answers follow from the number of the request."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal

import pytest

from loadlens.model.workload import Closed, Plan, Scenario, Step, Stream, Target
from loadlens.run.engine_trial import run_trial
from tests.end_to_end.hitting import LIMIT_S, environment

REQUESTS = 200


class Service(ThreadingHTTPServer):
    """Answers number n with {"n": n}; every fifth is bad, every eighth an error."""

    daemon_threads = True

    def __init__(self, answers: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), answers)
        self.numbers, self.lock = count(), Lock()
        self.seen: list[tuple[str, str | None, str | None]] = []

    def next_number(self) -> int:
        with self.lock:
            return next(self.numbers)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        number = self.server.next_number()
        body = json.dumps({"n": number, "state": "bad" if number % 5 == 0 else "good"}).encode()
        self.wfile.write(
            b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s"
            % (500 if number % 8 == 0 else 200, len(body), body)
        )

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def service() -> Iterator[Service]:
    yield from running(Service(Answers))


def running(server: Service) -> Iterator[Service]:
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def hit(service: Service, *arguments: str) -> subprocess.CompletedProcess[str]:
    url = f"http://127.0.0.1:{service.server_address[1]}/"
    command = [sys.executable, "-m", "loadlens", "hit", url, "-c", "4", "-n", str(REQUESTS), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment())


def test_each_check_counts_what_it_says_of_every_answer(service: Service) -> None:
    flags = ["json:state=good", r'regex:"n": \d+', "exists:gone", "size:>0", "latency:1h"]

    done = hit(service, "--json", *(word for flag in flags for word in ("--check", flag)))

    assert done.returncode == 3, done.stderr  # no answer has what `exists:gone` asks for
    result = json.loads(done.stdout)
    # Of the numbers 0 to 199, 25 divide by 8 and 40 by 5, 5 by both.
    errors, bad = 25, 40 - 5
    judged = REQUESTS - errors
    assert {check["name"]: (check["passed"], check["failed"]) for check in result["checks"]} == {
        "status 200 to 399": (judged, errors),
        'json state = "good"': (judged - bad, bad),
        'regex "n": \\d+': (judged, 0),
        "json gone exists": (0, judged),
        "size > 0 bytes": (judged, 0),
        "latency < 3600 s": (judged, 0),
    }
    for check in result["checks"]:
        law = check["passed"] + check["failed"] + check["not_judged"]
        assert law == result["requests"]["answered"] == REQUESTS, check
        assert len(check["samples"]) == min(check["failed"], 20)
        assert (check["first_s"] is None) == (check["failed"] == 0)
    requests = result["requests"]
    assert (requests["unexpected_status"], requests["check_failed"], requests["ok"]) == (errors, judged, 0)


def test_an_answer_that_is_only_late_is_a_success_and_said_to_be_late(service: Service) -> None:
    shown = hit(service, "--expect", "200,500", "--check", "latency:1ns")

    assert shown.returncode == 0, shown.stderr
    rows = [" ".join(line.split()) for line in shown.stdout.splitlines()]
    assert f"latency < 0.001 µs 0 {REQUESTS} 100 %" in rows
    assert "▲ 100 % missed latency < 0.001 µs" in shown.stdout
    assert "errors 0" in shown.stdout
    assert f"status 200 or 500 {REQUESTS} 0 0 %" in rows


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--check", "regex:(a"], "unclosed group"),
        (["--check", "latency:soon"], "--check"),
        (["--check", "nonsense:x"], "no kind of check 'nonsense'"),
        (["--check", "json:a"], "a check without a value to compare with"),
        (["--check", "json:a..b=1"], "has an empty name"),
        (["--check", "json:a=18446744073709551616"], "does not fit 64 bits"),
        (["--expect", "100"], "statuses of responses are from 200 to 599, got '100'"),
    ],
)
def test_a_check_that_cannot_be_starts_nothing(service: Service, flags: list[str], message: str) -> None:
    done = hit(service, *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert next(service.numbers) == 0


class Sessions(BaseHTTPRequestHandler):
    """Gives a session at /login, knows it at /account, and asks for credentials at /secret."""

    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        cookie, authorization = self.headers.get("Cookie"), self.headers.get("Authorization")
        with self.server.lock:
            self.server.seen.append((self.path, cookie, authorization))
        session = f"Set-Cookie: sid={self.server.next_number()}; Path=/\r\n" if self.path == "/login" else ""
        status = 200 if self.path != "/account" or (cookie or "").startswith("sid=") else 401
        head = f"HTTP/1.1 {status} X\r\n{session}Content-Length: 2\r\n\r\n"
        self.wfile.write(head.encode() + b"{}")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def sessions() -> Iterator[Service]:
    yield from running(Service(Sessions))


STUDY = """schema: 1
study: sessions
question: Who is logged in?
entry: http://127.0.0.1:{port}
auth: {{bearer: "{{{{env LOADLENS_TEST_TOKEN}}}}"}}
scenarios:
  visit:
    - {{name: login, get: /login}}
    - name: account
      get: /account
      auth: {{basic: {{user: alice, password: "{{{{env LOADLENS_TEST_PASSWORD}}}}"}}}}
    - {{name: open, get: /open, auth: none}}
trials: 1
experiments:
  visits: {{mix: visit, load: {{users: 2, iterations: 3, cookies: iteration}}}}
"""
PASSWORD, TOKEN = "pa55-w0rd-of-alice", "t0ken.of-nobody.else"
SECRETS = {"LOADLENS_TEST_PASSWORD": PASSWORD, "LOADLENS_TEST_TOKEN": TOKEN}


def run_study(service: Service, folder: Path, **secrets: str) -> subprocess.CompletedProcess[str]:
    (folder / "study.yaml").write_text(STUDY.format(port=service.server_address[1]))
    command = [sys.executable, "-m", "loadlens", "run", str(folder), "-o", str(folder / "run")]
    clean = {name: value for name, value in environment().items() if name not in SECRETS}
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * LIMIT_S, env=clean | secrets)


def test_a_session_lasts_for_its_iteration_and_no_secret_is_written(
    sessions: Service, tmp_path: Path
) -> None:
    done = run_study(sessions, tmp_path, **SECRETS)

    assert done.returncode == 0, done.stderr
    basic = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    login = [seen for seen in sessions.seen if seen[0] == "/login"]
    account = [seen for seen in sessions.seen if seen[0] == "/account"]
    assert login == [("/login", None, f"Bearer {TOKEN}")] * 6  # each iteration is a new session
    assert sorted(account) == [("/account", f"sid={number}", f"Basic {basic}") for number in range(6)]
    assert {seen[2] for seen in sessions.seen if seen[0] == "/open"} == {None}

    hidden = [
        PASSWORD,
        TOKEN,
        basic,
        *(base64.b64encode(text.encode()).decode() for text in (PASSWORD, TOKEN)),
    ]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name == "plan.json" for path in files)
    outputs = [done.stdout.encode(), done.stderr.encode(), *(path.read_bytes() for path in files)]
    assert not [secret for secret in hidden for text in outputs if secret.encode() in text]


@pytest.mark.parametrize(("cookies", "logins", "lost"), [("keep", 2, 0), ("iteration", 6, 0), ("off", 6, 6)])
def test_cookies_last_as_long_as_the_plan_says(
    sessions: Service, cookies: Literal["keep", "iteration", "off"], logins: int, lost: int
) -> None:
    port = int(sessions.server_address[1])
    steps = (Step("login", "GET", "/login"), Step("account", "GET", "/account"))
    stream = Stream(
        "load",
        "load",
        Target("127.0.0.1", port, f"127.0.0.1:{port}"),
        (Scenario("visit", 1.0, steps),),
        Closed(users=2, iterations=3),
        cookies=cookies,
    )

    result = run_trial(Plan(seed=1, streams=(stream,)))

    assert result["streams"][0]["requests"]["answered"] == 12
    assert result["streams"][0]["requests"]["unexpected_status"] == lost
    fresh = [seen for seen in sessions.seen if seen[0] == "/login" and seen[1] is None]
    assert len(fresh) == logins  # with `keep` each of the two users comes back with its cookie


def test_secrets_that_are_missing_are_named_before_anything_is_sent(
    sessions: Service, tmp_path: Path
) -> None:
    done = run_study(sessions, tmp_path)

    assert (done.returncode, done.stdout, sessions.seen) == (2, "", [])
    for name, line in (("LOADLENS_TEST_TOKEN", 5), ("LOADLENS_TEST_PASSWORD", 11)):
        assert f"environment variable {name} is not set" in done.stderr
        assert f"study.yaml:{line}" in done.stderr
    assert not (tmp_path / "run").exists()


def test_hit_keeps_sessions_and_takes_secrets_from_the_environment(sessions: Service, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{sessions.server_address[1]}/login"
    flags = [
        "-c",
        "2",
        "-n",
        "40",
        "--auth",
        "basic:alice:LOADLENS_TEST_PASSWORD",
        "-o",
        str(tmp_path / "run"),
    ]
    command = [sys.executable, "-m", "loadlens", "hit", url, *flags, "--cookies"]

    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env=environment() | SECRETS
    )

    assert done.returncode == 0, done.stderr
    basic = base64.b64encode(f"alice:{PASSWORD}".encode()).decode()
    assert {seen[2] for seen in sessions.seen} == {f"Basic {basic}"}
    assert len([seen for seen in sessions.seen if seen[1] is None]) == 2  # the first of each user
    texts = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [text for text in texts if PASSWORD.encode() in text or basic.encode() in text]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--auth", "bearer:LOADLENS_TEST_UNSET"], "is not set"),
        (["--auth", "s3cr3t-by-mistake"], "not a form of credentials"),
        (["--auth", "basic:alice"], "not a form of credentials"),
        (["--auth", "bearer:HOME", "-H", "authorization: x"], "credentials given twice"),
        (["--cookies", "-r", "10"], "cookies need users"),
    ],
)
def test_credentials_and_cookies_that_cannot_be_start_nothing(
    service: Service, flags: list[str], message: str
) -> None:
    done = hit(service, *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "s3cr3t" not in done.stderr


class Refusals(BaseHTTPRequestHandler):
    """Refuses every other request, in chunks, and sets a cookie."""

    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        if self.server.next_number() % 2:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        self.wfile.write(
            b"HTTP/1.1 503 Busy\r\nSet-Cookie: id=secret-cookie\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"8\r\nno free \r\na\r\nconnection\r\n0\r\n\r\n"
        )

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def test_failing_answers_are_quoted_on_the_screen_and_in_the_json_without_their_cookies() -> None:
    for service in running(Service(Refusals)):
        shown, as_json = hit(service), hit(service, "--json")

    assert f'503, {REQUESTS // 2} answers: "no free connection"' in shown.stdout
    (first, *rest) = json.loads(as_json.stdout)["failing_answers"]
    assert (first["status"], first["body"]) == (503, "no free connection")
    assert "Set-Cookie: (hidden)" in first["head"].splitlines()
    assert len(rest) <= 2
    assert "secret-cookie" not in shown.stdout + as_json.stdout
