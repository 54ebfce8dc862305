"""A fleet on hosts that `ssh` reaches: a scheduler here, a worker on each host, and tunnels between them.

Scheduler and workers listen on loopback alone. All between machines goes through OpenSSH, so no port is
opened and no certificate is needed. `~/.ssh/config`, agents and jump hosts work as at the terminal.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final
from urllib.parse import urlsplit

from loadlens.errors import UsageError

JOIN_S: Final = 30.0
PYTHON: Final = "LOADLENS_FLEET_PYTHON"  # the interpreter on the hosts; by default the path of the one here
PORTS: Final = range(20_000, 32_000)  # below those that systems give out by themselves


@contextlib.contextmanager
def workers(hosts: Sequence[str], scheduler: Any) -> Iterator[None]:
    """Run a worker on each host within the block.

    Args:
        hosts: As `ssh` takes them.
        scheduler: Dask's, in this process, on loopback.

    Raises:
        UsageError: A host is not reached, or its worker does not join.
    """
    port = urlsplit(scheduler.address).port or 0
    many = Counter(hosts)
    seen: Counter[str] = Counter()
    with contextlib.ExitStack() as held:
        started = {}
        for host in hosts:
            seen[host] += 1
            base = host.rpartition("@")[2]
            name = base if many[host] == 1 else f"{base}-{seen[host]}"
            errors = held.enter_context(tempfile.TemporaryFile())
            started[name] = (host, held.enter_context(_tunnel(host, name, port, errors)), errors)
        until = time.monotonic() + JOIN_S
        while lacking := started.keys() - {worker.name for worker in list(scheduler.workers.values())}:
            for name in sorted(lacking):
                host, process, errors = started[name]
                if process.poll() is not None or time.monotonic() > until:
                    raise UsageError(
                        f"no node on {host}: {_last_line(errors)}",
                        hint=f"ssh {host} {_python()} -m dask --version",
                    )
            time.sleep(0.05)
        yield


@contextlib.contextmanager
def _tunnel(host: str, name: str, its_port: int, errors: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker on a host, which reaches the scheduler at a port here, and is reached from here."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        here = taken.getsockname()[1]  # free again at once, for ssh
    there, to_scheduler = random.sample(PORTS, 2)
    worker = [
        *(_python(), "-m", "dask", "worker", f"tcp://127.0.0.1:{to_scheduler}"),
        *("--listen-address", f"tcp://127.0.0.1:{there}", "--contact-address", f"tcp://127.0.0.1:{here}"),
        *("--name", name, "--no-nanny", "--nthreads", "1", "--memory-limit", "0", "--no-dashboard"),
        *("--death-timeout", f"{JOIN_S:g}"),
    ]
    options = ("BatchMode=yes", "ExitOnForwardFailure=yes", "ServerAliveInterval=1", "ServerAliveCountMax=3")
    process = subprocess.Popen(
        [
            *("ssh", "-T", *(word for option in options for word in ("-o", option))),
            *("-R", f"127.0.0.1:{to_scheduler}:127.0.0.1:{its_port}"),
            *("-L", f"127.0.0.1:{here}:127.0.0.1:{there}"),
            *("--", host, shlex.join(["sh", "-c", _in_a_folder(worker)])),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,  # Ctrl-C at a terminal is the controller's
    )
    try:
        yield process
    finally:
        process.terminate()  # the worker ends when it loses its scheduler
        process.wait()


def _in_a_folder(worker: Sequence[str]) -> str:
    """Return the command line of a worker with a folder of its own, which is removed when it has ended."""
    removed = """folder=$(mktemp -d) || exit; trap 'rm -rf "$folder"' EXIT; trap exit HUP TERM"""
    return f'{removed}; {shlex.join(worker)} --local-directory "$folder"'


def _python() -> str:
    return os.environ.get(PYTHON, sys.executable)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"its worker did not join within {JOIN_S:g} s"
