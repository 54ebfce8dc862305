"""Slips of the county lottery: six numbers, a running number per draw and the seal of the authority."""

import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncpg
from authority import Authority
from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

PORT = int(os.environ["PORT"])
VARIANT = os.environ.get("VARIANT", "flawed")

LATENCY = Histogram(
    "http_request_duration_seconds",
    "Time to answer",
    ["method", "handler", "status"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
SEAL_TIME = Histogram("authority_seal_seconds", "Time for a seal", buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1))
SOLD = Counter("slips_sold", "Slips sold", ["draw"])
POOL_SIZE = Gauge("db_pool_connections", "Connections of the pool", ["state"])

SCHEMA = """
CREATE TABLE draws (name text PRIMARY KEY, closes timestamptz NOT NULL, sold bigint NOT NULL DEFAULT 0)
    WITH (fillfactor = 20);
CREATE TABLE slips (draw text NOT NULL, number bigint NOT NULL, picks int[] NOT NULL, seal text NOT NULL,
    PRIMARY KEY (draw, number));
INSERT INTO draws VALUES ('saturday', now() + interval '3 days'), ('wednesday', now() + interval '6 days');
"""
NEXT_NUMBER = "UPDATE draws SET sold = sold + 1 WHERE name = $1 AND closes > now() RETURNING sold"
ADD_SLIP = "INSERT INTO slips (draw, number, picks, seal) VALUES ($1, $2, $3, $4)"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.authority = Authority("127.0.0.1", PORT + 1)
    async with asyncpg.create_pool(
        host="127.0.0.1", port=PORT + 2, user="slips", database="postgres", min_size=130, max_size=130
    ) as pool:
        await pool.execute(SCHEMA)
        app.state.pool = pool
        POOL_SIZE.labels("idle").set_function(pool.get_idle_size)
        POOL_SIZE.labels("used").set_function(lambda: pool.get_size() - pool.get_idle_size())
        yield


app = FastAPI(title="lottery-slips", lifespan=lifespan)


@app.middleware("http")
async def timed(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    begun = time.perf_counter()
    response = await call_next(request)
    route = request.scope.get("route")
    handler = route.path if route else "none"
    LATENCY.labels(request.method, handler, response.status_code).observe(time.perf_counter() - begun)
    return response


async def number_for(connection: asyncpg.Connection, draw: str) -> int:
    number = await connection.fetchval(NEXT_NUMBER, draw)
    if number is None:
        raise HTTPException(404, "no open draw of that name")
    return int(number)


async def seal(draw: str, number: int, picks: list[int]) -> str:
    with SEAL_TIME.time():
        return str(await app.state.authority.seal(f"{draw}/{number}/{picks}"))


async def sell(draw: str, picks: list[int]) -> tuple[int, str]:
    async with app.state.pool.acquire() as connection, connection.transaction():
        number = await number_for(connection, draw)
        sealed = await seal(draw, number, picks)
        await connection.execute(ADD_SLIP, draw, number, picks, sealed)
    return number, sealed


async def sell_in_steps(draw: str, picks: list[int]) -> tuple[int, str]:
    number = await number_for(app.state.pool, draw)
    sealed = await seal(draw, number, picks)
    await app.state.pool.execute(ADD_SLIP, draw, number, picks, sealed)
    return number, sealed


@app.get("/draws/{draw}/quickpick")
async def quickpick(draw: str) -> dict[str, object]:
    picks = sorted(random.sample(range(1, 46), 6))
    number, sealed = await (sell if VARIANT == "flawed" else sell_in_steps)(draw, picks)
    SOLD.labels(draw).inc()
    return {"draw": draw, "number": number, "picks": picks, "seal": sealed}


@app.get("/draws")
async def draws() -> list[dict[str, object]]:
    return [dict(row) for row in await app.state.pool.fetch("SELECT name, closes, sold FROM draws ORDER BY closes")]


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
