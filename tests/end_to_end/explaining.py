"""Running `loadlens explain`, for the tests of this folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from loadlens.testbed.ports import Ports
from tests.calm import assert_ran
from tests.end_to_end.hitting import environment
from tests.end_to_end.testbed_cases import command_of

LIMIT_S = 180
SLOW_SERVICE = Path(__file__).with_name("slow_service.py")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "loadlens", "explain", *arguments]


def tried(*arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a search to its end, however it ends."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment() | more.pop("variables", {}),
        **more,
    )


def explained(*arguments: str, **more: Any) -> dict[str, Any]:
    """Run a search that must exit 0, and give its JSON."""
    done = tried(*arguments, "--json", **more)
    assert_ran(done)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def free_port() -> int:
    """One below those of outgoing connections, so that none sits on it before it is bound."""
    ports = Ports()
    port = ports.take()
    ports.release()
    return port


def naming(text: str) -> list[int]:
    """Live processes whose command line names a text, but this one."""
    pids = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        try:
            line = command_of(folder.name)
        except OSError:
            continue
        if text in line:
            pids.append(int(folder.name))
    return pids
