"""Delivery of a run's numbers: to an address that takes them, a file, or a server that scrapes them."""

from __future__ import annotations

import base64
import gzip
import http.client
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from loadlens import __version__, http_client, named_pipes, record
from loadlens.errors import RecordError, UsageError, joined, reason_of
from loadlens.export import influx, otlp, prometheus
from loadlens.export.follow import Following
from loadlens.export.requests_table import write_requests
from loadlens.export.slow_requests import SlowRequest, slow_requests
from loadlens.export.tally import FIGURE, Point, Snapshot
from loadlens.model.finding import Estimate
from loadlens.model.workload import Tls
from loadlens.report.write.result import Result, Row

LOOK_EVERY_S: Final = 1.0  # at the record
SEND_EVERY_S: Final = 5.0
TRY_FOR_S: Final = 10.0  # at the end, to deliver what is left
WITHIN_S: Final = 5.0  # a request
MOST_WAITING: Final = 500_000  # points that were not delivered yet
ANOTHER_ADDRESS: Final = (
    "another address, or a receiver that is started first; a record (-o DIR) can be sent later"
)
ANOTHER_FILE: Final = "a file on another disk; a record (-o DIR) can be exported later"
LAST_SCRAPE_WITHIN_S: Final = 65.0  # of a server that scraped before; its default interval is a minute


class Sink(Protocol):
    """A destination."""

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        """Deliver snapshots in the order of time; raise RecordError if that fails."""

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        """Deliver the slow requests, and end.

        Args:
            run: The folder of the record.
            requests: Of all its trials.
        """


@dataclass(frozen=True, slots=True)
class Address:
    """An http or https URL; `shown` is the same without credentials."""

    host: str
    port: int
    path: str
    tls: Tls | None
    headers: Mapping[str, str]
    shown: str

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a body.

        Raises:
            RecordError: There is no answer, or one that is no success; `is_final` is set where it is refused.
        """
        made = http_client.connection(self.host, self.port, self.tls, within_s=WITHIN_S)
        try:
            made.request(
                "POST", path, body, {**self.headers, **headers, "User-Agent": f"loadlens/{__version__}"}
            )
            answer = made.getresponse()
            text = answer.read(300).decode(errors="replace").strip()
        except (OSError, http.client.HTTPException) as fault:
            raise NotDelivered(f"cannot send to {self.shown}: {http_client.words(fault)}") from None
        finally:
            made.close()
        if not 200 <= answer.status < 300:
            reason = f": {text.splitlines()[0]}" if text else ""
            raise NotDelivered(
                f"{self.shown} refused what was sent: status {answer.status}{reason}",
                is_final=400 <= answer.status < 500 and answer.status not in (408, 429),
            )


class NotDelivered(RecordError):
    """A destination did not take what was sent; `is_final` if sending it again is of no use."""

    def __init__(self, message: str, *, is_final: bool = False, hint: str = ANOTHER_ADDRESS) -> None:
        super().__init__(message, where="--out", hint=hint)
        self.is_final = is_final


def address_of(text: str) -> Address | None:
    """Parse an http or https URL; None for anything else.

    Raises:
        UsageError: A URL without a host, or with a port that is none.
    """
    if not text.startswith(("http://", "https://")):
        return None
    parts = urlsplit(text)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        port = 0
    if not parts.hostname or not port:
        raise UsageError("not a URL of a host and port", where="--out", hint="http://127.0.0.1:4318")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    tls = Tls() if parts.scheme == "https" else None
    return Address(parts.hostname, port, path, tls, headers, shown)


class _RemoteWrite:
    def __init__(self, address: Address, say: Callable[[str], None]) -> None:
        self._address, self._say = address, say
        self._encoder = prometheus.RemoteWrite()
        self._takes_native = True

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        for classic, native in self._encoder.requests(snapshots):
            self._address.post(self._address.path, classic, prometheus.REMOTE_WRITE_HEADERS)
            if native and self._takes_native:
                try:
                    self._address.post(self._address.path, native, prometheus.REMOTE_WRITE_HEADERS)
                except NotDelivered:
                    self._takes_native = False
                    self._say(f"{self._address.shown} takes no native histograms: explicit buckets only")

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        pass


class _Otlp:
    def __init__(self, address: Address) -> None:
        given = os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", "")
        pairs = (part.partition("=") for part in given.split(",") if "=" in part)
        headers = {name.strip(): unquote(value.strip()) for name, _, value in pairs}
        self._address = replace(address, headers={**address.headers, **headers})
        self._base = address.path.rstrip("/").removesuffix(otlp.METRICS_PATH)

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        self._post(otlp.METRICS_PATH, otlp.metrics(snapshots, __version__))

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        if requests:
            self._post(otlp.TRACES_PATH, otlp.spans(requests, __version__))

    def _post(self, path: str, body: bytes) -> None:
        headers = {**otlp.HEADERS, "Content-Encoding": "gzip"}
        self._address.post(self._base + path, gzip.compress(body, 1), headers)


class _InfluxServer:
    def __init__(self, address: Address) -> None:
        token = os.environ.get("INFLUX_TOKEN")
        headers = {"Authorization": f"Token {token}"} if token else {}
        self._address = replace(address, headers={**address.headers, **headers})

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        body = "".join(influx.lines(snapshots)).encode()
        headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip"}
        self._address.post(self._address.path, gzip.compress(body, 1), headers)

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        pass


class _InfluxFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            descriptor = named_pipes.opener(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            self._file = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
        except OSError as fault:
            raise _unwritable(path, fault) from None

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        try:
            self._file.writelines(influx.lines(snapshots))
            self._file.flush()
        except OSError as fault:
            raise _unwritable(self._path, fault) from None

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        try:
            self._file.close()
        except OSError as fault:  # a file system over a network may say it only now
            raise _unwritable(self._path, fault) from None


class _Parquet:
    def __init__(self, path: Path) -> None:
        self._path = path

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        pass

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        write_requests(run, self._path)


def _unwritable(path: Path, fault: OSError) -> NotDelivered:
    return NotDelivered(f"cannot write {path}: {reason_of(fault)}", is_final=True, hint=ANOTHER_FILE)


class _Scrape:
    """A page of metrics for Prometheus to scrape; after the load it stays until it was scraped once more."""

    def __init__(self, host: str, port: int) -> None:
        self._newest: list[Snapshot] = []
        self._changed = threading.Condition()
        self._scraped_of: bool | None = None  # whether the page that was read last was the final one
        self._is_final = False
        outer = self

        class Handler(BaseHTTPRequestHandler):
            timeout = WITHIN_S

            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in ("/metrics", "/"):
                    self.send_error(404)
                    return
                page, is_final = outer._page()
                self.send_response(200)
                self.send_header("Content-Type", prometheus.CONTENT_TYPE)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)
                outer._scraped(is_final=is_final)

            def log_message(self, format: str, *args: object) -> None:
                pass

        try:
            self._server = (_ServerV6 if ":" in host else _Server)((host, port), Handler)
        except OSError as fault:
            raise UsageError(
                f"cannot listen on {host}:{port}: {reason_of(fault)}",
                where="--out",
                hint="another port: prometheus=:9465",
            ) from None
        threading.Thread(target=self._server.serve_forever, args=(0.2,), daemon=True).start()

    def _page(self) -> tuple[bytes, bool]:
        with self._changed:
            self._scraped_of = self._scraped_of or False  # who asks once will ask again
            return prometheus.as_text(self._newest).encode(), self._is_final

    def _scraped(self, *, is_final: bool) -> None:
        with self._changed:
            self._scraped_of = is_final
            self._changed.notify_all()

    def send(self, snapshots: Sequence[Snapshot]) -> None:
        with self._changed:
            newest = {
                (point.family, point.labels): (snapshot, point)
                for snapshot in (*self._newest, *snapshots)
                for point in snapshot.points
            }
            self._newest = [replace(snapshot, points=(point,)) for snapshot, point in newest.values()]

    def finish(self, run: Path, requests: Sequence[SlowRequest]) -> None:
        with self._changed:
            self._is_final = True
            if self._scraped_of is not None:
                self._changed.wait_for(lambda: self._scraped_of, LAST_SCRAPE_WITHIN_S)
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a scraper that went away, as one does whose time is up."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def sink_of(kind: str, place: str, say: Callable[[str], None]) -> Sink:
    """Open a destination.

    Args:
        kind: prometheus, otlp, influx or parquet.
        place: A URL; for prometheus also HOST:PORT to be scraped at, for influx also a file.
        say: Receives cautions.

    Raises:
        UsageError: It is not a place of this kind, or nothing can listen there.
        RecordError: A file cannot be written.
    """
    address = address_of(place)
    match kind:
        case "otlp" if address is not None:
            return _Otlp(address)
        case "otlp":
            raise UsageError(f"not a URL: {place}", where="--out", hint="otlp=http://127.0.0.1:4318")
        case "influx":
            return _InfluxFile(_file_of(place)) if address is None else _InfluxServer(address)
        case "parquet":
            return _Parquet(_file_of(place))
        case _ if address is not None:
            return _RemoteWrite(address, say)
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(
            f"neither a port to be scraped at nor a URL to write to: {place}",
            where="--out",
            hint="prometheus=:9464, or prometheus=http://127.0.0.1:9090/api/v1/write",
        )
    return _Scrape(host.strip("[]") or "127.0.0.1", int(port))


def _file_of(place: str) -> Path:
    path = Path(place)
    if not path.parent.is_dir():
        raise UsageError(f"no folder {path.parent}", where="--out", hint=f"mkdir -p {path.parent}")
    if path.is_dir():
        raise UsageError(f"{path} is a folder", where="--out", hint=f"a file, such as {path}/result")
    return path


class Export:
    """Delivers the numbers of one run to its destinations.

    A destination that fails is tried again until the end: nothing that was counted is left out silently.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._queues = [_Queue(sink) for sink in sinks]
        self._following: Following | None = None
        self._skip: frozenset[Path] = frozenset()
        self._run: Path | None = None

    @contextmanager
    def following(self, run: Path) -> Iterator[None]:
        """Deliver while a run is written; trials that were there before are left out."""
        self._run, self._skip = run, frozenset(record.trial_folders(run))
        self._following = Following(run, self._skip)
        stop = threading.Event()
        thread = threading.Thread(target=self._deliver_until, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _deliver_until(self, stop: threading.Event) -> None:
        assert self._following is not None
        next_s = time.monotonic() + SEND_EVERY_S
        while not stop.wait(LOOK_EVERY_S):
            try:
                snapshots = list(self._following.more())
            except RecordError:
                continue  # a file that is being written; what stays damaged is said at the end
            is_time = time.monotonic() >= next_s
            next_s += SEND_EVERY_S * is_time
            for queue in self._queues:
                queue.put(snapshots)
                if is_time or isinstance(queue.sink, _Scrape):
                    queue.try_send()

    def of(self, run: Path) -> None:
        """Set the run, which is complete already."""
        self._run = run

    def finish(self, result: Result | None) -> None:
        """Deliver what is left, the figures of the result and the slow requests; nothing if nothing was run.

        Raises:
            RecordError: A destination did not take everything; the others have.
        """
        run = self._run
        if run is None or not record.is_record(run):
            return
        following = self._following or Following(run)
        snapshots = list(following.more())
        latest_ns = max((snapshot.time_ns for snapshot in snapshots), default=0)
        latest_ns = max((latest_ns, *(queue.latest_ns for queue in self._queues)))
        if latest_ns and result is not None:
            snapshots.append(_of_figures(result.rows, record.run_id(run), latest_ns))
        requests = list(slow_requests(run, self._skip))
        faults = []
        until_s = time.monotonic() + TRY_FOR_S
        for queue in self._queues:
            queue.put(snapshots)
            try:
                queue.finish(run, requests, until_s)
            except RecordError as fault:
                faults.append(fault)
        if faults:
            raise joined(faults)


class _Queue:
    """Snapshots on their way to a destination."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.latest_ns = 0
        self._waiting: list[Snapshot] = []
        self._fault: NotDelivered | None = None

    def put(self, snapshots: Sequence[Snapshot]) -> None:
        if self._fault is None or not self._fault.is_final:
            self._waiting += snapshots
        self.latest_ns = max((self.latest_ns, *(snapshot.time_ns for snapshot in snapshots)))

    def try_send(self) -> None:
        """Send what waits, unless an earlier failure is final."""
        if not self._waiting or (self._fault is not None and self._fault.is_final):
            return
        try:
            self.sink.send(self._waiting)
            self._waiting, self._fault = [], None
        except NotDelivered as fault:
            self._fault = fault
            if sum(len(snapshot.points) for snapshot in self._waiting) > MOST_WAITING:
                fault.is_final = True

    def finish(self, run: Path, requests: Sequence[SlowRequest], until_s: float) -> None:
        """Deliver what waits, trying until a moment of the monotonic clock; then what comes last."""
        self.try_send()
        while self._waiting and not (self._fault and self._fault.is_final) and time.monotonic() < until_s:
            time.sleep(0.5)
            self.try_send()
        if self._fault is not None:
            raise self._fault
        self.sink.finish(run, requests)


def _of_figures(rows: Sequence[Row], run: str, time_ns: int) -> Snapshot:
    """Return the figures of a result with their intervals; one without a value is left out."""
    points = []
    for row in rows:
        labels = {"loadlens.run": run, "loadlens.metric": row.metric}
        labels |= {"loadlens.case": row.case} if row.case else {}
        labels |= {"loadlens.step": row.step} if row.step else {}
        match row.value:
            case Estimate() as figure:
                unit = figure.unit
                bounds = {"value": figure.point, "low": figure.low, "high": figure.high}
            case int() | float() as number:
                unit, bounds = row.unit, {"value": float(number)}
            case _:
                continue
        labels |= {"loadlens.unit": unit} if unit else {}
        for bound, value in bounds.items():
            if value is not None:
                key = tuple(sorted((labels | {"loadlens.bound": bound}).items()))
                points.append(Point(FIGURE, key, value))
    return Snapshot(time_ns, time_ns, tuple(points))
