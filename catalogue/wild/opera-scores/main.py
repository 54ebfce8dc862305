"""Hire of orchestral scores: asks the publishers' house what a set of parts costs for given performances."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import aiohttp
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel

VARIANT = os.environ.get("VARIANT", "flawed")
HOUSE = f"http://127.0.0.1:{int(os.environ.get('PORT', '8080')) + 1}"

http_seconds = Histogram(
    "http_request_duration_seconds", "Time of a request", ["method", "handler", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
http_in_progress = Gauge("http_requests_inprogress", "Requests that are being answered")
house_seconds = Histogram(
    "house_request_duration_seconds", "Time of a call to the publishers' house", ["call"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
house_errors = Counter("house_errors_total", "Calls to the publishers' house that failed", ["call"])


class Offer(BaseModel):
    work: str
    performances: int
    parts: int
    hire: float
    currency: str = "EUR"


class House:
    """The publishers' house; its sessions end after a minute, and are opened anew when they have."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._session: str | None = None
        self._ends = 0.0
        self._opening = asyncio.Lock()

    async def _call(self, call: str, path: str, **params: str | int) -> dict:
        with house_seconds.labels(call).time():
            try:
                async with self._http.get(path, params=params) as answer:
                    answer.raise_for_status()
                    return await answer.json()
            except aiohttp.ClientError as error:
                house_errors.labels(call).inc()
                raise HTTPException(502, "the publishers' house is not available") from error

    async def _current(self) -> str:
        if self._session is None or time.monotonic() > self._ends:
            opened = await self._call("open", "/open")
            self._session = opened["session"]
            self._ends = time.monotonic() + opened["lasts_s"] - 5
        return self._session

    async def quote(self, work: str, performances: int) -> dict:
        """Return the price and the number of parts."""
        async with self._opening:
            asked = {"session": await self._current(), "work": work, "performances": performances}
            if VARIANT == "flawed":
                return await self._call("quote", "/quote", **asked)
        answer = await self._call("quote", "/quote", **asked)
        return answer


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with aiohttp.ClientSession(HOUSE, connector=aiohttp.TCPConnector(limit=0)) as http:
        app.state.house = House(http)
        yield


app = FastAPI(title="opera-scores", lifespan=lifespan)


@app.middleware("http")
async def measure(request: Request, call_next):
    if request.url.path in ("/metrics", "/healthz"):
        return await call_next(request)
    http_in_progress.inc()
    started = time.perf_counter()
    status = 500
    try:
        response = await call_next(request)
        status = response.status_code
        return response
    finally:
        http_in_progress.dec()
        route = request.scope.get("route")
        handler = route.path if route else "none"
        http_seconds.labels(request.method, handler, f"{status // 100}xx").observe(time.perf_counter() - started)


def the_house(request: Request) -> House:
    return request.app.state.house


@app.get("/scores/{work}/offer")
async def offer(
    work: str,
    house: Annotated[House, Depends(the_house)],
    performances: Annotated[int, Query(ge=1, le=60)] = 1,
) -> Offer:
    quote = await house.quote(work, performances)
    discount = 0.9 if performances >= 10 else 1.0
    return Offer(work=work, performances=performances, parts=quote["parts"], hire=round(quote["price"] * discount, 2))


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
