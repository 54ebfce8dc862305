"""Cost of the page's server: its share of a core while it follows a run, and what it does to the generator.

    python -m benches.ui [--seconds 20] [--pairs 6]

The share is that of the server's process, from the kernel, while a page listens to a study of four replicas
behind a proxy, with monitors at 1 Hz; these fill the page with as many series as it shows. The lateness of
the generator is measured in pairs of `hit` at a rate, one with `--ui` and a page that listens, one without,
in random order; first as the kernel places them, then with the server on the generator's core.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.measuring import GENERATOR_CPU, ROOT, SERVER_CPU, find_origin, origin

RATE = 2_000
NAMES = {True: "with the page", False: "without"}
SETTLES_S = 4.0  # the first looks choose the series
SPARE_S = 6.0  # of the load after the measured part: its end is read at once, which is another work

STUDY = """\
schema: 1
study: page
services:
  shop:
    dir: {folder}
    start: {python} shop.py --port $port
    ready: {{get: /health, status: 200, within: 20s}}
    scrape: {{get: /metrics}}
    replicas: 4
  front: {{use: fault-proxy, over: shop}}
entry: front
scenarios: {{look: [{{name: look, get: /orders}}]}}
trials: 1
experiments:
  alone:
    mix: look
    load: {{rate: 200/s, warmup: 0s, duration: {seconds:.0f}s}}
"""


def main() -> int:
    parser = argparse.ArgumentParser("python -m benches.ui", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of the load that is followed (default 20)"
    )
    parser.add_argument("--pairs", type=int, default=6, help="of the lateness (default 6)")
    asked = parser.parse_args()
    followed(asked.seconds)
    for is_pinned in (False, True):
        say("on one core" if is_pinned else "as the kernel places them")
        late(asked.pairs, is_pinned=is_pinned)
    return 0


def followed(seconds: float) -> None:
    """Print the share of a core that the server takes while a study runs."""
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder, "study.yaml")
        shop = ROOT / "docs" / "examples"
        study.write_text(
            STUDY.format(folder=shop, python=sys.executable, seconds=seconds + SETTLES_S + SPARE_S)
        )
        with running("run", str(study), "--out", str(Path(folder, "run")), "-q", "--ui") as (process, page):
            begun = page.first("points")
            time.sleep(SETTLES_S)
            before, at = cpu_s(page.pid), time.monotonic()
            time.sleep(seconds)
            used, passed = cpu_s(page.pid) - before, time.monotonic() - at
            process.communicate(timeout=60)
    say(f"server, a page and {page.series} series at 1 Hz: {100 * used / passed:.2f} % of a core")
    say(f"  bytes per message of points: {len(begun):,}; resident memory {page.memory_mb:.0f} MB")


def late(pairs: int, *, is_pinned: bool) -> None:
    """Print the lateness of the generator with and without the page, in pairs."""
    dice = random.Random(1)
    lags: dict[bool, list[float]] = {True: [], False: []}
    with origin(find_origin(), SERVER_CPU) as server:
        for number in range(1, pairs + 1):
            for has_page in dice.sample([True, False], 2):
                url = f"http://127.0.0.1:{server.port}/"
                lags[has_page].append(lag_p99_s(url, has_page=has_page, is_pinned=is_pinned))
            both = ", ".join(f"{lags[has][-1] * 1e6:.0f} µs {words}" for has, words in NAMES.items())
            say(f"pair {number}: lag p99 {both}")
    ratios = [with_page / without for with_page, without in zip(lags[True], lags[False], strict=True)]
    say(f"lag p99 with the page over without: median {statistics.median(ratios):.2f}, all {shown(ratios)}")


def lag_p99_s(url: str, *, has_page: bool, is_pinned: bool) -> float:
    """Run a load, and return its lateness."""
    options = ["hit", url, "-r", str(RATE), "-d", "5s", "-t", "1", "--json"]
    if not has_page:
        done = subprocess.run(
            command(*options, is_pinned=is_pinned), capture_output=True, text=True, check=False
        )
        return float(json.loads(done.stdout)["generator"]["lag_p99_s"])
    with running(*options, "--ui", is_pinned=is_pinned) as (process, page):
        page.first("points")
        out, _ = process.communicate(timeout=60)
    return float(json.loads(out)["generator"]["lag_p99_s"])


class Page:
    """A page that listens, and the server behind it."""

    def __init__(self, url: str, parent: int) -> None:
        self.base, _, self.token = url.strip().partition("/#")
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        self.pid = next(
            int(pid) for pid in children if b"loadlens.ui" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        self.series = 0
        self.memory_mb = 0.0
        self._seen: dict[str, bytes] = {}
        self._has = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def first(self, event: str) -> bytes:
        """Wait for an event, and return its data."""
        with self._has:
            self._has.wait_for(lambda: event in self._seen, timeout=60)
        return self._seen[event]

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(self.base + path, headers={"X-Loadlens-Token": self.token})
        return urllib.request.urlopen(request, timeout=60)

    def _listen(self) -> None:
        run = json.load(self._get("/api/runs"))["single"]
        event = ""
        with contextlib.suppress(OSError):
            for line in self._get(f"/api/runs/{run}/stream"):
                if line.startswith(b"event: "):
                    event = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    self._take(event, line[6:])

    def _take(self, event: str, content: bytes) -> None:
        with self._has:
            self._seen.setdefault(event, content)
            self._has.notify_all()
        if event == "trial":
            topics = json.loads(content)["service"]["topics"]
            self.series = max(self.series, sum(len(topic["series"]) for topic in topics))
        with contextlib.suppress(OSError, IndexError):
            status = Path(f"/proc/{self.pid}/status").read_text()
            self.memory_mb = int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextlib.contextmanager
def running(*options: str, is_pinned: bool = True) -> Iterator[tuple[subprocess.Popen[str], Page]]:
    """A command with `--ui` and a page that listens to it."""
    with subprocess.Popen(
        command(*options, is_pinned=is_pinned), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while lines[-1] and not lines[-1].startswith("page: "):
            lines.append(process.stderr.readline())
        if not lines[-1]:
            raise SystemExit("".join(lines))
        try:
            yield process, Page(lines[-1].removeprefix("page: "), process.pid)
        finally:
            process.kill()


def command(*options: str, is_pinned: bool) -> list[str]:
    pinned = ["taskset", "-c", str(GENERATOR_CPU)] if is_pinned else []
    return [*pinned, sys.executable, "-m", "loadlens", *options]


def cpu_s(pid: int) -> float:
    """CPU time of all threads of a process so far."""
    return time.clock_gettime((~pid << 3) | 2)  # CPUCLOCK_SCHED of a process: threads that ended count too


def shown(ratios: Sequence[float]) -> str:
    return " ".join(f"{ratio:.2f}" for ratio in sorted(ratios))


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
