"""What the web shop talks to."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

import aiohttp
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from . import config

log = logging.getLogger("front")
CONFIG = config.load()
SESSION = web.AppKey("session", aiohttp.ClientSession)
REQUESTS = Counter("http_requests_total", "Requests by path and status.", ["method", "path", "status"])
TOOK = Histogram("http_request_duration_seconds", "Time from request to answer.", ["method", "path"])
IN_WORK = Gauge("http_requests_in_progress", "Requests in work.")
UPSTREAM = Counter("fares_upstream_timeouts_total", "Fares that did not come in time.")


@web.middleware
async def measure(request: web.Request, handler):
    if request.path == "/metrics":
        return await handler(request)
    start = time.perf_counter()
    with IN_WORK.track_inprogress():
        answer = await handler(request)
    TOOK.labels(request.method, request.path).observe(time.perf_counter() - start)
    REQUESTS.labels(request.method, request.path, answer.status).inc()
    return answer


async def fare(request: web.Request) -> web.Response:
    try:
        pallets = int(request.query.get("pallets", "1"))
        leg = {"from": request.query["from"], "to": request.query["to"], "pallets": str(pallets)}
    except (KeyError, ValueError):
        return web.json_response({"error": "from, to and pallets are needed"}, status=400)
    try:
        async with request.app[SESSION].get(f"{CONFIG.service_url}/quote", params=leg) as answer:
            quote = await answer.json()
    except asyncio.TimeoutError:
        UPSTREAM.inc()
        return web.json_response({"error": "no fare in time"}, status=504)
    except aiohttp.ClientError as error:
        log.warning("fares service: %r", error)
        return web.json_response({"error": "no fare"}, status=502)
    quote["vat"] = round(quote["net"] * 0.21, 2)
    quote["gross"] = round(quote["net"] + quote["vat"], 2)
    return web.json_response(quote)


async def metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def healthz(_: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def client(app: web.Application):
    connector = aiohttp.TCPConnector(limit=400)
    timeout = aiohttp.ClientTimeout(total=CONFIG.front_timeout_s)
    app[SESSION] = aiohttp.ClientSession(connector=connector, timeout=timeout)
    yield
    await app[SESSION].close()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app = web.Application(middlewares=[measure])
    app.cleanup_ctx.append(client)
    app.add_routes([web.get("/fare", fare), web.get("/metrics", metrics), web.get("/healthz", healthz)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, backlog=512)


if __name__ == "__main__":
    main()
