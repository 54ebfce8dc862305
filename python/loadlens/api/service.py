"""Services that run for some tests or cells of a notebook, under a keeper that ends them in any case."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from loadlens import temporary
from loadlens.model.topology import Entry, Ready
from loadlens.model.topology import Service as Planned

NAME: Final = "service"


@dataclass(frozen=True, slots=True)
class Service:
    """A service that runs."""

    url: str  # http://127.0.0.1:PORT, without a slash at its end
    pid: int
    log: Path  # its output

    def __str__(self) -> str:
        return self.url


class Services:
    """Services by what starts them; leaving ends all of them."""

    def __init__(self, folder: Path) -> None:
        """Start nothing yet; commands run below `folder`."""
        self._folder = folder
        self._running: dict[object, Service] = {}
        self._stack = ExitStack()

    def started(
        self,
        start: str,
        *,
        ready: str = "/",
        within: str = "30s",
        env: Mapping[str, str] | None = None,
        dir: str | Path = ".",
    ) -> Service:
        """Return the service of a command, started unless it runs.

        Args:
            start: Its command (no shell), found where this Python finds programs. `$port` is a free port.
            ready: Path whose answer, any below status 500, says that it is ready.
            within: Time that it may take.
            env: Variables besides PATH, HOME and the locale; `{{env NAME}}` takes one of this process.
            dir: Its folder.

        Raises:
            TestbedError: It did not start, or was not ready in time; the message has its last output.
        """
        key = (start, ready, tuple(sorted((env or {}).items())), str(dir))
        if key not in self._running:
            self._running[key] = self._start(start, Path(dir), dict(env or {}), _ready(ready, within))
        return self._running[key]

    def _start(self, start: str, folder: Path, env: Mapping[str, str], ready: Ready) -> Service:
        from loadlens.testbed import Environment, Prepared, Testbed, demand, remains

        remains.end()
        planned = Planned(name=NAME, start=start, env=tuple(env.items()), ready=ready)
        home = self._folder / folder
        demand((planned,), home)
        marker = f"python-{secrets.token_hex(4)}"
        place = self._stack.enter_context(temporary.folder(marker))
        prepared = Prepared({NAME: home}, {NAME: Environment(path=(Path(sys.executable).parent,))})
        testbed = Testbed((planned,), prepared, marker=marker, scratch=place / "scratch", logs=place)
        self._stack.enter_context(testbed)
        testbed.start()
        target, process = testbed.target(Entry(service=NAME)), testbed.processes()[0]
        return Service(target.origin, process.pid, place / f"{NAME}.log")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _ready(path: str, within: str) -> Ready:
    from loadlens import units
    from loadlens.cli.hit_load import quantity

    return Ready(path=path, status=None, within_s=quantity(units.duration_s, within, "within"))
