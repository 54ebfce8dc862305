"""Dockets of a court of arbitration: gives a new case its number and its chair."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import asyncpg
from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

VARIANT = os.environ["VARIANT"]
ROSTER = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}/chair"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

SCHEMA = """
CREATE TABLE IF NOT EXISTS divisions (code text PRIMARY KEY, last_number bigint NOT NULL);
CREATE TABLE IF NOT EXISTS dockets (
    id bigserial PRIMARY KEY, division text NOT NULL, number bigint NOT NULL,
    chair text NOT NULL, value_eur integer NOT NULL, opened timestamptz NOT NULL DEFAULT now()
);
CREATE SEQUENCE IF NOT EXISTS docket_numbers START 5001;
INSERT INTO divisions VALUES ('construction', 5000), ('shipping', 5000), ('energy', 5000) ON CONFLICT DO NOTHING;
"""
BY_DIVISION = "UPDATE divisions SET last_number = last_number + 1 WHERE code = $1 RETURNING last_number"
BY_SEQUENCE = "SELECT nextval('docket_numbers') FROM divisions WHERE code = $1"
NEXT_NUMBER = BY_DIVISION if VARIANT == "flawed" else BY_SEQUENCE
OPEN = "INSERT INTO dockets (division, number, chair, value_eur) VALUES ($1, $2, $3, $4) RETURNING id"

LATENCY = Histogram("http_request_duration_seconds", "Time to answer a request", ["method", "handler"], buckets=BUCKETS)
REQUESTS = Counter("http_requests", "Requests answered", ["method", "handler", "status"])
QUERY = Histogram("db_query_duration_seconds", "Time of a statement", ["statement"], buckets=BUCKETS)
ROSTER_LATENCY = Histogram("roster_request_duration_seconds", "Time of a call to the roster", buckets=BUCKETS)
POOL_SIZE = Gauge("db_pool_connections", "Connections of the pool")
POOL_IDLE = Gauge("db_pool_idle_connections", "Connections of the pool that nobody uses")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.roster = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    app.state.pool = await asyncpg.create_pool(
        host=os.environ["TMPDIR"], user="postgres", database="postgres", min_size=20, max_size=140
    )
    await app.state.pool.execute(SCHEMA)
    POOL_SIZE.set_function(app.state.pool.get_size)
    POOL_IDLE.set_function(app.state.pool.get_idle_size)
    yield
    await app.state.roster.close()
    await app.state.pool.close()


app = FastAPI(title="Arbitration dockets", lifespan=lifespan)


async def chair(session: aiohttp.ClientSession, division: str, value: int) -> str:
    with ROSTER_LATENCY.time():
        async with session.get(ROSTER, params={"division": division, "value": value}) as answer:
            answer.raise_for_status()
            return (await answer.json())["chair"]


@app.get("/divisions/{division}/open")
async def open_docket(request: Request, division: str, value: int = 250_000) -> dict:
    started = time.perf_counter()
    state = request.app.state
    async with state.pool.acquire() as connection, connection.transaction():
        with QUERY.labels("next_number").time():
            number = await connection.fetchval(NEXT_NUMBER, division)
        if number is None:
            REQUESTS.labels("GET", "/divisions/{division}/open", "404").inc()
            raise HTTPException(404, "no such division")
        name = await chair(state.roster, division, value)
        with QUERY.labels("open_docket").time():
            docket = await connection.fetchval(OPEN, division, number, name, value)
    LATENCY.labels("GET", "/divisions/{division}/open").observe(time.perf_counter() - started)
    REQUESTS.labels("GET", "/divisions/{division}/open", "200").inc()
    return {"docket": docket, "reference": f"{division[:3].upper()}-{number}", "chair": name, "value_eur": value}


@app.get("/health")
async def health() -> dict:
    return {"ok": True}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
