"""Loan offers for brokers."""

import logging
import time
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

from .bureau import Bureau
from .limiter import AimdLimit, LimitMiddleware
from .ranking import rank
from .settings import settings

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
log = logging.getLogger("offers")

OFFERS = Counter("offers_made_total", "Offers made", ["grade"])
BUREAU_SECONDS = Histogram("bureau_request_duration_seconds", "Time the bureau takes")

app = FastAPI(title="Loan offers")
bureau = Bureau(*settings.bureau_ms)
limit = AimdLimit(settings.initial_limit, settings.min_limit, settings.max_limit, settings.latency_target_ms / 1000)
app.add_middleware(LimitMiddleware, limit=limit)
log.info("target %d ms, limit %d to %d", settings.latency_target_ms, settings.min_limit, settings.max_limit)


@app.get("/healthz")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/metrics")
async def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


@app.get("/banks/count")
async def banks() -> dict[str, int]:
    return {"banks": 30}


@app.get("/offers")
async def offers(
    request: Request,
    amount: Annotated[int, Query(ge=500, le=100_000)],
    months: Annotated[int, Query(ge=6, le=120)],
) -> dict[str, Any]:
    begun = time.perf_counter()
    score = await bureau.score(amount)
    BUREAU_SECONDS.observe(time.perf_counter() - begun)
    ranked = rank(amount, months, score.grade)
    OFFERS.labels(score.grade).inc(len(ranked))
    return {"amount": amount, "months": months, "grade": score.grade, "offers": ranked}
