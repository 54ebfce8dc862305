"""Cost of the fault proxy: `python -m benches.proxy ORIGIN`, ORIGIN being the program `loadlens-origin`.

Loads go to the origin and through a proxy without faults to the same origin, in turn, so that what else the
machine does meets both. The CPU is what the scheduler gave the proxy's process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROUNDS = 5
SECONDS = 2


@contextmanager
def _running(command: list[str]) -> Iterator[tuple[int, str]]:
    """A program that ends with its input: its pid and its first line."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.pid, process.stdout.readline()
    finally:
        process.stdin.close()
        process.wait(10)


def _cpu_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _hit(port: int, connections: int) -> tuple[float, int]:
    """Median response time in seconds, and how many were answered."""
    url = f"http://127.0.0.1:{port}/"
    command = [
        sys.executable,
        "-m",
        "loadlens",
        "hit",
        url,
        "-c",
        str(connections),
        "-d",
        f"{SECONDS}s",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    return float(result["response_time_s"]["p50"]["value"]), int(result["requests"]["answered"])


def main(origin: str) -> None:
    """Print added time and CPU of a request for one connection and for many."""
    with _running([origin]) as (_, hello), tempfile.TemporaryDirectory() as folder:
        port = json.loads(hello)["port"]
        file = Path(folder) / "settings.json"
        anywhere = "127.0.0.1:0"
        file.write_text(
            json.dumps({"listen": anywhere, "control": anywhere, "upstreams": [f"127.0.0.1:{port}"]})
        )
        proxy = [sys.executable, "-m", "loadlens.testbed.proxy_process", str(file)]
        with _running(proxy) as (pid, first_line):
            own = int(first_line.split()[4].rstrip(","))
            for connections in (1, 32):
                added, cpu = [], []
                for _ in range(ROUNDS):
                    direct_s, _ = _hit(port, connections)
                    before = _cpu_s(pid)
                    through_s, answered = _hit(own, connections)
                    cpu.append((_cpu_s(pid) - before) / answered)
                    added.append(through_s - direct_s)
                more_us, cpu_us = (1e6 * statistics.median(each) for each in (added, cpu))
                print(
                    f"{connections:>3} connections: {more_us:.1f} us more at the median, "
                    f"{cpu_us:.1f} us of CPU a request (medians of {ROUNDS} pairs)"
                )


if __name__ == "__main__":
    main(sys.argv[1])
