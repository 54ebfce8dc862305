"""Rides to the dialysis ward: which van comes when, and what the fund pays for it."""

import asyncio
import itertools
import os
import time

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

VARIANT = os.environ.get("VARIANT", "mended")
PORT = int(os.environ["PORT"])
ROADS = f"http://127.0.0.1:{PORT + 1}"
ZONES = ("Ashby", "Brinkley", "Coldharbour", "Denholm", "Eastgate", "Fenwick")
KEPT_S = 4.0

REQUESTS = Counter("http_requests_total", "Requests by handler and status", ["handler", "status"])
LATENCY = Histogram("http_request_duration_seconds", "Time of a request", ["handler"])
IN_FLIGHT = Gauge("http_requests_in_progress", "Requests being answered")
ROADS_LATENCY = Histogram("http_client_request_duration_seconds", "Time of a call to another service", ["peer"])

http_key = web.AppKey("http", ClientSession)
rides = itertools.count(52_000)
kept: dict[str, tuple[float, asyncio.Future[float]]] = {}


@web.middleware
async def measure(request: web.Request, handler):
    name = request.path
    status = 500
    started = time.perf_counter()
    IN_FLIGHT.inc()
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        IN_FLIGHT.dec()
        REQUESTS.labels(name, status).inc()
        LATENCY.labels(name).observe(time.perf_counter() - started)


async def ask_roads(app: web.Application, zone: str) -> float:
    with ROADS_LATENCY.labels("roads").time():
        async with app[http_key].get(f"{ROADS}/minutes/{zone}") as answer:
            answer.raise_for_status()
            return float((await answer.json())["minutes"])


async def minutes_to(app: web.Application, zone: str) -> float:
    """Driving time from the zone to the ward, no older than a few seconds where that is enough."""
    if VARIANT != "mended":
        return await ask_roads(app, zone)
    now = time.monotonic()
    at, answer = kept.get(zone, (0.0, None))
    if answer is None or now - at > KEPT_S:
        answer = asyncio.ensure_future(ask_roads(app, zone))
        kept[zone] = (now, answer)
    try:
        return await asyncio.shield(answer)
    except Exception:
        kept.pop(zone, None)
        raise


async def next_ride(request: web.Request) -> web.Response:
    number = next(rides)
    zone = ZONES[number % len(ZONES)]
    minutes = await minutes_to(request.app, zone)
    chair = 14 + number % 6
    pickup = chair * 60 - minutes - 12
    fare = round(8.5 + minutes * 0.95, 2)
    return web.json_response(
        {
            "ride": number,
            "zone": zone,
            "pickup": f"{int(pickup // 60):02}:{int(pickup % 60):02}",
            "van": f"V{number % 23 + 1}",
            "fund_pays": fare,
        }
    )


async def metrics(request: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def up(request: web.Request) -> web.Response:
    return web.Response(text="up\n")


async def client(app: web.Application):
    connector = TCPConnector(limit=0)
    async with ClientSession(connector=connector, timeout=ClientTimeout(total=20)) as app[http_key]:
        yield


app = web.Application(middlewares=[measure])
app.cleanup_ctx.append(client)
app.add_routes([web.get("/rides/next", next_ride), web.get("/metrics", metrics), web.get("/up", up)])
web.run_app(app, host="127.0.0.1", port=PORT, access_log=None, print=None, backlog=1024)
