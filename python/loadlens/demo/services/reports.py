"""Monthly reports from a warehouse, rendered in a pool of threads."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import Gauge

from loadlens.demo.services.web import serve_async

THREADS = 4
WAREHOUSE_S = 0.020

# The names are those of Micrometer for an executor.
ACTIVE = Gauge("executor_active_threads", "Threads that work on a task.")
QUEUED = Gauge("executor_queued_tasks", "Tasks without a thread.")
MOST = Gauge("executor_pool_max_threads", "Most threads of the pool.")
MOST.set(THREADS)

executor = ThreadPoolExecutor(THREADS)


def in_thread(handler: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    def work() -> str:
        QUEUED.dec()
        with ACTIVE.track_inprogress():
            return handler()

    async def run() -> str:
        QUEUED.inc()
        return await asyncio.get_running_loop().run_in_executor(executor, work)

    return run


def report() -> str:
    time.sleep(WAREHOUSE_S)  # stands for a query of the warehouse
    return json.dumps({"month": "2026-10", "orders": 1834, "cents": 22_731_400})


def healthz() -> str:
    return "ok\n"


PAGES = {"/report": in_thread(report), "/healthz": in_thread(healthz)}

if __name__ == "__main__":
    serve_async(PAGES)
