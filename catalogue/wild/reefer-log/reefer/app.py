"""HTTP front of the temperature log."""

from __future__ import annotations

import logging
import re
import sys
import time

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

from . import gateway, settings
from .documents import DocumentStore
from .journal import Journal, Memory

log = logging.getLogger("reefer")
SETTINGS = settings.load()
TRAILER = re.compile(r"[A-Z0-9-]{4,12}")
REQUESTS = Counter("http_requests_total", "Requests.", ["method", "handler", "status"])
TOOK = Histogram("http_request_duration_seconds", "Time from request to answer.", ["method", "handler"])
IN_WORK = Gauge("http_requests_in_progress", "Requests in work.")
SAVED = Histogram("store_save_duration_seconds", "Time to save one upload.")
READINGS = Counter("readings_saved_total", "Readings on storage.")
STORE = web.AppKey("store", object)


def make_store():
    if SETTINGS.store == "journal":
        return Journal(SETTINGS.folder)
    if SETTINGS.store == "memory":
        return Memory()
    return DocumentStore(SETTINGS.folder)


@web.middleware
async def measure(request: web.Request, handler):
    name = request.match_info.handler.__name__
    if name == "metrics":
        return await handler(request)
    start = time.perf_counter()
    with IN_WORK.track_inprogress():
        answer = await handler(request)
    TOOK.labels(request.method, name).observe(time.perf_counter() - start)
    REQUESTS.labels(request.method, name, answer.status).inc()
    return answer


async def record(request: web.Request) -> web.Response:
    trailer = request.query.get("trailer", "")
    probes = int(request.query.get("probes", "8"))
    if not TRAILER.fullmatch(trailer) or not 0 < probes <= 48:
        return web.json_response({"error": "bad trailer or probes"}, status=400)
    readings = await gateway.fetch(trailer, probes, SETTINGS.gateway_ms)
    with SAVED.time():
        saved = await request.app[STORE].save(readings)
    READINGS.inc(saved)
    found = gateway.alarms(readings)
    if found:
        log.info("trailer %s probes %s too warm", trailer, found)
    return web.json_response({"trailer": trailer, "saved": saved, "alarms": found})


async def latest(request: web.Request) -> web.Response:
    return web.json_response(await request.app[STORE].latest(request.match_info["trailer"]))


async def health(_: web.Request) -> web.Response:
    return web.json_response({"ok": True})


async def metrics(_: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def close(app: web.Application) -> None:
    app[STORE].close()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app = web.Application(middlewares=[measure])
    app[STORE] = make_store()
    app.on_cleanup.append(close)
    app.add_routes(
        [
            web.get("/uploads/record", record),
            web.get("/trailers/{trailer}/latest", latest),
            web.get("/health", health),
            web.get("/metrics", metrics),
        ]
    )
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, backlog=512)


if __name__ == "__main__":
    main()
