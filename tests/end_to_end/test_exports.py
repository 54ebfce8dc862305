"""One load, exported everywhere at once: what each receiver holds sums to the accounting of the load."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from benches.measuring import ROOT
from line_protocol_parser import parse_line

from loadlens.errors import TestbedError
from loadlens.export.tally import SCALE
from loadlens.record import open_run
from loadlens.temporary import default_cache
from loadlens.testbed import build
from loadlens.testbed.parts.prometheus import Prometheus
from tests.end_to_end.hitting import command, environment

LIMIT_S = 30
RATE = 200
RUN_S = 4  # and a second of warm-up
COLLECTOR = os.environ.get("LOADLENS_COLLECTOR", str(ROOT / "target" / "collector"))


class Service(http.server.BaseHTTPRequestHandler):
    """Answers /ok, /missing (404) and /slow, which takes longer than the time-out of the load."""

    protocol_version = "HTTP/1.1"
    traces: Counter[str]
    stop: threading.Event

    def do_GET(self) -> None:
        self.traces[self.headers.get("traceparent", "")] += 1
        if self.path == "/slow":
            self.stop.wait(0.2)
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        try:
            self.wfile.write(b"ok")
        except OSError:
            self.close_connection = True  # the load gave up

    def log_message(self, format: str, *args: object) -> None:
        pass


class Quiet(http.server.ThreadingHTTPServer):
    """Says nothing of connections that the load resets."""

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def service() -> Iterator[tuple[str, Counter[str]]]:
    """Its URL, and how often each traceparent came."""
    kind = type("Own", (Service,), {"traces": Counter(), "stop": threading.Event()})
    with Quiet(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", kind.traces  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def program(*arguments: str, ready: str, log: Path) -> Iterator[None]:
    """A server that runs until the end of the block; it is ready when `ready` answers anything."""
    with log.open("w") as out, subprocess.Popen(arguments, stdout=out, stderr=out) as process:
        try:
            until = time.monotonic() + LIMIT_S
            host, _, port = urllib.parse.urlsplit(ready).netloc.partition(":")
            while True:
                try:
                    socket.create_connection((host, int(port)), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, log.read_text()
                    assert time.monotonic() < until, log.read_text()
                    time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(LIMIT_S)


@dataclass(frozen=True)
class Exported:
    """A load and where its numbers are."""

    folder: Path
    result: dict[str, Any]  # of --json
    prometheus: str | None  # its URL
    has_collector: bool
    sent: Counter[str]  # traceparent headers that the service received

    @property
    def requests(self) -> dict[str, int]:
        """The accounting, by the engine."""
        counts: dict[str, int] = self.result["requests"]
        return counts

    @property
    def ended(self) -> dict[str, int]:
        """Requests by how they ended."""
        ended = {"": self.requests["ok"], "unexpected_status": self.requests["unexpected_status"]}
        errors = {kind: error["count"] for kind, error in self.result["errors"].items()}
        return {kind: count for kind, count in {**ended, **errors}.items() if count}


LOADS: dict[str, tuple[str, ...]] = {"one-machine": (), "fleet": ("--fleet", "local:2")}


@pytest.fixture(scope="module")
def receivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Receivers]]:
    """Receivers of each load, begun together: a Prometheus takes up to 5 s until it scrapes."""
    folders = {name: tmp_path_factory.mktemp(name) for name in (*LOADS, "watched")}
    with ExitStack() as stack:
        begun = {name: stack.enter_context(_servers(folder)) for name, folder in folders.items()}
        for each in begun.values():
            if each.prometheus is not None:
                _wait_for_scrapes(each.prometheus)
        yield begun


@pytest.fixture(scope="module", params=LOADS)
def exported(request: pytest.FixtureRequest, receivers: dict[str, Receivers]) -> Iterator[Exported]:
    """A load whose numbers went to every destination at once, while all receivers still run."""
    to = receivers[request.param]
    folder, prometheus, collector = to.folder, to.prometheus, to.collector
    out = [f"influx={folder}/a.lp", f"parquet={folder}/a.parquet", f"json={folder}/a.json"]
    if prometheus is not None:
        out += [f"prometheus=127.0.0.1:{to.scraped}", f"prometheus={prometheus}/api/v1/write"]
    if collector is not None:
        out.append(f"otlp={collector}")
    with service() as (url, sent):
        urls = [f"{url}/{path}" for path in ("ok", "missing", "slow")]
        load = ["-r", str(RATE), "-d", f"{RUN_S}s", "--warmup", "1s", "--timeout", "100ms", "--traceparent"]
        arguments = [*urls, *load, *LOADS[request.param], "-o", str(folder / "run")]
        done = subprocess.run(
            command(*arguments, *(f"--out={each}" for each in out)),
            capture_output=True, text=True, timeout=2 * LIMIT_S, env=environment(),
        )  # fmt: skip
        assert done.returncode in (0, 4), done.stderr  # 4: another program took the cores
        yield Exported(folder, json.loads(done.stdout), prometheus, collector is not None, sent)


@dataclass(frozen=True)
class Receivers:
    """Servers that run, and where they keep what they receive."""

    folder: Path
    prometheus: str | None  # its URL; None: not installed
    scraped: int  # the port that it scrapes
    collector: str | None


@contextmanager
def _servers(folder: Path) -> Iterator[Receivers]:
    """A Prometheus that scrapes a port and takes remote write, and a collector; None: not installed."""
    try:
        made = build._program("prom", Prometheus.program, default_cache(), lambda _: None)
        prometheus = shutil.which("prometheus", path=os.pathsep.join(map(str, made.path)))
    except TestbedError:
        prometheus = None
    port, scraped, otlp = free_port(), free_port(), free_port()
    at = f"http://127.0.0.1:{port}"
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: loadlens, static_configs: [{{targets: ['127.0.0.1:{scraped}']}}]}}]\n"
    )
    (folder / "collector.yml").write_text(
        f"receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{otlp}'}}}}}}}}\n"
        f"exporters: {{file: {{path: {folder}/otlp.jsonl, flush_interval: 100ms}}}}\n"
        "service:\n  telemetry: {metrics: {level: none}}\n"
        "  pipelines: {metrics: {receivers: [otlp], exporters: [file]}, "
        "traces: {receivers: [otlp], exporters: [file]}}\n"
    )
    own = (
        f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver",
        "--enable-feature=native-histograms",
    )  # fmt: skip
    has_collector = Path(COLLECTOR).is_file()
    with ExitStack() as stack:
        if prometheus is not None:
            stack.enter_context(program(prometheus, *own, ready=at, log=folder / "prometheus.log"))
        if has_collector:
            config = ("--config", f"file:{folder}/collector.yml")
            address = f"http://127.0.0.1:{otlp}"
            stack.enter_context(program(COLLECTOR, *config, ready=address, log=folder / "collector.log"))
        yield Receivers(
            folder, at if prometheus else None, scraped, f"http://127.0.0.1:{otlp}" if has_collector else None
        )


def _wait_for_scrapes(prometheus: str) -> None:
    """Return when the server tries to scrape, which takes it up to 5 s after its start."""
    until = time.monotonic() + LIMIT_S
    while not any(target["health"] == "down" for target in _targets(prometheus)):
        assert time.monotonic() < until, "it does not scrape"
        time.sleep(0.1)


def _targets(prometheus: str) -> list[dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"{prometheus}/api/v1/targets", timeout=LIMIT_S) as answer:
            targets: list[dict[str, Any]] = json.loads(answer.read())["data"]["activeTargets"]
    except urllib.error.HTTPError:  # 503: it still starts
        return []
    return targets


def ask(exported: Exported, query: str) -> dict[str, float]:
    """Values of an instant query by `error_type`; over all that was scraped and written."""
    if exported.prometheus is None:
        pytest.skip("no Prometheus can be had here")
    text = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"{exported.prometheus}/api/v1/query?{text}", timeout=LIMIT_S) as answer:
        rows = json.loads(answer.read())["data"]["result"]
    return {row["metric"].get("error_type", ""): float(row["value"][1]) for row in rows}


# Scraped series have the label `instance`, written ones have not.
@pytest.mark.parametrize("way", ['instance!=""', 'instance=""'], ids=["scraped", "written"])
def test_prometheus_holds_every_request_by_how_it_ended(exported: Exported, way: str) -> None:
    by_error = f"sum by (error_type) (last_over_time(loadlens_requests_ended_total{{{way}}}[10m])) > 0"
    until = time.monotonic() + LIMIT_S  # a page that was scraped is stored a moment later
    while (ended := ask(exported, by_error)) != exported.ended and time.monotonic() < until:
        time.sleep(0.1)

    due = ask(exported, f"sum(last_over_time(loadlens_requests_due_total{{{way}}}[10m]))")

    assert ended == exported.ended
    assert due == {"": exported.requests["due"]}


def test_prometheus_sees_the_load_grow_while_it_runs(exported: Exported) -> None:
    scraped = 'loadlens_requests_due_total{instance!="",loadlens_phase="measure"}'

    grown = ask(exported, f"sum(changes({scraped}[10m]))")[""]

    assert grown >= 1  # what comes only at the end changes nothing


def test_native_and_explicit_buckets_have_the_successes_and_the_same_quantile(exported: Exported) -> None:
    # Prometheus 2.42 has no last_over_time of native histograms: the newest values, as they just came
    native = 'sum(http_client_request_duration_seconds{instance="",error_type=""})'
    buckets = 'sum by (le) (http_client_request_duration_seconds_bucket{instance="",error_type=""})'

    count = ask(exported, f"histogram_count({native})")
    of_native = ask(exported, f"histogram_quantile(0.9, {native})")[""]
    of_explicit = ask(exported, f"histogram_quantile(0.9, {buckets})")[""]

    assert count == {"": exported.requests["ok"]}
    rows = open_run(exported.folder / "run").trials[0].samples().filter(pl.col("outcome") == 0)
    exact = (rows["done_ns"] - rows["sent_ns"]).quantile(0.9, interpolation="higher")
    assert exact is not None
    width = 2 ** (2.0**-SCALE) * 1.002  # a bucket, and the third digit of HDR
    assert 1 / width <= of_native / (exact / 1e9) <= width
    assert 0.75 <= of_explicit / (exact / 1e9) <= 1.34  # an explicit bucket


def test_figures_keep_their_intervals(exported: Exported) -> None:
    figure = 'loadlens_figure{instance="",loadlens_metric="throughput",loadlens_step="",loadlens_bound="%s"}'

    bounds = {bound: ask(exported, figure % bound)[""] for bound in ("value", "low", "high")}

    assert bounds == {bound: exported.result["throughput_rps"][bound] for bound in bounds}


def test_a_collector_holds_every_request_and_the_slow_ones_as_spans(exported: Exported) -> None:
    if not exported.has_collector:
        pytest.skip(f"no collector at {COLLECTOR}: make collector builds one")
    until = time.monotonic() + LIMIT_S
    while not (spans := _received(exported.folder, "Spans", "spans")) and time.monotonic() < until:
        time.sleep(0.1)
    ended: Counter[str] = Counter()
    for name, point in _newest(exported.folder):
        if name == "loadlens.requests.ended":
            names = {a["key"]: a["value"].get("stringValue") for a in point["attributes"]}
            ended[names.get("error.type", "")] += int(point["asInt"])
    assert {kind: count for kind, count in ended.items() if count} == exported.ended
    headers = {
        f"00-{span['traceId']}-{span['spanId']}-01": {attribute["key"] for attribute in span["attributes"]}
        for span in spans
    }
    assert len(headers) == 100  # the 50 slowest successes, and as many failures
    answered = {header for header, names in headers.items() if "http.response.status_code" in names}
    assert answered <= set(exported.sent)  # on a busy machine others may never have been received
    assert len(answered) >= 50


def _newest(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the newest point of every series that the collector wrote, with the name of its metric."""
    newest: dict[str, tuple[int, dict[str, Any]]] = {}
    for metric in _received(folder, "Metrics", "metrics"):
        points = next(metric[kind] for kind in ("sum", "gauge", "exponentialHistogram") if kind in metric)
        for point in points["dataPoints"]:
            key = json.dumps([metric["name"], point["attributes"]])
            newest[key] = max(
                newest.get(key, (0, {})), (int(point["timeUnixNano"]), point), key=lambda x: x[0]
            )
    return [(json.loads(key)[0], point) for key, (_, point) in newest.items()]


def _received(folder: Path, kind: str, items: str) -> list[Any]:
    """Return the metrics or spans in the lines that the collector wrote."""
    received = []
    for line in (folder / "otlp.jsonl").read_text().splitlines():
        for resource in json.loads(line).get(f"resource{kind}", []):
            received += [each for scope in resource[f"scope{kind}"] for each in scope[items]]
    return received


def test_lines_for_influx_sum_to_the_accounting(exported: Exported) -> None:
    newest: dict[str, tuple[str, int]] = {}

    for line in (exported.folder / "a.lp").read_text().splitlines():
        row = parse_line(line)
        if row["measurement"] == "loadlens.requests.ended":
            newest[json.dumps(row["tags"])] = row["tags"].get("error.type", ""), row["fields"]["value"]

    ended: Counter[str] = Counter()
    for kind, count in newest.values():
        ended[kind] += count
    assert {kind: count for kind, count in ended.items() if count} == exported.ended


def test_parquet_has_a_row_per_request_with_the_trace_that_was_sent(exported: Exported) -> None:
    rows = pl.read_parquet(exported.folder / "a.parquet")

    by_outcome = dict(rows.group_by("outcome").len().iter_rows())
    named = {"" if kind == "ok" else kind: count for kind, count in by_outcome.items()}
    assert {
        kind: count for kind, count in named.items() if kind not in ("waiting", "in_flight")
    } == exported.ended
    answered = rows.filter(pl.col("outcome").is_in(["ok", "unexpected_status"]))["trace_id"]
    received = {header.split("-")[1] for header in exported.sent}
    assert set(answered) <= received
    assert received <= set(rows["trace_id"])
    assert set(exported.sent.values()) == {1}  # each request has a trace of its own


# --- the service next to the load ---------------------------------------------------------------------

STUDY = """\
schema: 1
study: watched
services:
  shop: {{start: "{python} {shop} --port $port", ready: {{get: /health}}, scrape: {{every: 250ms}}}}
entry: shop
scenarios: {{look: [{{name: orders, get: /orders}}, {{name: nothing, get: /nothing, expect: 200}}]}}
trials: 1
experiments:
  alone: {{mix: look, load: {{rate: 20/s, warmup: 1s, duration: {seconds}s}}}}
"""


@dataclass(frozen=True)
class Watched:
    """A study whose load and readings went to a Prometheus and to a collector, which still run."""

    folder: Path
    run: Path
    prometheus: str | None
    has_collector: bool


@pytest.fixture(scope="module")
def watched(receivers: dict[str, Receivers]) -> Watched:
    to = receivers["watched"]
    folder = to.folder
    shop = ROOT / "docs" / "examples" / "shop.py"
    (folder / "study.yaml").write_text(STUDY.format(python=sys.executable, shop=shop, seconds=RUN_S))
    out = [f"{folder}/run"]
    out += [] if to.prometheus is None else [f"prometheus={to.prometheus}/api/v1/write"]
    out += [] if to.collector is None else [f"otlp={to.collector}"]
    words = ["run", str(folder / "study.yaml"), "-q", *(f"--out={each}" for each in out)]
    done = subprocess.run(
        [sys.executable, "-m", "loadlens", *words],
        capture_output=True, text=True, timeout=4 * LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    return Watched(folder, folder / "run", to.prometheus, to.collector is not None)


def readings_of(run: Path) -> dict[frozenset[tuple[str, str]], float]:
    """The last reading under load of every series in the record, by its labels as Prometheus spells them."""
    trial = open_run(run).trials[-1]  # on a busy machine, the second attempt
    rows = trial.readings().filter(pl.col("value").is_not_null() & (pl.col("time_ns") >= 0)).sort("time_ns")
    last = {}
    for source, metric, labels, unit, value in rows.select(
        "source", "metric", "labels", "unit", "value"
    ).iter_rows():
        own = {"loadlens_monitor": source, "loadlens_metric": metric, "loadlens_unit": unit or ""}
        named = {name: of for name, of in {**json.loads(labels), **own}.items() if of != ""}
        last[frozenset(named.items())] = value
    return last


def test_what_monitors_read_is_in_prometheus_as_it_is_in_the_record(watched: Watched) -> None:
    if watched.prometheus is None:
        pytest.skip("no Prometheus can be had here")
    trial = open_run(watched.run).trials[-1].path.name
    query = f'last_over_time(loadlens_reading{{loadlens_trial="{trial}"}}[10m])'
    text = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"{watched.prometheus}/api/v1/query?{text}", timeout=LIMIT_S) as answer:
        rows = json.loads(answer.read())["data"]["result"]

    of_export = {"__name__", "job", "loadlens_run", "loadlens_case", "loadlens_trial"}
    stored = {
        frozenset((name, of) for name, of in row["metric"].items() if name not in of_export): float(
            row["value"][1]
        )
        for row in rows
    }
    assert stored == readings_of(watched.run)
    assert len({dict(labels)["loadlens_monitor"] for labels in stored}) > 2


def test_a_collector_holds_what_monitors_read_and_every_request_of_a_study(watched: Watched) -> None:
    if not watched.has_collector:
        pytest.skip(f"no collector at {COLLECTOR}: make collector builds one")
    trial = open_run(watched.run).trials[-1]
    assert trial.result is not None
    counts = trial.result.streams[0].requests

    newest = [each for each in _newest(watched.folder) if trial.path.name in json.dumps(each)]

    ended = sum(int(point["asInt"]) for name, point in newest if name == "loadlens.requests.ended")
    values = [point["asDouble"] for name, point in newest if name == "loadlens.reading"]
    assert ended == counts.issued - counts.in_flight
    assert sorted(values) == sorted(readings_of(watched.run).values())


def test_every_panel_of_the_dashboard_shows_the_load_and_the_service(watched: Watched) -> None:
    if watched.prometheus is None:
        pytest.skip("no Prometheus can be had here")
    board = json.loads((ROOT / "docs" / "examples" / "grafana" / "dashboard.json").read_text())
    begin_ns = open_run(watched.run).trials[0].t0_unix_ns
    assert begin_ns is not None
    begin = begin_ns / 1e9
    assert {variable["name"]: variable["query"] for variable in board["templating"]["list"]} == {
        "run": "label_values(loadlens_requests_due_total, loadlens_run)",
        "metric": 'label_values(loadlens_reading{loadlens_monitor="scrape"}, loadlens_metric)',
    }

    empty = []
    for panel in board["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "3s")
            query = query.replace("$run", ".*").replace("$metric", ".*")
            text = urllib.parse.urlencode({"query": query, "start": begin, "end": begin + 5, "step": "500ms"})
            url = f"{watched.prometheus}/api/v1/query_range?{text}"
            with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
                rows = json.loads(answer.read())["data"]["result"]
            if not any(value != "NaN" for row in rows for _, value in row["values"]):
                empty.append(query)
    assert empty == []
