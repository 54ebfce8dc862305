"""Adaptive limit of concurrency: additive increase, multiplicative decrease."""

import json
import logging
import time
from typing import Any

from prometheus_client import Counter, Gauge

log = logging.getLogger("offers.limiter")

LIMIT = Gauge("concurrency_limit", "Requests that may be in flight")
IN_FLIGHT = Gauge("concurrency_in_flight", "Requests in flight")
REFUSED = Counter("http_requests_refused_total", "Requests answered with 503")

BODY = json.dumps({"error": "overloaded", "message": "try again later"}).encode()
FREE = frozenset({"/healthz", "/metrics"})


class AimdLimit:
    def __init__(self, initial: int, lowest: int, highest: int, target_s: float) -> None:
        self.limit = float(initial)
        self.lowest = lowest
        self.highest = highest
        self.target_s = target_s
        self.in_flight = 0
        LIMIT.set(self.limit)

    def acquire(self) -> bool:
        if self.in_flight >= int(self.limit):
            return False
        self.in_flight += 1
        IN_FLIGHT.set(self.in_flight)
        return True

    def release(self, took_s: float) -> None:
        was = int(self.limit)
        if took_s > self.target_s:
            self.limit = max(self.lowest, self.limit * 0.95)
        elif self.in_flight * 2 >= self.limit:
            self.limit = min(self.highest, self.limit + 1 / self.limit)
        self.in_flight -= 1
        IN_FLIGHT.set(self.in_flight)
        LIMIT.set(self.limit)
        if int(self.limit) != was:
            log.debug("limit %d -> %d", was, int(self.limit))


class LimitMiddleware:
    """Answers 503 to what the limit does not admit."""

    def __init__(self, app: Any, limit: AimdLimit) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] in FREE:
            await self.app(scope, receive, send)
            return
        if not self.limit.acquire():
            REFUSED.inc()
            await refuse(send)
            return
        begun = time.perf_counter()
        try:
            await self.app(scope, receive, send)
        finally:
            self.limit.release(time.perf_counter() - begun)


async def refuse(send: Any) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(BODY)).encode()),
        (b"retry-after", b"1"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})
