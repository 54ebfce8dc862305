"""Readiness of services: a service is ready once it gives exactly the answer that its study requires."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from loadlens import http_client
from loadlens.errors import TestbedError
from loadlens.model.topology import Ready
from loadlens.testbed.ports import HOST

ATTEMPT_WITHIN_S = 2.0
DISTRUST_WITHIN_S = 5.0  # a proxy may present a default certificate until it has read its settings
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.25


class Question(Protocol):
    """A readiness check of a service."""

    @property
    def wanted(self) -> str:
        """Description of the expected answer."""

    @property
    def requests(self) -> int:
        """HTTP requests sent so far; the accounting of the trial includes them."""

    def ask(self) -> str | None:
        """Check once: None if the service is ready, else a description of its answer.

        Raises:
            OSError: Nothing listens, or the connection broke.
            TestbedError: The check itself is impossible, whatever the service does.
        """


class HttpStatus:
    """GET `path` answers exactly `status`; without a status, anything below 500."""

    def __init__(self, port: int, ready: Ready) -> None:
        self._host, self._port = ready.address or (HOST, port)
        self._ready = ready
        self.requests = 0

    @property
    def wanted(self) -> str:
        """Description of the expected answer."""
        status = "a status below 500" if self._ready.status is None else f"status {self._ready.status}"
        scheme = "http" if self._ready.tls is None else "https"
        return f"{status} from GET {scheme}://{self._host}:{self._port}{self._ready.path}"

    def ask(self) -> str | None:
        """Send the request once."""
        try:
            connection = http_client.connection(
                self._host, self._port, self._ready.tls, within_s=ATTEMPT_WITHIN_S
            )
        except http_client.FileFault as fault:
            raise TestbedError(str(fault), where="tls", hint=fault.hint) from None
        try:
            connection.connect()
            self.requests += 1
            connection.request("GET", self._ready.path, headers={"Connection": "close", "Accept": "*/*"})
            status = connection.getresponse().status
        except http.client.HTTPException as error:
            return http_client.words(error)
        finally:
            connection.close()
        wanted = self._ready.status
        is_ready = status < 500 if wanted is None else status == wanted
        return None if is_ready else f"status {status}"


class Listener:
    """Ready once the port has a listener: the check for services whose study names no other."""

    requests = 0

    def __init__(self, port: int) -> None:
        self._port = port

    @property
    def wanted(self) -> str:
        """Description of the expected answer."""
        return f"a listener on {HOST}:{self._port}"

    def ask(self) -> str | None:
        """Connect once."""
        socket.create_connection((HOST, self._port), timeout=ATTEMPT_WITHIN_S).close()
        return None


@dataclass(slots=True)
class Watch:
    """One replica on its way to being ready."""

    name: str
    question: Question
    within_s: float
    seen: str | None = "nothing was tried"  # at the last attempt; None: ready
    fault: OSError | None = None  # of the last attempt
    distrusted_since: float | None = None  # monotonic seconds; None: its certificate was not rejected
    after_s: float | None = field(default=None)  # None: not ready yet

    def attempt(self) -> bool:
        """Check once and keep the result."""
        self.fault = None
        try:
            self.seen = self.question.ask()
        except OSError as error:
            self.fault, self.seen = error, _words(error)
        if not http_client.is_distrust(self.fault):
            self.distrusted_since = None
        elif self.distrusted_since is None:
            self.distrusted_since = time.monotonic()
        return self.seen is None

    @property
    def is_hopeless(self) -> bool:
        """True if the certificate was rejected for so long that it will not change any more."""
        since = self.distrusted_since
        return since is not None and time.monotonic() - since > DISTRUST_WITHIN_S


def await_ready(watches: Sequence[Watch], check: Callable[[], None]) -> Watch | None:
    """Check all replicas until all are ready; return the first one that was late, or None.

    Args:
        watches: `after_s` is set on return for those that are ready.
        check: Called between rounds; raises if one of the processes has ended.
    """
    began = time.monotonic()
    pause = _FIRST_PAUSE_S
    while True:
        check()
        for watch in watches:
            if watch.after_s is None and watch.attempt():
                watch.after_s = time.monotonic() - began
        waiting = [watch for watch in watches if watch.after_s is None]
        if not waiting:
            return None
        for watch in waiting:
            if watch.is_hopeless or time.monotonic() - began > watch.within_s:
                return watch
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_S, pause * 1.5)


def _words(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ATTEMPT_WITHIN_S:g} s"
    return http_client.words(error)
