"""Delivery to destinations that refuse, come late, or are scraped."""

from __future__ import annotations

import http.client
import http.server
import socket
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadlens.cli.outputs import outputs_of
from loadlens.errors import UsageError
from loadlens.export import deliver
from tests.unit.export.build import snapshots


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[str]]]:
    """A server that answers with these statuses in order, then the last one; and the paths it was asked."""
    left, paths = list(statuses), list[str]()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.end_headers()
            self.wfile.write(b"no such bucket\nmore")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", paths
        finally:
            server.shutdown()
            thread.join()


def queue_to(place: str) -> deliver._Queue:
    queue = deliver._Queue(deliver.sink_of("otlp", place, print))
    queue.put(list(snapshots()))
    return queue


def test_what_was_not_taken_is_sent_again() -> None:
    with receiver(503, 200) as (url, paths):
        queue = queue_to(url)

        queue.try_send()
        queue.finish(Path(), (), time.monotonic() + 10)

    assert paths == ["/v1/metrics", "/v1/metrics"]


def test_what_was_refused_is_not_sent_again_and_the_fault_has_the_reason() -> None:
    with receiver(404) as (url, paths):
        queue = queue_to(f"{url}/tenant")
        queue.try_send()

        with pytest.raises(deliver.NotDelivered) as caught:
            queue.finish(Path(), (), time.monotonic() + 10)

    assert paths == ["/tenant/v1/metrics"]
    assert caught.value.message.endswith("/tenant refused what was sent: status 404: no such bucket")


def test_a_file_that_is_full_is_not_written_again_and_nothing_waits_for_it() -> None:
    queue = deliver._Queue(deliver.sink_of("influx", "/dev/full", print))
    queue.put(list(snapshots()))

    queue.try_send()  # of the thread that delivers meanwhile, which must not end by it
    queue.put(list(snapshots()))

    with pytest.raises(deliver.NotDelivered, match="cannot write /dev/full: no space left on device"):
        queue.finish(Path(), (), time.monotonic() + 10)
    assert len(queue._waiting) == len(list(snapshots()))


def test_a_fault_names_no_credentials() -> None:
    with receiver(401) as (url, _):
        queue = queue_to(url.replace("://", "://ann:hunter2@"))

        with pytest.raises(deliver.NotDelivered) as caught:
            queue.finish(Path(), (), time.monotonic() + 10)

    assert "hunter2" not in str(caught.value)


def test_a_page_that_was_scraped_is_scraped_once_more_at_the_end() -> None:
    sink = deliver.sink_of("prometheus", ":0", print)
    assert isinstance(sink, deliver._Scrape)
    port = sink._server.server_port

    def scraped() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text: str = answer.read().decode()
        return text

    first, last = snapshots()
    sink.send([first])
    assert " 6\n" in scraped()  # due so far
    sink.send([last])
    ending = threading.Thread(target=sink.finish, args=(Path(), ()))
    ending.start()

    ending.join(0.2)
    is_waiting = ending.is_alive()
    page = scraped()
    ending.join(5)

    assert is_waiting
    assert not ending.is_alive()
    assert 'loadlens_trial="block-1"} 10\n' in page
    with pytest.raises((OSError, http.client.HTTPException)):
        scraped()


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6")
def test_a_page_is_scraped_over_ipv6() -> None:
    sink = deliver.sink_of("prometheus", "[::1]:0", print)
    assert isinstance(sink, deliver._Scrape)

    with urllib.request.urlopen(f"http://[::1]:{sink._server.server_port}/metrics", timeout=5) as answer:
        assert answer.status == 200


def test_a_page_that_was_never_scraped_does_not_hold_the_command() -> None:
    sink = deliver.sink_of("prometheus", ":0", print)

    sink.finish(Path(), ())  # returns at once


def test_a_scraper_that_goes_away_leaves_no_trace_on_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    has_ended = threading.Event()
    end = deliver._Server.shutdown_request

    def ended(server: deliver._Server, request: socket.socket) -> None:
        end(server, request)
        has_ended.set()

    monkeypatch.setattr(deliver._Server, "shutdown_request", ended)
    sink = deliver.sink_of("prometheus", ":0", print)
    assert isinstance(sink, deliver._Scrape)

    with socket.create_connection(("127.0.0.1", sink._server.server_port)) as scraper:
        scraper.sendall(b"GET /metr")
        scraper.setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )  # closes with a reset
    assert has_ended.wait(60)

    sink.finish(Path(), ())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prometheus=9464", "neither a port to be scraped at nor a URL to write to: 9464"),
        ("prometheus=:99999", "neither a port to be scraped at nor a URL to write to: :99999"),
        ("otlp=127.0.0.1:4318", "not a URL: 127.0.0.1:4318"),
        ("otlp=http://:4318", "not a URL of a host and port"),
        ("influx=/nowhere/a.lp", "no folder /nowhere"),
        ("parquet=/nowhere/a.parquet", "no folder /nowhere"),
        ("otpl=http://a", "not a format and its file: 'otpl=http://a'"),
    ],
)
def test_a_destination_that_cannot_be_used_is_refused_at_once(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        outputs_of([text])

    assert caught.value.message == message


def test_a_port_that_is_taken_is_refused_at_once() -> None:
    with receiver(200) as (url, _), pytest.raises(UsageError, match="cannot listen on 127"):
        outputs_of([f"prometheus=:{url.rpartition(':')[2]}"])


def test_a_record_and_several_destinations_go_together(tmp_path: Path) -> None:
    outputs = outputs_of([f"influx={tmp_path}/a.lp,json={tmp_path}/a.json", str(tmp_path / "run")])

    assert outputs.record == tmp_path / "run"
    assert outputs.sent == (f"influx={tmp_path}/a.lp",)
    assert list(outputs.files) == ["json"]
