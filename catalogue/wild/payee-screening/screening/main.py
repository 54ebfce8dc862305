"""Screening of payees: is the name close to one of the watch list?"""

import multiprocessing
import os
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from prometheus_client import Counter, Histogram
from starlette_exporter import PrometheusMiddleware, handle_metrics

from .bank import owner_of
from .matching import Hit, closest
from .watchlist import WATCH_LIST

VARIANT = os.environ.get("VARIANT", "flawed")
SCREENINGS = Counter("screening_results", "Screenings by result", ["result"])
MATCHING = Histogram(
    "screening_matching_seconds", "Comparison with the watch list",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = 100
    if VARIANT != "mended":
        app.state.processes = None
        yield
        return
    context = multiprocessing.get_context("spawn")  # forking beside threads is asking for trouble
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as processes:
        list(processes.map(closest, ["warm up"] * 4, [WATCH_LIST[:1]] * 4))
        app.state.processes = processes
        yield


app = FastAPI(title="Payee screening", lifespan=lifespan)
app.add_middleware(PrometheusMiddleware, app_name="payee_screening", group_paths=True, skip_paths=["/metrics"])
app.add_route("/metrics", handle_metrics)


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


def matches(name: str) -> list[Hit]:
    with MATCHING.time():
        if app.state.processes is not None:
            return app.state.processes.submit(closest, name, WATCH_LIST).result()
        hits = closest(name, WATCH_LIST)
        return hits


@app.get("/payees/{name}/screening")
def screening(name: str, account: str) -> dict[str, object]:
    owner = owner_of(account)
    hits = matches(name)
    result = "hit" if hits and hits[0].distance <= 1 else "clear"
    SCREENINGS.labels(result).inc()
    return {
        "name": name,
        "owner": owner,
        "result": result,
        "closest": [{"name": hit.name, "distance": hit.distance} for hit in hits],
    }
