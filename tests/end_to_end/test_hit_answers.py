"""What `hit` says of answers, check by check, against a service whose answers are known by their number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock, Thread
from typing import Any

import pytest

from tests.end_to_end.hitting import LIMIT_S, environment

REQUESTS = 200


class Service(ThreadingHTTPServer):
    """Answers number n with {"n": n}; every fifth is bad, every eighth an error."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.numbers, self.lock = count(), Lock()

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
    server = Service()
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

    assert done.returncode == 0, done.stderr
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
    assert f"latency < 0.001 us: {REQUESTS} of {REQUESTS} failed" in shown.stdout
    assert "no failures, but 100 % missed latency < 0.001 us" in shown.stdout
    assert f"status 200 or 500: all {REQUESTS} passed" in shown.stdout
    assert f"answered = ok {REQUESTS}\n" in shown.stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--check", "regex:(a"], "unclosed group"),
        (["--check", "latency:soon"], "--check"),
        (["--check", "nonsense:x"], "unknown kind of check 'nonsense'"),
        (["--check", "json:a"], "a check without what it compares"),
        (["--check", "json:a..b=1"], "has an empty name"),
        (["--expect", "100"], "not a final status: '100'"),
    ],
)
def test_a_check_that_cannot_be_starts_nothing(service: Service, flags: list[str], message: str) -> None:
    done = hit(service, *flags)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert next(service.numbers) == 0
