"""locust: a locustfile that asks one thing and writes down each request, and the statistics of its end.

locust's own percentiles have two digits and its statistics know no status, so each request is taken from its
event `request`; the number of them must be the one in its statistics (`--json-file`).
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadlens.model.external_load import CannotDo
from loadlens.run.external.base import (
    QUANTILES,
    Driver,
    Printed,
    Request,
    Times,
    ToolReport,
    Work,
    unexpected,
)

SCRIPT = "locustfile.py"
REQUESTS = "requests.csv"
REPORT = "loadlens"  # locust appends .json
ANSWERED = "answered"
NS = 1e9
_FILE = """\
import csv
import time
import gevent
import gevent.ssl
from locust import FastHttpUser, constant, events, task
from locust.exception import StopUser

METHOD, URL, HEADERS, LEFT, SECONDS = {method!r}, {url!r}, {headers!r}, {requests!r}, {seconds!r}
CONTEXT = gevent.ssl._create_unverified_context()
with open({body!r}, "rb") as file:
    BODY = file.read() or None
out = open({out!r}, "w", newline="")
rows = csv.writer(out)
asked = ended = 0


class Load(FastHttpUser):
    host = URL
    wait_time = constant(0)
    connection_timeout = network_timeout = {timeout!r}
    insecure = True
    ssl_context_factory = staticmethod(lambda: CONTEXT)  # one of its own takes a user 30 ms of CPU

    @task
    def ask(self):
        global asked
        if LEFT is not None and asked >= LEFT:
            raise StopUser()
        if not asked and SECONDS is not None:  # -t would count from before there are users
            gevent.spawn_later(SECONDS, ENVIRONMENT.runner.quit)
        asked += 1
        self.client.request(METHOD, URL, name="request", data=BODY, headers=HEADERS, allow_redirects=False)


@events.request.add_listener
def request_ended(response_time, response_length, response, exception, **_):
    global ended
    status = response.status_code or 0
    broken = exception is not None and type(exception).__name__ != "LocustBadStatusCode"
    kind = type(exception).__name__ if broken or not status else {answered!r}
    sent = time.monotonic() - response_time / 1e3  # its start_time is of a clock that may be set meanwhile
    rows.writerow((repr(sent), repr(response_time), status, response_length, kind))
    ended += 1
    if ended == LEFT:
        gevent.spawn(ENVIRONMENT.runner.quit)


@events.init.add_listener
def began(environment, **_):
    global ENVIRONMENT
    ENVIRONMENT = environment


@events.quit.add_listener
def ended_all(**_):
    out.close()
"""


def lacks(work: Work) -> Iterator[CannotDo]:
    if work.plan.threads not in (None, 1):
        yield CannotDo("threads", "locust has one process here")
    if work.leaves_users_idle:
        yield CannotDo("requests", "locust wants at least as many requests as users")


def command(work: Work, folder: Path) -> list[str]:
    users, stream, step = work.users, work.stream, work.step
    script = folder / SCRIPT
    headers = dict(work.headers)
    if not any(name.lower() == "accept-encoding" for name in headers):
        headers["Accept-Encoding"] = "identity"  # locust asks for gzip, where our engine asks for nothing
    if stream.connection.reuse == "new":
        headers["Connection"] = "close"
    script.write_text(
        _FILE.format(
            method=step.method,
            url=work.url,
            headers=headers,
            requests=work.requests,
            seconds=None if work.plan.duration_ns is None else work.plan.duration_ns / NS,
            body=str(work.body_file(folder)),
            out=str(folder / REQUESTS),
            timeout=stream.timeout_ns / NS,
            answered=ANSWERED,
        ),
        encoding="utf-8",
    )
    words = ["locust", "-f", str(script), "--headless", "-u", str(users), "-r", str(users)]
    return [*words, "--only-summary", "-L", "ERROR", "--exit-code-on-error", "0", "--json-file",
            str(folder / REPORT)]  # fmt: skip


def read(printed: Printed, work: Work) -> ToolReport:
    file, statistics = printed.folder / REQUESTS, printed.folder / f"{REPORT}.json"
    if not file.is_file() or not statistics.is_file():
        raise ValueError("it ended before its report")
    began_s, requests, errors = _requests(file)
    counted = sum(int(entry["num_requests"]) for entry in json.loads(statistics.read_text()))
    if counted != len(requests):
        raise ValueError(f"it counts {counted} requests and gave its listener {len(requests)}")
    answered = [request for request in requests if not request.is_failed]
    statuses: dict[str, int] = {}
    for request in answered:
        statuses[str(request.status)] = statuses.get(str(request.status), 0) + 1
    return ToolReport(
        seconds=max((round(each.sent_s * NS) + round(each.seconds * NS) for each in requests), default=0)
        / NS,
        answered=len(answered),
        unexpected_status=unexpected(statuses),
        failed=len(requests) - len(answered),
        errors=errors,
        times=_times([each.seconds for each in answered if 200 <= each.status < 400]),
        statuses=statuses,
        bytes_in_bodies=sum(each.body_bytes for each in answered),
        notes=("its time-out bounds connecting and each wait for bytes, not a whole request",),
        began_s=began_s,
        requests=requests,
    )


def _requests(file: Path) -> tuple[float | None, list[Request], dict[str, int]]:
    """Read when the first request was sent, all requests in sending order, and the count of each error."""
    with file.open(newline="") as lines:
        rows = [
            (float(sent), float(ms) / 1e3, int(status), int(size), kind)
            for sent, ms, status, size, kind in csv.reader(lines)
        ]
    rows.sort()
    began = rows[0][0] if rows else None
    errors: dict[str, int] = {}
    requests = []
    for sent, took, status, size, kind in rows:
        if kind != ANSWERED:
            errors[kind] = errors.get(kind, 0) + 1
        requests.append(Request(sent - (began or 0.0), took, status, size, kind != ANSWERED))
    return began, requests, errors


def _times(took: Sequence[float]) -> Times | None:
    """Of successes: what at least so large a share of them took at most."""
    if not took:
        return None
    ordered, count = sorted(took), len(took)
    mean = math.fsum(ordered) / count
    squares = math.fsum((value - mean) ** 2 for value in ordered)
    return Times(
        count=count,
        mean=mean,
        deviation=math.sqrt(squares / (count - 1)) if count > 1 else None,
        least=ordered[0],
        most=ordered[-1],
        quantiles={name: ordered[math.ceil(share * count) - 1] for name, share in QUANTILES.items()},
    )


LOCUST = Driver(
    name="locust",
    install="pip install locust",
    version=("locust", "--version"),
    lacks=lacks,
    words=command,
    report=read,
)
