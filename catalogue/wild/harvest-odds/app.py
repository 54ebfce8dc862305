"""Harvest odds for growers: expected crates per plot for the coming season."""

import asyncio
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel

from model import VARIETIES, odds

VARIANT = os.environ.get("VARIANT", "flawed")
STATION = f"http://127.0.0.1:{int(os.environ.get('PORT', '8000')) + 1}"
SEASONS = 12 if VARIANT == "healthy" else 250

REQUESTS = Counter("http_requests_total", "Requests", ["method", "handler", "status"])
LATENCY = Histogram(
    "http_request_duration_seconds",
    "Duration of requests",
    ["method", "handler"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being served")


class Plot(BaseModel):
    id: int
    variety: str
    trees: int
    district: int


class Odds(BaseModel):
    plot: Plot
    seasons: int
    low: float
    median: float
    high: float


NAMES = sorted(VARIETIES)
PLOTS = {
    number: Plot(id=number, variety=NAMES[number % len(NAMES)], trees=200 + 13 * number, district=number % 17)
    for number in range(1, 121)
}
OUTLOOKS = {district: 0.05 + 0.01 * (district % 9) for district in range(17)}


def simulations():
    if VARIANT == "mended":
        return ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))
    return ThreadPoolExecutor(max_workers=32, thread_name_prefix="season")


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.pool = simulations()
    app.state.bureau = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    yield
    await app.state.bureau.close()
    app.state.pool.shutdown(cancel_futures=True)


app = FastAPI(title="Harvest odds", lifespan=lifespan)


@app.middleware("http")
async def measure(request: Request, call_next):
    if request.url.path == "/metrics":
        return await call_next(request)
    began = time.perf_counter()
    with IN_PROGRESS.track_inprogress():
        response = await call_next(request)
    route = request.scope.get("route")
    handler = route.path if route else "none"
    LATENCY.labels(request.method, handler).observe(time.perf_counter() - began)
    REQUESTS.labels(request.method, handler, response.status_code).inc()
    return response


def plot_of(number: int) -> Plot:
    if number not in PLOTS:
        raise HTTPException(status_code=404, detail="no such plot")
    return PLOTS[number]


async def chill_of(district: int) -> float:
    if VARIANT != "healthy":
        return OUTLOOKS[district]
    async with app.state.bureau.get(f"{STATION}/outlook/{district}") as answer:
        return (await answer.json())["chill"]


@app.get("/plots/{number}")
async def show(number: int) -> Plot:
    return plot_of(number)


@app.get("/plots/{number}/odds")
async def plot_odds(number: int) -> Odds:
    plot = plot_of(number)
    chill = await chill_of(plot.district)
    loop = asyncio.get_running_loop()
    result = await loop.run_in_executor(
        app.state.pool, odds, plot.variety, plot.trees, chill, SEASONS, plot.id
    )
    return Odds(plot=plot, **result)


@app.get("/metrics", include_in_schema=False)
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
