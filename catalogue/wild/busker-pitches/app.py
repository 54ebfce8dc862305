"""Pitches for street performers: which are free on a day, and what a permit costs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import urllib3
from fastapi import FastAPI, HTTPException, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

from logs import configure, stop

CITY = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
THREADS = 160

BASE_FEE = {"square": 18.0, "arcade": 12.5, "riverside": 9.0, "station": 22.0}
ACT_FACTOR = {"music": 1.0, "juggling": 0.9, "statue": 0.7, "fire": 1.6}

log = logging.getLogger("busker")
city = urllib3.PoolManager(maxsize=THREADS, retries=False)

LATENCY = Histogram(
    "http_request_duration_seconds", "Time to answer a request", ["method", "handler"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
REQUESTS = Counter("http_requests", "Requests answered", ["method", "handler", "status"])
CITY_LATENCY = Histogram(
    "city_request_duration_seconds", "Time of a call to the city's diary",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    configure()
    yield
    stop()


app = FastAPI(title="Busker pitches", lifespan=lifespan)


def events_near(pitch: str, day: int) -> list[dict]:
    """Ask the city's diary what else happens near the pitch."""
    with CITY_LATENCY.time():
        answer = city.request("GET", f"{CITY}/diary?place={pitch}&day={day}", timeout=10.0)
    if answer.status != 200:
        raise HTTPException(502, "the city's diary does not answer")
    return answer.json()["events"]


def fee(pitch: str, act: str, hours: int, events: list[dict]) -> float:
    crowd = 1.0 + sum(event["visitors"] for event in events) / 10_000
    rebate = 0.85 if hours >= 4 else 1.0
    return round(BASE_FEE[pitch] * ACT_FACTOR[act] * hours * crowd * rebate, 2)


@app.get("/pitches/{pitch}/permit")
def permit(pitch: str, act: str = "music", hours: int = 2, day: int = 1) -> dict:
    started = time.perf_counter()
    if pitch not in BASE_FEE or act not in ACT_FACTOR:
        REQUESTS.labels("GET", "/pitches/{pitch}/permit", "404").inc()
        raise HTTPException(404, "no such pitch or act")
    events = events_near(pitch, day)
    total = fee(pitch, act, hours, events)
    log.info("permit offered: pitch=%s act=%s hours=%d day=%d fee=%.2f", pitch, act, hours, day, total)
    LATENCY.labels("GET", "/pitches/{pitch}/permit").observe(time.perf_counter() - started)
    REQUESTS.labels("GET", "/pitches/{pitch}/permit", "200").inc()
    return {"pitch": pitch, "act": act, "hours": hours, "day": day, "fee": total, "events": len(events)}


@app.get("/pitches")
def pitches() -> dict:
    return {"pitches": sorted(BASE_FEE), "acts": sorted(ACT_FACTOR)}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
