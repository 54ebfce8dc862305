"""Runs a demo service under a keeper, which ends it and removes its folder however the lab ends."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loadlens.demo.flaws import Flaw
from loadlens.testbed import remains
from loadlens.testbed.keeper import Command, Keeper

SERVICE: Final = "demo"
UP_WITHIN_S: Final = 30.0


@contextmanager
def running(flaw: Flaw, folder: Path) -> Iterator[str]:
    """Start the service of a flaw, and end it afterwards; yields the URL of its request.

    It runs from a copy of its source outside of the package, like code of a user's own.

    Args:
        flaw: The service to start.
        folder: A folder for temporary files, removed at the end, even if this process is killed.

    Raises:
        TestbedError: It did not start.
    """
    remains.end()
    log = folder / "service.log"
    source = shutil.copy(flaw.source, folder)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOADLENS_")}
    command = Command(
        argv=(sys.executable, str(source)),
        env=environment | {"PORT": "0"},
        cwd=folder,
        log=log,
        follow=True,
    )
    with Keeper(marker=f"demo-{secrets.token_hex(4)}", scratch=(folder,)) as keeper:
        keeper.spawn(SERVICE, command)
        yield _origin(keeper, log) + flaw.path


def _origin(keeper: Keeper, log: Path) -> str:
    """Return the URL that the service prints once it listens."""
    until = time.monotonic() + UP_WITHIN_S
    while time.monotonic() < until:
        standing = keeper.standing()[SERVICE]
        line = standing.output.strip()
        if line.startswith("http://"):
            return line
        if standing.status is not None:
            raise keeper.failure(SERVICE, "the demo service ended at once", log)
        time.sleep(0.02)
    raise keeper.failure(SERVICE, f"the demo service did not listen within {UP_WITHIN_S:.0f} s", log)
