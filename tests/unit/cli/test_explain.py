"""`explain` from its flags to what is to be explained, and every flag that cannot be used as given."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from loadlens.cli import app, explain_options
from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.errors import TestbedError, UsageError
from loadlens.model.search import Find
from loadlens.model.workload import Tls
from tests.secured import FOLDER, serving

URL = "http://127.0.0.1:8080/work?n=1"


@pytest.fixture
def exporting() -> Iterator[str]:
    """A page of metrics."""
    with serving(None) as port:
        yield f"http://127.0.0.1:{port}"


def refused(*urls: str, **flags: object) -> str:
    with pytest.raises(UsageError) as fault:
        aim_of(urls or (URL,), ExplainFlags(**flags))  # type: ignore[arg-type]
    return str(fault.value)


# --- what is asked -----------------------------------------------------------------------------------------


def test_urls_become_requests_under_their_paths() -> None:
    aim = aim_of([URL, "http://127.0.0.1:8080/work?n=2", "127.0.0.1:8080"], ExplainFlags(seed=3))

    assert aim.origin == "http://127.0.0.1:8080"
    assert [(step.name, step.method, step.path) for step in aim.steps] == [
        ("/work", "GET", "/work?n=1"),
        ("/work #2", "GET", "/work?n=2"),
        ("/", "GET", "/"),
    ]
    assert (aim.probe, aim.seed) == (None, 3)


def test_what_is_not_named_is_looked_for_and_each_part_can_be_switched_off() -> None:
    other = "http://127.0.0.1:8080/ok"

    assert aim_of([URL], ExplainFlags()).find == Find(True, True, True, peers=True)
    assert aim_of([URL], ExplainFlags(no_pid=True)).find == Find(metrics=True, probe=True)
    assert aim_of([URL], ExplainFlags(no_metrics=True)).find == Find(True, False, True, peers=True)
    assert aim_of([URL], ExplainFlags(no_probe=True)).find == Find(True, True, peers=True)
    assert aim_of([URL], ExplainFlags(no_peers=True)).find == Find(True, True, True)
    assert aim_of([URL, other], ExplainFlags()).find == Find(True, True, True, peers=True)
    assert aim_of([URL], ExplainFlags(probe=other, pids=(os.getpid(),))).find == Find(
        metrics=True, peers=True
    )
    assert [aim_of([URL], ExplainFlags(no_stacks=each)).stacks for each in (False, True)] == [True, False]


def test_a_part_that_is_named_and_switched_off_is_refused() -> None:
    assert "--pid and --no-pid exclude each other" in refused(pids=(os.getpid(),), no_pid=True)
    assert "--probe and --no-probe" in refused(probe="http://127.0.0.1:8080/ok", no_probe=True)
    assert "--metrics and --no-metrics" in refused(metrics=f"{URL}/metrics", no_metrics=True)


def test_a_body_is_posted_by_the_load_and_not_by_the_probe() -> None:
    flags = ExplainFlags(
        body="{}", headers=("X-Key: 1",), probe="http://127.0.0.1:8080/ok", expect="201", method=None
    )

    aim = aim_of([URL], flags)

    assert (aim.steps[0].method, aim.steps[0].body.text, aim.steps[0].expect) == ("POST", "{}", (201,))
    assert aim.probe is not None
    assert (aim.probe.method, aim.probe.path, aim.probe.body.kind) == ("GET", "/ok", "none")
    assert aim.probe.headers == (("X-Key", "1"),)


def test_a_load_here_may_ask_more_than_one_elsewhere() -> None:
    here = aim_of([URL], ExplainFlags())
    elsewhere = aim_of(["http://192.0.2.1/"], ExplainFlags(remote=True))
    capped = aim_of([URL], ExplainFlags(rate_cap="3000/m", max_users="64", budget="2m"))

    assert here.bounds.rate_cap_per_s == 20_000
    assert elsewhere.bounds.rate_cap_per_s == 200
    assert (capped.bounds.rate_cap_per_s, capped.bounds.most_users, capped.bounds.budget_s) == (50, 64, 120)


def test_what_is_at_the_url_is_watched_by_port_and_pid() -> None:
    aim = aim_of([URL], ExplainFlags(pids=(os.getpid(), os.getppid())))

    assert aim.outside.is_here
    assert aim.outside.ports == (("http", 8080),)
    assert aim.outside.pids == (os.getpid(), os.getppid())
    assert aim.services == ()


def test_metrics_of_the_same_port_and_of_another(exporting: str) -> None:
    same = aim_of([f"{exporting}/"], ExplainFlags(metrics=f"{exporting}/metrics", requests="hits_total"))
    other = aim_of([URL], ExplainFlags(metrics=f"{exporting}/metrics"))

    assert same.outside.scrape is not None
    assert (same.outside.scrape.port, same.outside.scrape.requests) == (None, "hits_total")
    assert other.outside.scrape is not None
    assert other.outside.scrape.port == "metrics"
    assert dict(other.outside.ports)["metrics"] == int(exporting.rpartition(":")[2])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("answers_total", "hits_total 5\n"),  # nothing is like it
        ("hit_total", "# TYPE hit_total counter\nhits_total 5\n"),  # declared, without a series yet
        ("hit_total", "# TYPE hit counter\nhits_total 5\n"),  # OpenMetrics declares it without its ending
        ("http_requests_total", "http_request_size_total 5\n"),  # alike, and no slip
    ],
)
def test_a_counter_that_begins_with_the_first_request_is_taken_and_said(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.setattr(explain_options, "_metrics", lambda target, path: text)

    aim = aim_of([URL], ExplainFlags(metrics="http://127.0.0.1:8080/metrics", requests=name))

    assert aim.outside.scrape is not None
    assert aim.outside.scrape.requests == name
    assert aim.cautions == (f"{name} had no sample before the first request: it counts from 0 there",)


def test_a_command_is_started_as_it_is_and_ready_when_the_url_answers() -> None:
    with socket.socket() as bound:  # bound without a listener, so that no other program takes the port
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        aim = aim_of([f"http://127.0.0.1:{port}/a"], ExplainFlags(start="serve --price $5"))

    (service,) = aim.services
    assert service.start == "serve --price $$5"  # one dollar for the service
    assert service.ports == ()
    assert service.ready is not None
    assert (service.ready.path, service.ready.status) == ("/a", None)
    assert service.ready.address == ("127.0.0.1", port)


def test_what_is_asked_beside_the_load_is_trusted_as_the_load_is() -> None:
    with serving("alone") as port:
        url = f"https://127.0.0.1:{port}"
        beside = aim_of([f"{url}/"], ExplainFlags(metrics=f"{url}/metrics", insecure=True))
        other = aim_of([URL], ExplainFlags(metrics=f"{url}/metrics", insecure=True))
    started = aim_of([f"{url}/a"], ExplainFlags(start="serve", insecure=True))

    assert beside.outside.scrape is not None
    assert other.outside.scrape is not None
    assert beside.tls == beside.outside.scrape.tls == other.outside.scrape.tls == Tls(insecure=True)
    assert other.tls is None
    assert started.services[0].ready is not None
    assert started.services[0].ready.tls == started.tls == Tls(insecure=True)


def test_metrics_of_a_trusted_server_need_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(FOLDER / "ca.pem"))
    with serving() as port:
        aim = aim_of([URL], ExplainFlags(metrics=f"https://127.0.0.1:{port}/metrics", requests="hits_total"))

    assert aim.outside.scrape is not None
    assert aim.outside.scrape.tls == Tls()


# --- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["http://192.0.2.1/", "http://198.51.100.7:8080/x"])
def test_a_target_that_is_not_on_this_machine_needs_leave(url: str) -> None:
    text = refused(url)

    assert "is not on this machine" in text
    assert "--remote" in text


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://127.9.9.9/", "http://localhost/", "http://[::1]/"]
)
def test_every_loopback_address_is_here(url: str) -> None:
    assert aim_of([url], ExplainFlags()).outside.is_here


def test_urls_of_two_services_are_refused() -> None:
    assert "not on the same service" in refused(URL, "http://127.0.0.1:8081/")
    assert "not on the same service" in refused(URL, probe="http://127.0.0.1:8081/ok")


def test_a_url_twice_is_refused() -> None:
    assert "given twice" in refused(URL, URL)


def test_a_budget_too_short_for_a_ladder_is_refused() -> None:
    assert "too short" in refused(budget="5s")
    assert "not a duration" in refused(budget="soon")


def test_processes_that_are_not_there_are_refused() -> None:
    assert "no process 4194305" in refused(pids=(4_194_305,))
    assert "cannot watch a process" in refused("http://192.0.2.1/", remote=True, pids=(os.getpid(),))


def test_a_command_beside_a_pid_or_a_listener_is_refused() -> None:
    assert "one of the two" in refused(start="serve", pids=(os.getpid(),))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert "another process already listens" in refused(url, start="serve")


def test_metrics_that_are_none_are_refused(exporting: str) -> None:
    assert "status 404" in refused(metrics=f"{exporting}/other")
    assert "did you mean hits_total?" in refused(metrics=f"{exporting}/metrics", requests="hit_total")
    assert "no metrics from" in refused(metrics="http://127.0.0.1:9/metrics")
    assert "--metrics URL" in refused(requests="hits_total")


@pytest.mark.parametrize(
    ("certificate", "scheme", "words"),
    [
        ("alone", "https", "issuer is not trusted\n  at --metrics\n  try SSL_CERT_FILE=FILE with the CA"),
        (None, "https", "does not speak TLS on this port\n  at --metrics\n  try an http:// URL"),
        ("alone", "http", "closed without an answer\n  at --metrics\n  try an https:// URL"),
    ],
)
def test_metrics_of_a_server_that_is_not_trusted_are_refused_with_a_flag_to_try(
    certificate: str | None, scheme: str, words: str
) -> None:
    with serving(certificate) as port:
        assert words in refused(metrics=f"{scheme}://127.0.0.1:{port}/metrics")


def test_a_name_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TestbedError, match=r"unknown host 'no-such-host\.invalid'"):
        aim_of(("http://no-such-host.invalid/",), ExplainFlags())


def test_a_fault_of_input_exits_2_and_starts_nothing(tmp_path: Path) -> None:
    out = tmp_path / "record"

    done = CliRunner().invoke(app, ["explain", "http://192.0.2.1/", "-o", str(out)])

    assert isinstance(done.exception, UsageError)
    assert int(done.exception.code) == 2
    assert not out.exists()


def test_flags_of_urls_beside_a_study_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", str(tmp_path), "--pid", "1"])

    assert "defines its own load" in str(done.exception)


@pytest.mark.parametrize("path", ["/nowhere/x", "./study", "study.yaml"])
def test_a_path_that_is_not_there_is_not_taken_for_a_url(path: str) -> None:
    done = CliRunner().invoke(app, ["explain", path])

    assert f"there is no study or record {path}" in str(done.exception)


def test_a_study_stands_alone(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["explain", str(tmp_path), URL])

    assert "cannot be combined" in str(done.exception)


def test_a_record_needs_no_flag(tmp_path: Path) -> None:
    record = Path(__file__).parents[2] / "data" / "records" / "version-1"

    done = CliRunner().invoke(app, ["explain", str(record), "--quiet"])

    assert "defines its own load" not in done.output
