"""Arrival times of snow ploughs for private callouts."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel

from routing import SessionRouting, StreamRouting

ROUTING_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
Routing = SessionRouting if os.environ["VARIANT"] == "flawed" else StreamRouting

REQUESTS = Counter("http_requests_total", "Requests", ["method", "handler", "status"])
DURATION = Histogram("http_request_duration_seconds", "Time of requests", ["method", "handler"])
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests under way")

DEPOTS = {
    "north": (61.142, 10.431),
    "lakeside": (61.098, 10.502),
    "sawmill": (61.180, 10.377),
}


class Callout(BaseModel):
    number: int
    customer: str
    depot: str
    lat: float
    lon: float
    driveway_m: int


CALLOUTS = {
    number: Callout(
        number=number,
        customer=f"C-{number * 7 % 900:03d}",
        depot=list(DEPOTS)[number % 3],
        lat=61.08 + number % 17 * 0.007,
        lon=10.35 + number % 13 * 0.011,
        driveway_m=20 + number % 60,
    )
    for number in range(1000, 1200)
}


class Eta(BaseModel):
    callout: int
    depot: str
    travel_s: int
    clearing_s: int
    total_s: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.routing = Routing(ROUTING_URL)
    yield
    await app.state.routing.close()


app = FastAPI(title="snow callouts", lifespan=lifespan)


@app.middleware("http")
async def measure(request: Request, call_next):
    if request.url.path in ("/metrics", "/healthz"):
        return await call_next(request)
    started = time.perf_counter()
    with IN_PROGRESS.track_inprogress():
        response = await call_next(request)
    route = request.scope.get("route")
    handler = route.path if route else "none"
    DURATION.labels(request.method, handler).observe(time.perf_counter() - started)
    REQUESTS.labels(request.method, handler, str(response.status_code)).inc()
    return response


@app.get("/callouts/{number}")
async def callout(number: int) -> Callout:
    if number not in CALLOUTS:
        raise HTTPException(404, "no such callout")
    return CALLOUTS[number]


@app.get("/callouts/{number}/eta")
async def eta(number: int, request: Request) -> Eta:
    job = await callout(number)
    leg = await request.app.state.routing.leg(DEPOTS[job.depot], (job.lat, job.lon))
    clearing_s = 120 + job.driveway_m * 9
    return Eta(
        callout=number,
        depot=job.depot,
        travel_s=leg.seconds,
        clearing_s=clearing_s,
        total_s=leg.seconds + clearing_s,
    )


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
