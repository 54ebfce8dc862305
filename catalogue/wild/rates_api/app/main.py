"""Exchange rates for customers with an API key."""
import asyncio
import random

from fastapi import Depends, FastAPI, HTTPException
from starlette_exporter import PrometheusMiddleware, handle_metrics

from . import config
from .auth import account

app = FastAPI(title="rates")
app.add_middleware(PrometheusMiddleware, app_name="rates", group_paths=True)
app.add_route("/metrics", handle_metrics)

BASE = {"EURUSD": 1.08, "EURGBP": 0.85, "EURCHF": 0.95, "EURJPY": 162.4}


async def bank_feed(pair: str) -> float:
    """The feed of the bank; it takes its time and takes any number of calls."""
    await asyncio.sleep(config.FEED_LATENCY)
    return round(BASE[pair] * random.uniform(0.999, 1.001), 5)


@app.get("/v1/rates/{pair}")
async def rate(pair: str, client: str = Depends(account)):
    if pair not in BASE:
        raise HTTPException(404, "no such pair")
    mid = await bank_feed(pair)
    return {"pair": pair, "bid": round(mid * 0.9995, 5), "ask": round(mid * 1.0005, 5), "client": client}


@app.get("/v1/pairs")
async def pairs(client: str = Depends(account)):
    return {"pairs": sorted(BASE)}


@app.get("/health")
async def health():
    return {"ok": True}
