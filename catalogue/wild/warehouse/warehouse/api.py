import time
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

from .conf import Conf
from .erp import stock_of

REQUESTS = Counter("warehouse_requests", "Requests by route and status", ["route", "status"])
SECONDS = Histogram("warehouse_request_seconds", "Time to answer", ["route"])


@asynccontextmanager
async def lifespan(app: FastAPI):
    anyio.to_thread.current_default_thread_limiter().total_tokens = Conf.endpoint_threads
    yield


app = FastAPI(lifespan=lifespan)


@app.middleware("http")
async def measure(request: Request, call_next):
    begin = time.perf_counter()
    response = await call_next(request)
    route = request.scope.get("route")
    label = route.path if route else "other"
    SECONDS.labels(label).observe(time.perf_counter() - begin)
    REQUESTS.labels(label, response.status_code).inc()
    return response


@app.get("/articles/{article}/stock")
def article_stock(article: str):
    stock = stock_of(article)
    free = sum(stock["bins"].values())
    return {"article": article, "free": free, "bins": stock["bins"], "orderable": free + stock["on_order"] > 0}


@app.get("/health")
async def health():
    return {"status": "up"}


@app.get("/metrics")
async def metrics():
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
