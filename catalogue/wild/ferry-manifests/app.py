"""Passenger manifests of ferry sailings, put together from the boarding desk's feed."""

import asyncio
import json
import os
import tempfile
import time

from aiohttp import ClientSession, TCPConnector, web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

DESK = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
PORTS = ("Holyhead", "Larne", "Cairnryan", "Rosslare", "Fishguard")

REQUESTS = Counter("http_requests", "Requests answered", ["method", "route", "status"])
LATENCY = Histogram("http_request_duration_seconds", "Time to answer", ["route"])
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being answered")
PASSENGERS = Counter("manifest_passengers", "Passengers written to manifests")


@web.middleware
async def observe(request, handler):
    route = request.match_info.route.resource
    name = route.canonical if route else "unknown"
    started = time.perf_counter()
    status = 500
    IN_PROGRESS.inc()
    try:
        response = await handler(request)
        status = response.status
        return response
    except web.HTTPException as error:
        status = error.status
        raise
    finally:
        IN_PROGRESS.dec()
        LATENCY.labels(name).observe(time.perf_counter() - started)
        REQUESTS.labels(request.method, name, status).inc()


async def boarded(session, sailing):
    async with session.get(f"{DESK}/sailings/{sailing}/boarded") as answer:
        answer.raise_for_status()
        return await answer.json()


def summarise(sailing, passengers):
    adults = sum(1 for person in passengers if person["age"] >= 16)
    return {
        "sailing": sailing,
        "from": PORTS[sailing % len(PORTS)],
        "to": PORTS[(sailing + 1) % len(PORTS)],
        "adults": adults,
        "children": len(passengers) - adults,
        "vehicles": sum(1 for person in passengers if person["vehicle"]),
    }


async def manifest(request):
    sailing = int(request.match_info["sailing"])
    with tempfile.TemporaryFile("w+", prefix="manifest-") as spool:
        passengers = await boarded(request.app["desk"], sailing)
        for person in passengers:
            spool.write(f"{person['ticket']};{person['age']};{person['vehicle'] or '-'}\n")
        spool.flush()
        size = spool.tell()
    PASSENGERS.inc(len(passengers))
    return web.json_response({**summarise(sailing, passengers), "bytes": size})


async def sailings(request):
    return web.json_response([{"sailing": n, "from": PORTS[n % len(PORTS)]} for n in range(100, 120)])


async def metrics(request):
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def health(request):
    return web.Response(text="ok")


async def desk_session(app):
    async with ClientSession(connector=TCPConnector(limit=0), json_serialize=json.dumps) as session:
        app["desk"] = session
        yield


def application():
    app = web.Application(middlewares=[observe])
    app.cleanup_ctx.append(desk_session)
    app.router.add_get("/sailings", sailings)
    app.router.add_get("/sailings/{sailing:\\d+}/manifest", manifest)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/health", health)
    return app


if __name__ == "__main__":
    web.run_app(
        application(),
        host="127.0.0.1",
        port=int(os.environ["PORT"]),
        backlog=512,
        access_log=None,
        loop=asyncio.new_event_loop(),
    )
