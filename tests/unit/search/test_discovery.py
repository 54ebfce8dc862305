"""Discovery of a search, at a service that writes down every request."""

from __future__ import annotations

import http.server
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pytest

from loadlens.errors import TestbedError
from loadlens.machine import listening_sockets
from loadlens.machine.listening_sockets import Listening, Process
from loadlens.machine.peers import Peers
from loadlens.model.search import Aim, Bounds, Find
from loadlens.model.topology import Outside
from loadlens.model.workload import Step
from loadlens.present import words
from loadlens.search import discovery, step_cases
from loadlens.search.discovery import (
    NO_SUCH_PATH,
    Discovered,
    discover,
    lines,
    refuse_redirects,
    with_peers,
    with_probe,
)

METRICS = "# TYPE hits_total counter\nhits_total 5\n# TYPE threads gauge\nthreads 7\n"
PAGE = "<!doctype html>\n<html><body>all pages are this one</body></html>\n"
EVERYTHING = Find(processes=True, metrics=True, probe=True)
WORK = Step("/work", "GET", "/work?n=1", (("X-Key", "1"),))


@contextmanager
def service(pages: Mapping[str, str], default: str | None = None) -> Iterator[tuple[Aim, list[str]]]:
    """An aim at a service with these pages (elsewhere the default, or 404), and the requests it received."""
    received: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def send_error(self, code: int, *_: object, **__: object) -> None:
            received.append(f"{self.command} {self.path}")
            super().send_error(code)

        def do_GET(self) -> None:
            received.append(f"{self.command} {self.path}")
            page = pages.get(self.path, default)
            body = (page or "").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  # other methods get 501

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield aim_at(server.server_port), received
        finally:
            server.shutdown()
            thread.join()


def aim_at(port: int, **more: object) -> Aim:
    aim = Aim(
        origin=f"http://127.0.0.1:{port}",
        tls=None,
        steps=(WORK,),
        probe=None,
        outside=Outside("service", "127.0.0.1", True, (("http", port),)),
        services=(),
        timeout_ns=10_000_000_000,
        bounds=Bounds(90.0, 20_000.0, 1024),
        seed=7,
        find=EVERYTHING,
    )
    return replace(aim, **more)  # type: ignore[arg-type]


def test_a_redirect_is_refused_with_the_address_that_it_leads_to() -> None:
    with redirecting("/elsewhere?n=2") as aim, pytest.raises(TestbedError) as refused:
        refuse_redirects(aim)

    assert f"a redirect to {aim.origin}/elsewhere?n=2" in str(refused.value)
    assert f"loadlens explain {aim.origin}/elsewhere?n=2" in str(refused.value)


def test_a_redirect_that_is_expected_is_no_mistake_and_not_asked_for() -> None:
    with redirecting("/elsewhere") as aim:
        expected = replace(aim, steps=(replace(WORK, expect=(301,)),))

        assert refuse_redirects(expected) == 0


def test_a_page_is_asked_for_once_and_a_post_never() -> None:
    with service({WORK.path: "page"}) as (aim, received):
        assert refuse_redirects(aim) == 1
        assert refuse_redirects(replace(aim, steps=(replace(WORK, method="POST"),))) == 0

    assert received == [f"GET {WORK.path}"]


@contextmanager
def redirecting(location: str) -> Iterator[Aim]:
    """An aim at a service that answers every request with a redirect."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(301)
            self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield aim_at(server.server_port)
        finally:
            server.shutdown()
            thread.join()


def candidates(discovered: Discovered) -> list[tuple[str, str]]:
    return [(step.method, step.path) for step in discovered.aim.candidates]


def test_process_metrics_and_cheap_requests_of_a_service_are_found() -> None:
    pages = {"/work?n=1": "done", "/healthz": "ok", "/metrics": METRICS}
    with service(pages) as (aim, _):
        discovered = discover(aim)

    assert discovered.aim.outside.pids == (os.getpid(),)
    assert discovered.aim.outside.scrape is not None
    assert discovered.aim.outside.scrape.path == "/metrics"
    assert candidates(discovered) == [("GET", "/healthz"), ("GET", NO_SUCH_PATH), ("HEAD", "/work?n=1")]
    assert discovered.parts[0].startswith(f"process {os.getpid()} (")
    assert discovered.parts[1] == "metrics at /metrics (2 metrics)"
    assert discovered.missing == ()


def test_a_page_that_does_not_exist_is_called_so_and_not_by_its_path() -> None:
    with service({}) as (aim, _):
        (probe, *_) = discover(aim).aim.candidates

    assert probe.path == NO_SUCH_PATH
    assert words.probe(probe.name, "GET /any") == "a missing page (404)"
    assert words.probe("/healthz", "GET /healthz") == "GET /healthz"


def test_each_path_is_asked_once_with_a_method_that_changes_nothing_and_counted() -> None:
    with service({}) as (aim, received):
        discovered = discover(aim)

    assert sorted(received) == sorted(set(received))
    assert {request.partition(" ")[0] for request in received} == {"GET", "HEAD"}
    assert discovered.requests == len(received) == 13  # 7 places of metrics, 4 of health, no such path, HEAD
    assert not any("/work" in request for request in received if request.startswith("GET"))


def test_a_service_that_is_posted_to_gets_no_head_of_that_url() -> None:
    with service({"/work?n=1": "done"}) as (aim, received):
        discover(replace(aim, steps=(replace(WORK, method="POST"),)))

    assert not any(request.startswith("HEAD") for request in received)


@pytest.mark.parametrize(
    "path",
    ["/metrics/", "/prometheus", "/q/metrics", "/actuator/prometheus", "/management/prometheus"],
)
def test_metrics_are_found_where_frameworks_put_them(path: str) -> None:
    with service({path: METRICS}) as (aim, _):
        discovered = discover(aim)

    assert discovered.aim.outside.scrape is not None
    assert discovered.aim.outside.scrape.path == path


def test_a_service_that_does_not_answer_is_left_in_time_for_the_cheap_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(discovery, "METRICS_WITHIN_S", 0.1)
    monkeypatch.setattr(discovery, "ALL_METRICS_WITHIN_S", 0.15)
    monkeypatch.setattr(discovery, "ALL_WITHIN_S", 0.5)
    monkeypatch.setattr(discovery, "CHEAP_WITHIN_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        discovered = discover(aim_at(silent.getsockname()[1]))

    assert discovered.aim.outside.scrape is None
    assert discovered.requests < 9  # two places of metrics, and some of the six requests that may be cheap
    assert discovered.requests > 2


def test_a_page_that_answers_every_path_is_neither_metrics_nor_a_missing_path() -> None:
    with service({}, default=PAGE) as (aim, _):
        discovered = discover(aim)

    assert discovered.aim.outside.scrape is None
    assert "no metrics in the Prometheus text format" in discovered.missing[0]
    assert ("GET", NO_SUCH_PATH) not in candidates(discovered)


def test_nothing_is_asked_for_what_is_not_wanted() -> None:
    with service({"/metrics": METRICS}) as (aim, received):
        discovered = discover(replace(aim, find=Find()))

    assert received == []
    assert discovered == Discovered(replace(aim, find=Find()))


def test_a_service_elsewhere_is_asked_nothing_and_that_is_said() -> None:
    with service({"/metrics": METRICS}) as (aim, received):
        discovered = discover(replace(aim, outside=replace(aim.outside, is_here=False)))

    assert received == []
    assert "on another machine" in discovered.missing[0]
    assert discovered.aim.outside.pids == ()


@pytest.mark.parametrize(
    ("listening", "words"),
    [
        (Listening(is_open=True, hidden_users=(0,)), "it belongs to user root (sudo)"),
        (Listening(is_open=True, forwarder=Process(7, "ssh")), "ssh (7) passes connections on"),
        (Listening(is_open=True), "this program was started by it"),
        (Listening(), "none is seen on this machine"),
    ],
)
def test_a_process_that_is_not_watched_is_said_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, listening: Listening, words: str
) -> None:
    monkeypatch.setattr(listening_sockets, "listening_on", lambda addresses, port: listening)

    discovered = discover(aim_at(8080, find=Find(processes=True)))

    assert discovered.aim.outside.pids == ()
    assert words in discovered.missing[0]


def test_what_the_service_calls_is_named_and_has_names_of_its_own() -> None:
    discovered = Discovered(aim_at(8080), ("process 7 (app)",), (), ("--no-pid",))
    called = (Process(8, "cache"), Process(9, "cache"), Process(10, "service"), Process(11, "db"))
    peers = Peers(
        (7,), processes={each.pid: each for each in called}, ports={11: {5433, 5432}}, has_code={10}
    )

    seen = with_peers(discovered, peers)

    assert with_peers(discovered, Peers((7,))) == discovered
    assert seen.parts[1:] == ("calls 8 (cache), 9 (cache), 10 (service), 11 (db)",)
    assert seen.flags == ("--no-pid", "--no-peers")
    assert [peer.ports for peer in seen.aim.outside.peers] == [(), (), (), (5432, 5433)]
    assert [peer.has_code for peer in seen.aim.outside.peers] == [False, False, True, False]
    assert [(peer.name, peer.pid) for peer in seen.aim.outside.peers] == [
        ("cache 8", 8),
        ("cache 9", 9),
        ("service 10", 10),
        ("db", 11),
    ]


def test_what_was_found_is_one_line_with_its_flags_and_the_rest_another() -> None:
    health = Step("/health", "GET", "/health")
    aim = aim_at(8080, candidates=(health,))
    discovered = Discovered(aim, ("process 7 (app)",), ("no metrics",), ("--no-pid",))

    baseline = step_cases.choose(aim, {"/work": 0.012, "/health": 0.0004})
    alone = step_cases.choose(aim, {"/work": 0.012, "/health": 0.0090})

    assert list(lines(with_probe(discovered, baseline))) == [
        (
            "found process 7 (app); probe GET /health: 400 µs where the load's request takes 12.0 ms "
            "(off: --no-pid --no-probe)"
        ),
        "not found: no metrics",
    ]
    assert "at most half as long" in list(lines(with_probe(discovered, alone)))[1]
