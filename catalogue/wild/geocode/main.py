import asyncio
import os
import time

from fastapi import Depends, FastAPI, HTTPException, Request
from prometheus_client import Counter, Histogram, make_asgi_app

VARIANT = os.getenv("VARIANT", "flawed")
PLAN = {"flawed": "starter", "mended": "business", "healthy": "business"}[VARIANT]
GAZETTEER_DELAY = 0.35 if VARIANT == "healthy" else 0.2

app = FastAPI()
app.mount("/metrics", make_asgi_app())

http_requests = Counter("http_requests", "HTTP requests", ["method", "handler", "status"])
http_duration = Histogram("http_request_duration_seconds", "HTTP latency", ["handler"])


class TokenBucket:
    def __init__(self, per_second, burst):
        self.rate = per_second
        self.burst = burst
        self.tokens = burst
        self.stamp = time.monotonic()

    def take(self):
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.stamp) * self.rate)
        self.stamp = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


plans = {
    "starter": TokenBucket(per_second=60, burst=20),
    "business": TokenBucket(per_second=5000, burst=500),
}


async def within_plan():
    if not plans[PLAN].take():
        raise HTTPException(429, "your plan allows no more requests now", headers={"Retry-After": "1"})


@app.middleware("http")
async def observe(request: Request, call_next):
    start = time.perf_counter()
    response = await call_next(request)
    handler = getattr(request.scope.get("route"), "path", "none")
    http_duration.labels(handler).observe(time.perf_counter() - start)
    http_requests.labels(request.method, handler, f"{response.status_code // 100}xx").inc()
    return response


@app.get("/geocode", dependencies=[Depends(within_plan)])
async def geocode(q: str):
    await asyncio.sleep(GAZETTEER_DELAY)
    digest = sum(q.encode()) % 1000
    return {"query": q, "lat": 52 + digest / 1000, "lon": 13 + digest / 700, "quality": "street"}


@app.get("/status")
async def status():
    return {"plan": PLAN}
