"""Discovery for `explain`: the processes behind the port, metrics, and cheap requests for the probe.

Processes come from /proc. The service is asked at most once for each path below, one request at a time, with
GET or HEAD only, which by RFC 9110 change nothing. A service on another machine is asked for the load's
request alone, to refuse one that is answered by a redirect.
"""

from __future__ import annotations

import http.client
import ipaddress
import pwd
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urljoin, urlsplit

from loadlens import http_client
from loadlens.errors import TestbedError
from loadlens.machine import listening_sockets
from loadlens.machine.listening_sockets import Listening, Process
from loadlens.machine.peers import Peers
from loadlens.model.search import Aim
from loadlens.model.topology import Peer, Scrape
from loadlens.model.workload import MISSING_PAGE, Step
from loadlens.present import numbers, words
from loadlens.search.step_cases import Baseline

METRICS_PATHS: Final = (
    "/metrics",
    "/metrics/",  # an application that is mounted at /metrics answers there with a redirect to here
    "/actuator/prometheus",  # Spring Boot
    "/prometheus",  # Micronaut, and by hand with Micrometer
    "/q/metrics",  # Quarkus
    "/management/prometheus",  # JHipster
    "/observe/metrics",  # Helidon SE
)
HEALTH_PATHS: Final = ("/health", "/healthz", "/ready", "/livez")
NO_SUCH_PATH: Final = "/loadlens-no-such-path"
METRICS_WITHIN_S: Final = 2.0
ALL_METRICS_WITHIN_S: Final = 3.0  # a service that is slow to answer keeps time for the cheap requests
CHEAP_WITHIN_S: Final = 1.0  # what takes longer is not cheap
REDIRECT_WITHIN_S: Final = 3.0
ALL_WITHIN_S: Final = 5.0  # discovery gives up the rest afterwards

SafeMethod = Literal["GET", "HEAD"]


@dataclass(frozen=True, slots=True)
class Discovered:
    """The completed aim, and what to say about it."""

    aim: Aim
    parts: tuple[str, ...] = ()  # that were found
    missing: tuple[str, ...] = ()  # not watched, with the reason
    flags: tuple[str, ...] = ()  # that switch off what was found
    requests: int = 0  # sent to the service; no record of a trial holds them


def refuse_redirects(aim: Aim) -> int:
    """Refuse requests that are answered by a redirect, unless its status is expected; the number of requests.

    Only GET and HEAD without templates are tried.

    Raises:
        TestbedError: The answer is a redirect.
    """
    url = urlsplit(aim.origin)
    port = url.port or (443 if url.scheme == "https" else 80)
    requests = 0
    for step in aim.steps:
        texts = (step.path, *(value for _, value in step.headers))
        if step.method not in ("GET", "HEAD") or step.expect or any("{{" in text for text in texts):
            continue
        method: SafeMethod = "GET" if step.method == "GET" else "HEAD"
        requests += 1
        try:
            to = http_client.redirect_of(
                url.hostname or "", port, method, step.path, step.headers, aim.tls, within_s=REDIRECT_WITHIN_S
            )
        except (OSError, http.client.HTTPException):
            continue  # the first trial says what is wrong
        if to is not None:
            address = urljoin(f"{aim.origin}{step.path}", to) if to else "an address that it does not name"
            raise TestbedError(
                f"a redirect to {address}, which would be measured in its place",
                where=f"{aim.origin}{step.path}",
                hint=f"loadlens explain {address}; or --expect 3xx to measure the redirect itself"
                if to
                else "--expect 3xx to measure the redirect itself",
            )
    return requests


def discover(aim: Aim) -> Discovered:
    """Complete an aim with what it wants found; the service must be running."""
    if not aim.outside.is_here:
        what = "its processes, its metrics and cheap requests"
        why = f"{what} are not looked for: the service is on another machine (--metrics URL, --probe URL)"
        return Discovered(aim, missing=(why,) if aim.find.anything else ())
    parts: list[str] = []
    missing: list[str] = []
    flags: list[str] = []
    if aim.find.processes:
        url = urlsplit(aim.origin)
        port = url.port or (443 if url.scheme == "https" else 80)
        resolved = socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
        listening = listening_sockets.listening_on(
            {ipaddress.ip_address(str(each[4][0])) for each in resolved}, port
        )
        missing += _not_watched(listening, aim.origin)
        if listening.processes:
            pids = tuple(process.pid for process in listening.processes)
            aim = replace(aim, outside=replace(aim.outside, pids=pids))
            parts.append(_processes_text(listening.processes))
            flags.append("--no-pid")
    questions = _Questions(aim)
    if aim.find.metrics:
        path, series = questions.metrics()
        if path is None:
            missing.append(
                f"no metrics in the Prometheus text format at {METRICS_PATHS[0]} or "
                f"{words.plural(len(METRICS_PATHS) - 1, 'other usual path')} (--metrics URL)"
            )
        else:
            aim = replace(aim, outside=replace(aim.outside, scrape=Scrape(path=path, tls=aim.tls)))
            parts.append(f"metrics at {path} ({words.plural(series, 'metric')})")
            flags.append("--no-metrics")
    if aim.find.probe:
        aim = replace(aim, candidates=tuple(questions.cheap_requests()))
    return Discovered(aim, tuple(parts), tuple(missing), tuple(flags), questions.requests)


def with_probe(discovered: Discovered, baseline: Baseline) -> Discovered:
    """Add the probe that was chosen from the candidates."""
    if baseline.probe not in discovered.aim.candidates or baseline.probe_alone_s is None:
        if not discovered.aim.find.probe or not discovered.aim.outside.is_here:
            return discovered
        missing = "no request that takes at most half as long as the load's, for the probe (--probe URL)"
        return replace(discovered, missing=(*discovered.missing, missing))
    probe, took = baseline.probe, numbers.with_unit(baseline.probe_alone_s, "s")
    answer = " (404)" if probe.expect else ""
    text = (
        f"probe {probe.method} {probe.path}{answer}: {took} where the load's request takes "
        f"{numbers.with_unit(baseline.alone_s, 's')}"
    )
    return replace(discovered, parts=(*discovered.parts, text), flags=(*discovered.flags, "--no-probe"))


def with_peers(discovered: Discovered, seen: Peers) -> Discovered:
    """Add the processes that the service calls, with the ports of TCP that it calls them at."""
    called = tuple(seen.processes.values())
    if not called:
        return discovered
    names = [process.name for process in called]
    taken = {discovered.aim.outside.name, *(name for name in names if names.count(name) > 1)}
    peers = tuple(
        Peer(
            f"{each.name} {each.pid}" if each.name in taken else each.name,
            each.pid,
            tuple(sorted(seen.ports.get(each.pid, ()))),
            has_code=each.pid in seen.has_code,
        )
        for each in called
    )
    outside = replace(discovered.aim.outside, peers=peers)
    text = f"calls {_processes_text(called).partition(' ')[2]}"
    return replace(
        discovered,
        aim=replace(discovered.aim, outside=outside),
        parts=(*discovered.parts, text),
        flags=(*discovered.flags, "--no-peers"),
    )


def lines(discovered: Discovered) -> Iterator[str]:
    """Yield one line for what was found, with the flags that switch it off, and one for what was not."""
    if discovered.parts:
        yield f"found {'; '.join(discovered.parts)} (off: {' '.join(discovered.flags)})"
    if discovered.missing:
        yield f"not found: {'; '.join(discovered.missing)}"


# --- processes -------------------------------------------------------------------------------------------


def _processes_text(processes: Sequence[Process]) -> str:
    named = [f"{process.pid} ({process.name})" for process in processes]
    started = len(listening_sockets.with_descendants([process.pid for process in processes])) - len(named)
    children = f" and {words.plural(started, 'process', 'processes')} started by it" if started else ""
    return f"{'process' if len(named) == 1 else 'processes'} {', '.join(named)}{children}"


def _not_watched(listening: Listening, origin: str) -> Iterator[str]:
    place = origin.partition("://")[2]
    if listening.forwarder is not None:
        forwarder = listening.forwarder
        yield (
            f"the service's process is not watched: {forwarder.name} ({forwarder.pid}) passes connections on "
            "to it (--pid PID)"
        )
    elif listening.hidden_users:
        names = ", ".join(_user(user) for user in listening.hidden_users)
        yield f"the process on {place} is not watched: it belongs to {names} (sudo)"
    elif not listening.processes:
        why = "this program was started by it" if listening.is_open else "none is seen on this machine"
        yield f"no process on {place} is watched: {why} (--pid PID)"


def _user(number: int) -> str:
    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


# --- requests --------------------------------------------------------------------------------------------


class _Questions:
    """Requests of the discovery to a service, until one gets no connection or the time is up."""

    def __init__(self, aim: Aim) -> None:
        url = urlsplit(aim.origin)
        self._aim = aim
        self._host = url.hostname or ""
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._until = time.monotonic() + ALL_WITHIN_S
        self.requests = 0

    def metrics(self) -> tuple[str | None, int]:
        """Return the path of metrics in the Prometheus text format, and the number of their names."""
        until = time.monotonic() + ALL_METRICS_WITHIN_S
        for path in METRICS_PATHS:
            left_s = self._left_s(min(METRICS_WITHIN_S, until - time.monotonic()))
            if left_s is None:
                break
            self.requests += 1
            try:
                page = http_client.metrics(self._host, self._port, path, self._aim.tls, within_s=left_s)
                is_typed = "# TYPE " in page.text  # "hello 5" is in the format, too
                names = (
                    http_client.metric_names(page.text) if page.status == 200 and is_typed else frozenset()
                )
            except (OSError, http.client.HTTPException, ValueError):
                continue
            if names:
                return path, len(names)
        return None, 0

    def cheap_requests(self) -> Iterator[Step]:
        """Yield requests that may be cheap: health checks, a path without a page, and HEAD of the URL."""
        load = self._aim.steps[0]
        own = {step.path for step in self._aim.steps}
        for path in HEALTH_PATHS:
            status = None if path in own else self._status("GET", path)
            if status is not None and 200 <= status <= 299:
                yield Step(path, "GET", path, load.headers)
        if self._status("GET", NO_SUCH_PATH) == 404:
            yield Step(MISSING_PAGE, "GET", NO_SUCH_PATH, load.headers, expect=(404,))
        if load.method == "GET" and "{{" not in load.path:
            status = self._status("HEAD", load.path)
            if status is not None and 200 <= status <= 299:
                yield Step(f"HEAD {load.name}", "HEAD", load.path, load.headers)

    def _status(self, method: SafeMethod, path: str) -> int | None:
        """Return the status of an answer; `None` if there was none in time."""
        left_s = self._left_s(CHEAP_WITHIN_S)
        headers = self._aim.steps[0].headers
        if left_s is None or any("{{" in value for _, value in headers):
            return None
        self.requests += 1
        try:
            return http_client.status(
                self._host, self._port, method, path, headers, self._aim.tls, within_s=left_s
            )
        except (OSError, http.client.HTTPException):
            return None

    def _left_s(self, most_s: float) -> float | None:
        left_s = min(most_s, self._until - time.monotonic())
        return left_s if left_s > 0.05 else None
