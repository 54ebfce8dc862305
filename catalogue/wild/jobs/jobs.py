"""Turns uploaded documents into text, on a farm of OCR machines."""
import asyncio
import itertools
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, generate_latest
from queueing import Full, WorkerPool

VARIANT = os.environ.get("VARIANT", "flawed")
if VARIANT == "flawed":
    WORKERS, ROOM = 4, 8
else:
    WORKERS, ROOM = 64, 500
VIRUS_SCAN = 0.35 if VARIANT == "healthy" else 0.2

DONE = Counter("jobs_done", "Documents read")
FAILED = Counter("jobs_dropped", "Documents refused")
DEPTH = Gauge("jobs_queue_depth", "Documents that wait")
numbers = itertools.count(1)


async def read(job):
    await asyncio.sleep(0.08)  # one machine of the farm
    return {"document": job["document"], "words": 200 + job["document"] % 77}


@asynccontextmanager
async def lifespan(app):
    app.state.farm = WorkerPool(read, WORKERS, ROOM)
    DEPTH.set_function(app.state.farm.queue.qsize)
    yield


app = FastAPI(lifespan=lifespan)


@app.get("/documents/next/text")
async def text():
    document = next(numbers)
    await asyncio.sleep(VIRUS_SCAN)
    result = await app.state.farm.submit({"document": document})
    DONE.inc()
    return result


@app.exception_handler(Full)
async def full(request, error):
    FAILED.inc()
    return JSONResponse({"error": "no capacity, try later"}, status_code=503)


@app.get("/metrics")
async def metrics():
    registry: CollectorRegistry = REGISTRY
    return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")


@app.get("/")
async def index():
    return "jobs"
