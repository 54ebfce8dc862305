"""Is a service ready? It is when it answers with exactly the status that was asked for, and not before."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from loadlens.model.topology import Ready
from loadlens.testbed.ports import HOST

_ATTEMPT_WITHIN_S = 2.0
_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.25


@dataclass(slots=True)
class Watch:
    """One replica on its way to being ready."""

    name: str
    port: int
    ready: Ready
    connect_only: bool = False  # no `ready:` in the study: a listening port is all there is to see
    requests: int = 0  # sent so far: they stand in the accounting of the trial
    last_seen: str = "nothing was tried"
    after_s: float | None = field(default=None)  # none: not ready yet

    @property
    def wanted(self) -> str:
        """What is waited for, in words."""
        if self.connect_only:
            return f"a listener on {HOST}:{self.port}"
        return f"status {self.ready.status} from GET http://{HOST}:{self.port}{self.ready.path}"

    def attempt(self) -> bool:
        """Ask once; keeps what was seen."""
        if self.connect_only:
            return self._connect()
        connection = http.client.HTTPConnection(HOST, self.port, timeout=_ATTEMPT_WITHIN_S)
        try:
            connection.connect()
            self.requests += 1
            connection.request("GET", self.ready.path, headers={"Connection": "close", "Accept": "*/*"})
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            self.last_seen = f"last: {_words(error)}"
            return False
        finally:
            connection.close()
        self.last_seen = f"last: status {status}"
        return status == self.ready.status

    def _connect(self) -> bool:
        try:
            socket.create_connection((HOST, self.port), timeout=_ATTEMPT_WITHIN_S).close()
        except OSError as error:
            self.last_seen = f"last: {_words(error)}"
            return False
        return True


def await_ready(watches: Sequence[Watch], check: Callable[[], None]) -> Watch | None:
    """Ask all until all are ready; the first one that was not ready in its time, or none.

    Args:
        watches: Those that are ready have `after_s` set when this returns.
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
            if time.monotonic() - began > watch.ready.within_s:
                return watch
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE_S, pause * 1.5)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {_ATTEMPT_WITHIN_S:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"an answer that is not HTTP ({type(error).__name__})"
