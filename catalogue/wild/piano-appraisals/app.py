"""Appraisals of second-hand pianos for dealers: our own tables, and the auction house's index for the maker."""

import os
import time
from contextlib import asynccontextmanager

import aiohttp
from fastapi import FastAPI, HTTPException, Query, Request
from prometheus_client import Counter, Histogram, make_asgi_app
from pydantic import BaseModel

INDEX_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"

REQUESTS = Counter("http_requests_total", "Requests answered.", ["path", "status"])
LATENCY = Histogram("http_request_duration_seconds", "Time to answer a request.", ["path"])
INDEX_LATENCY = Histogram("auction_index_request_duration_seconds", "Time of a call to the auction index.")

NEW_PRICE = {"upright": 9_400, "studio": 12_800, "baby-grand": 31_000, "grand": 68_500}
CONDITION = {"mint": 1.0, "good": 0.82, "worn": 0.55, "restore": 0.24}


class Appraisal(BaseModel):
    maker: str
    body: str
    year: int
    condition: str
    index: float
    low: int
    high: int


@asynccontextmanager
async def lifespan(app: FastAPI):
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        INDEX_URL, connector=connector, timeout=aiohttp.ClientTimeout(total=20)
    ) as session:
        app.state.session = session
        yield


app = FastAPI(title="piano-appraisals", lifespan=lifespan)
app.mount("/metrics", make_asgi_app())


@app.middleware("http")
async def measure(request: Request, call_next):
    if request.url.path.startswith("/metrics"):
        return await call_next(request)
    start = time.perf_counter()
    response = await call_next(request)
    LATENCY.labels(request.url.path).observe(time.perf_counter() - start)
    REQUESTS.labels(request.url.path, response.status_code).inc()
    return response


async def auction_index(maker: str, year: int) -> float:
    with INDEX_LATENCY.time():
        async with app.state.session.get("/index", params={"maker": maker, "year": year}) as answer:
            if answer.status != 200:
                raise HTTPException(502, f"auction index answered {answer.status}")
            return (await answer.json())["index"]


@app.get("/bodies")
async def bodies() -> dict[str, int]:
    return NEW_PRICE


@app.get("/appraisal")
async def appraisal(
    maker: str,
    year: int = Query(ge=1880, le=2026),
    body: str = "upright",
    condition: str = "good",
) -> Appraisal:
    if body not in NEW_PRICE or condition not in CONDITION:
        raise HTTPException(422, "body or condition is unknown")
    index = await auction_index(maker, year)
    age = 2026 - year
    value = NEW_PRICE[body] * CONDITION[condition] * index * max(0.12, 0.985**age)
    return Appraisal(
        maker=maker,
        body=body,
        year=year,
        condition=condition,
        index=index,
        low=round(value * 0.9, -1),
        high=round(value * 1.1, -1),
    )
