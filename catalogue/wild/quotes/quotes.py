"""Stock quotes, taken from the exchange's gateway."""
import asyncio
import os
import time
from collections import defaultdict
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI, HTTPException
from prometheus_client import Counter, Histogram, make_asgi_app

VARIANT = os.environ.get("VARIANT", "flawed")
GATEWAY = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
ATTEMPTS = 5
PORTFOLIO_SECONDS = 0.4 if VARIANT == "healthy" else 0.15

CALLS = Counter("gateway_calls", "Calls to the gateway", ["outcome"])
TIME = Histogram("quote_time_seconds", "Time of a quote")


@asynccontextmanager
async def lifespan(app):
    connector = aiohttp.TCPConnector(limit=200)
    async with aiohttp.ClientSession(GATEWAY, connector=connector) as app.state.http:
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/metrics", make_asgi_app())
last_known: dict[str, dict] = {}
locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)


async def ask(symbol):
    async with app.state.http.get(f"/last/{symbol}", raise_for_status=False) as answer:
        CALLS.labels("ok" if answer.ok else "busy").inc()
        answer.raise_for_status()
        return await answer.json() | {"at": time.time()}


async def stubborn(symbol):
    for attempt in range(ATTEMPTS):
        try:
            return await ask(symbol)
        except aiohttp.ClientResponseError:
            continue
    raise HTTPException(502, "gateway does not answer")


async def patient(symbol):
    """The last price if it is younger than a second; one caller at a time gets a new one."""
    known, lock = last_known.get(symbol), locks[symbol]
    if known and (time.time() - known["at"] < 1 or lock.locked()):
        return known
    async with lock:
        known = last_known.get(symbol)
        if not known or time.time() - known["at"] >= 1:
            try:
                last_known[symbol] = await ask(symbol)
            except aiohttp.ClientError:
                if not known:
                    raise HTTPException(503, "no price yet") from None
        return last_known[symbol]


quote_of = stubborn if VARIANT == "flawed" else patient


@app.get("/quotes/{symbol}")
async def quote(symbol: str):
    with TIME.time():
        await asyncio.sleep(PORTFOLIO_SECONDS)  # may this user see it? asks the portfolio service
        return {"symbol": symbol, **await quote_of(symbol)}


@app.get("/ready")
async def ready():
    return "yes"
