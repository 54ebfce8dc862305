"""Agents without an engine: what a fleet of many nodes costs the machine that directs.

    python -m benches.fleet_agents TCP://SCHEDULER NUMBER

runs so many Dask workers in this process until its standard input is closed. Each has its own connections;
Dask's chores are rare (`CHORES`) and its threads shared: on real nodes other processors do that work.
`SimulatedAgent` stands for `loadlens.fleet.agent.Agent`: it answers as an engine's process would, and ends as
that does where no beat comes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import dask
from distributed import Worker

from loadlens.fleet.child import EXIT_AFTER_S
from loadlens.fleet.growth import FOLLOWED, MOST_BYTES
from loadlens.fleet.messages import Do, Is
from loadlens.fleet.progress import BAD, COUNTS

AT_ONCE: Final = 20  # workers that start at a time
LOAD_S: Final = 10.0  # of every load
GROWTH: Final = 6200  # bytes per second of the live files of an engine with one stream, in its first minute
CHORES: Final = {  # of every worker, many times a second
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.tick.cycle": "10s",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.worker.profile.enabled": False,
}
BINS: Final = 40  # of a histogram of the last second
SECOND: Final = {
    "seconds": 1.0,
    "rps": 0.0,
    "p50_s": 0.001,
    "p99_s": 0.01,
    "histogram": [(1e-4 * 1.12**number, 10) for number in range(BINS)],
    **dict.fromkeys(BAD, 0),
}
SO_FAR: Final = {"rps": 0.0, "p50_s": 0.001, "p99_s": 0.01, **dict.fromkeys(BAD, 0)}
STREAM: Final = {"name": "load", **dict.fromkeys(COUNTS, 0), "last": SECOND, "so_far": SO_FAR}


class SimulatedAgent:
    """The calls of an `Agent` on a node, and the answers of the engine's process behind it."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s, self._called_s = lease_s, time.monotonic()
        self._heard_s: float | None = None  # None: there is no process
        self._at_s: float | None = None  # of the start
        self._reasons: list[str] = []
        self._is_ended = False
        self._grown = 0  # bytes of a live file that were sent

    def folder(self) -> str:
        """Return a folder that is never used."""
        return "/simulated"

    async def clock(self) -> tuple[int, int]:
        """Read the clock twice, as `Agent.clock`."""
        received_ns = time.monotonic_ns()
        self._use()
        return received_ns, time.monotonic_ns()

    def start_child(self) -> None:
        """Begin a life of the process."""
        self._use()
        self._heard_s = time.monotonic()

    async def beat(self, *messages: Mapping[str, Any]) -> dict[str, Any]:
        """Answer messages as the process would."""
        self._use()
        now_s = time.monotonic()
        if self._heard_s is None or now_s - self._heard_s > EXIT_AFTER_S:
            return {"said": [], "fault": "the engine's process heard no beat"}
        self._heard_s = now_s
        answers: list[dict[str, Any]] = []
        for message in messages:
            match message["do"]:
                case Do.PREPARE:
                    answers.append({"is": Is.PREPARED, "notes": []})
                case Do.START:
                    self._at_s = message["at_ns"] / 1e9
                    answers.append({"is": Is.ARMED})
                case Do.STOP:
                    self._reasons.append(message["why"])
                case Do.BEAT:
                    answers.append({"is": Is.ALIVE} if self._at_s is None else self._progress(now_s))
        if self._at_s is not None and not self._is_ended:
            self._is_ended = bool(self._reasons) or now_s > self._at_s + LOAD_S
            if self._is_ended:
                answers.append(self._progress(now_s) | {"is": Is.ENDED, "reasons": self._reasons})
        return {"said": [json.dumps(each) for each in answers], "fault": None}

    def _progress(self, now_s: float) -> dict[str, Any]:
        elapsed_s = max(now_s - (self._at_s or now_s), 0.0)
        generator = {"busy": 0.1, "lag_p99_s": 1e-4}
        shown = {"phase": "measure", "elapsed_s": elapsed_s, "total_s": LOAD_S, "t0_monotonic_ns": 1}
        size = min(int(elapsed_s * GROWTH) - self._grown, MOST_BYTES)
        grown = [{"name": FOLLOWED[0], "at": self._grown, "content": "0" * size}] if size > 0 else []
        self._grown += max(size, 0)
        progress = {**shown, "streams": [STREAM], "generator": generator}
        return {"is": Is.PROGRESS, "progress": progress, "grown": grown}

    def lacking(self, _: list[str]) -> list[str]:
        """Have every file."""
        self._use()
        return []

    def _use(self) -> None:
        if time.monotonic() - self._called_s > self._lease_s:
            raise RuntimeError(f"the agent was not called for {self._lease_s:g} s, and is gone")
        self._called_s = time.monotonic()

    def close(self) -> None:
        """End the process."""
        self._heard_s = None


async def serve(address: str, count: int) -> None:
    """Run workers until standard input is closed."""
    with tempfile.TemporaryDirectory() as folder, dask.config.set(CHORES), ThreadPoolExecutor(4) as threads:
        executors = {"default": threads, "actor": threads}
        workers = [
            Worker(
                address,
                nthreads=1,
                name=f"node{number:04}",
                local_directory=folder,
                memory_limit=0,
                executor=executors,
            )
            for number in range(count)
        ]
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*workers[first : first + AT_ONCE])
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*(worker.close() for worker in workers[first : first + AT_ONCE]))


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
