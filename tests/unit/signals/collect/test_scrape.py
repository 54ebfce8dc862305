"""Metrics that services export, fetched over real connections."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator

import pytest

from loadlens.model import plain
from loadlens.model.readings import METRICS
from loadlens.model.workload import Tls
from loadlens.signals.collect import MonitorSpec
from loadlens.signals.collect.monitor import Row
from loadlens.signals.collect.scrape import ScrapeMonitor, Scrapes, ScrapeTarget
from tests.secured import pem, serving
from tests.unit.signals.collect.test_monitor import read, unlisted, value, values

EXPORTED = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{path="/a b",replica="theirs"} 12
requests_total{path="/\\"q\\""} 3
# TYPE in_flight gauge
in_flight 1.5
# TYPE seconds histogram
seconds_bucket{le="0.1"} 4
seconds_bucket{le="+Inf"} 5
seconds_sum 0.75
seconds_count 5
# TYPE routed_total counter
routed_total{service="a"} 100
routed_total{service="b",exported_service="c"} 5
"""


class Exporter(http.server.BaseHTTPRequestHandler):
    """Answers as its path says."""

    release = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/hang":
            self.release.wait(10)
        body = {"/metrics": EXPORTED, "/html": "<html>\n<p>no metrics {here</p>", "/hang": EXPORTED}
        self.send_response(200 if self.path in body else 500)
        self.end_headers()
        self.wfile.write(body.get(self.path, "").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def base() -> Iterator[str]:
    Exporter.release.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Exporter.release.set()
    server.shutdown()
    server.server_close()


def scraping(*urls: str) -> ScrapeMonitor:
    monitor = ScrapeMonitor()
    monitor.open(Scrapes(tuple(ScrapeTarget("api", number, url) for number, url in enumerate(urls, 1))))
    return monitor


def test_samples_keep_their_names_and_labels_and_get_service_and_replica(base: str) -> None:
    monitor = scraping(f"{base}/metrics")
    rows = read(monitor, last=True)
    monitor.close()

    assert value(rows, "requests_total", service="api", replica="1", path="/a b") == 12
    assert value(rows, "requests_total", path='/"q"') == 3
    assert value(rows, "in_flight", service="api", replica="1") == 1.5
    assert value(rows, "seconds_bucket", le="+Inf") == 5
    assert value(rows, "seconds_sum") == 0.75
    assert value(rows, "scrapes", service="api", replica="1") == 1
    assert value(rows, "scrape_seconds", service="api", replica="1") > 0


def test_labels_named_service_and_replica_of_the_service_itself_are_renamed_as_prometheus_does(
    base: str,
) -> None:
    monitor = scraping(f"{base}/metrics")
    rows = read(monitor, last=True)
    monitor.close()

    # Prometheus' documentation of honor_labels, and mutateSampleLabels in its scrape/scrape.go
    own = {"service": "api", "replica": "1"}
    assert [json.loads(row.labels) for row in rows if row.metric == "routed_total"] == [
        {**own, "exported_service": "a"},
        {**own, "exported_service": "c", "exported_exported_service": "b"},
    ]
    assert value(rows, "requests_total", path="/a b", exported_replica="theirs", **own) == 12


def test_every_scrape_is_counted(base: str) -> None:
    monitor = scraping(f"{base}/metrics")

    counts = [value(read(monitor, last=True), "scrapes") for _ in range(3)]
    monitor.close()

    assert counts == [1, 2, 3]


def test_scrapes_keep_to_their_own_interval(base: str) -> None:
    monitor = scraping(f"{base}/metrics")
    second = 1_000_000_000
    now = time.monotonic_ns()

    for tick in range(5):  # at twice the rate of the scrapes, a little late each time
        list(monitor.tick(now + tick * second // 2 + tick * 1_000_000, last=False))
        monitor._scrapers[0].wait()
    count = monitor._scrapers[0].count
    monitor.close()

    assert count == 3  # at 0, 1 and 2 s


@pytest.mark.parametrize(
    ("path", "why"), [("/error", "status 500"), ("/html", "not in the Prometheus text format")]
)
def test_an_answer_without_metrics_is_a_missed_scrape(base: str, path: str, why: str) -> None:
    monitor = scraping(f"{base}{path}")
    rows = read(monitor, last=True)
    monitor.close()

    (missed,) = [row for row in rows if row.metric == "missed"]
    assert missed.value is None
    assert why in missed.labels
    assert values(rows, "scrape_seconds") == [None]
    assert value(rows, "scrapes") == 1  # it was sent, so it is counted
    assert {row.metric for row in rows} == {metric.name for metric in METRICS["scrape"]}
    assert unlisted(rows, METRICS["scrape"]) == set()


def test_nobody_there_is_a_missed_scrape() -> None:
    monitor = scraping("http://127.0.0.1:1/metrics")
    rows = read(monitor, last=True)
    monitor.close()

    assert values(rows, "missed", service="api") == [None]


def test_a_target_that_hangs_does_not_delay_the_others(base: str) -> None:
    monitor = scraping(f"{base}/hang", f"{base}/metrics")
    Exporter.release.set()
    read(monitor)  # the first tick waits for its answers
    Exporter.release.clear()
    rows: list[Row] = []
    for second in (1, 2, 3):
        rows += monitor.tick(time.monotonic_ns() + second * 1_000_000_000, last=False)
        monitor._scrapers[1].wait()
    rows += monitor._scrapers[1].take()  # the last one, if it came after its tick
    Exporter.release.set()
    monitor._scrapers[0].wait()
    monitor.close()

    assert values(rows, "in_flight", replica="2") == [1.5, 1.5, 1.5]  # asked thrice
    assert values(rows, "in_flight", replica="1") == []
    assert values(rows, "missed", replica="1", why="the last scrape still runs") == [None, None]


def scraped_once(port: int, tls: Tls) -> list[Row]:
    """The rows of a scrape over TLS, asked for as the lab asks its monitor process."""
    target = ScrapeTarget("api", 1, f"https://127.0.0.1:{port}/metrics", 1.0, tls)
    (spec,) = json.loads(MonitorSpec([Scrapes((target,))]).to_json())["sources"]
    monitor = ScrapeMonitor()
    monitor.open(plain.read(Scrapes, spec))
    rows = read(monitor, last=True)
    monitor.close()
    return rows


@pytest.mark.parametrize("tls", [Tls(ca=pem("ca"), certificate=pem("client")), Tls(insecure=True)])
def test_metrics_are_read_over_tls_as_their_target_says(tls: Tls) -> None:
    with serving(client_ca="ca" if tls.certificate else None) as port:
        rows = scraped_once(port, tls)

    assert value(rows, "hits_total", service="api", path="/") == 3
    assert value(rows, "scrapes") == 1


def test_a_certificate_that_is_not_trusted_is_a_missed_scrape_that_says_so() -> None:
    with serving("expired") as port:
        rows = scraped_once(port, Tls(ca=pem("ca")))

    assert values(rows, "missed", service="api", why="the certificate has expired") == [None]


def test_a_url_that_cannot_be_asked_is_refused() -> None:
    for url in ("ftp://example.test/metrics", "https://example.test/metrics"):
        with pytest.raises(ValueError, match=f"scrape needs an http URL.* got {url}"):
            scraping(url)
