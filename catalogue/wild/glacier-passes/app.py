"""Glacier passes: day passes for mountain guides, with the avalanche danger of the zone from the regional service."""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from fastapi import FastAPI, HTTPException, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from starlette_exporter import PrometheusMiddleware

BULLETINS_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
VARIANT = os.environ["VARIANT"]
BULLETIN_TTL_S = 120.0
MAX_PARTY = 12
FEES_CENTS = {1: 900, 2: 900, 3: 1400, 4: 2600}

OUTBOUND = Histogram(
    "http_client_request_duration_seconds",
    "Time of calls to other services.",
    ["service", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2),
)
OUTBOUND_ACTIVE = Gauge("http_client_active_requests", "Calls to other services that wait for an answer.", ["service"])
PASSES = Counter("glacier_passes", "Passes granted or refused.", ["outcome"])


@dataclass(frozen=True)
class Bulletin:
    zone: int
    danger: int
    issued: str


class Bulletins:
    """Client of the regional avalanche service."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._kept: dict[int, tuple[float, asyncio.Task[Bulletin]]] = {}

    async def _fetch(self, zone: int) -> Bulletin:
        began = time.perf_counter()
        status = "error"
        with OUTBOUND_ACTIVE.labels("bulletins").track_inprogress():
            try:
                async with self._session.get(f"{BULLETINS_URL}/zones/{zone}/bulletin") as response:
                    status = str(response.status)
                    response.raise_for_status()
                    found = await response.json()
            finally:
                OUTBOUND.labels("bulletins", status).observe(time.perf_counter() - began)
        return Bulletin(zone, found["danger"], found["issued"])

    async def latest(self, zone: int) -> Bulletin:
        return await self._fetch(zone)

    async def recent(self, zone: int) -> Bulletin:
        """Return the bulletin of a zone, at most two minutes old."""
        now = time.monotonic()
        until, task = self._kept.get(zone, (0.0, None))
        if task is None or now > until or (task.done() and task.exception() is not None):
            task = asyncio.create_task(self._fetch(zone))
            self._kept[zone] = (now + BULLETIN_TTL_S, task)
        return await asyncio.shield(task)


@asynccontextmanager
async def lifespan(app: FastAPI):
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256), timeout=timeout) as session:
        app.state.bulletins = Bulletins(session)
        yield


app = FastAPI(title="Glacier passes", lifespan=lifespan)
app.add_middleware(PrometheusMiddleware, app_name="glacier_passes", group_paths=True, skip_paths=["/metrics"])


async def danger_of(zone: int) -> Bulletin:
    bulletins: Bulletins = app.state.bulletins
    if VARIANT == "mended":
        return await bulletins.recent(zone)
    return await bulletins.latest(zone)


@app.get("/passes")
async def day_pass(zone: int = Query(ge=1, le=40), party: int = Query(default=4, ge=1, le=MAX_PARTY)):
    try:
        bulletin = await danger_of(zone)
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        raise HTTPException(502, "avalanche bulletin is not available") from error
    if bulletin.danger not in FEES_CENTS:
        PASSES.labels("refused").inc()
        return {"granted": False, "danger": bulletin.danger, "issued": bulletin.issued}
    PASSES.labels("granted").inc()
    guides = -(-party // (3 if bulletin.danger >= 3 else 6))
    return {
        "granted": True,
        "danger": bulletin.danger,
        "issued": bulletin.issued,
        "guides": guides,
        "cents": party * FEES_CENTS[bulletin.danger] + guides * 500,
    }


@app.get("/zones")
async def zones():
    return {"zones": list(range(1, 41))}


@app.get("/metrics")
async def metrics():
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
