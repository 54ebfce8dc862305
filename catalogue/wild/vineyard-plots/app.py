"""Soil moisture of vineyard plots, for the growers' irrigation planner."""

import os
import time

from aiohttp import ClientSession, TCPConnector, web
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest

VARIANT = os.environ["VARIANT"]
PORT = int(os.environ["PORT"])
SENSORS = f"http://127.0.0.1:{PORT + 2}"
KEEP_S = 30.0 if VARIANT == "mended" else 0.0
GRAPES = ("riesling", "merlot", "syrah", "grenache")

REQUESTS = Counter("http_requests", "Requests answered.", ["method", "route", "status"])
DURATION = Histogram("http_request_duration_seconds", "Time to answer a request.", ["route"])
IN_PROGRESS = Gauge("http_requests_in_progress", "Requests being answered.")
CALLS = Histogram("http_client_request_duration_seconds", "Time of a call to the sensor network.", ["host"])


class SensorNetwork:
    """Client of the sensor vendor's API."""

    def __init__(self, session):
        self._session = session
        self._readings = {}

    async def _fetch(self, plot):
        with CALLS.labels("sensors").time():
            async with self._session.get(f"{SENSORS}/v2/probes/{plot}") as answer:
                answer.raise_for_status()
                return await answer.json()

    async def reading(self, plot):
        known = self._readings.get(plot)
        if known and time.monotonic() - known[0] < KEEP_S:
            return known[1]
        reading = await self._fetch(plot)
        if KEEP_S:
            self._readings[plot] = (time.monotonic(), reading)
        return reading


def advice(reading, grape):
    wanted = 0.24 if grape in ("riesling", "merlot") else 0.19
    lack = max(0.0, wanted - reading["moisture"])
    return {"litres_per_vine": round(lack * 140, 1), "wanted": wanted, "urgent": lack > 0.08}


@web.middleware
async def measured(request, handler):
    resource = request.match_info.route.resource
    route = resource.canonical if resource else "unknown"
    began = time.perf_counter()
    status = 500
    with IN_PROGRESS.track_inprogress():
        try:
            answer = await handler(request)
            status = answer.status
            return answer
        except web.HTTPException as error:
            status = error.status
            raise
        finally:
            REQUESTS.labels(request.method, route, status).inc()
            DURATION.labels(route).observe(time.perf_counter() - began)


async def moisture(request):
    plot = request.match_info["plot"]
    if not plot[1:].isdigit():
        raise web.HTTPNotFound(text="no such plot")
    grape = GRAPES[int(plot[1:]) % len(GRAPES)]
    reading = await request.app["sensors"].reading(plot)
    return web.json_response({"plot": plot, "grape": grape, "reading": reading, "advice": advice(reading, grape)})


async def metrics(_):
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def clients(app):
    async with ClientSession(connector=TCPConnector(limit=0)) as session:
        app["sensors"] = SensorNetwork(session)
        yield


app = web.Application(middlewares=[measured])
app.cleanup_ctx.append(clients)
app.router.add_get("/plots/{plot}/moisture", moisture)
app.router.add_get("/metrics", metrics)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=PORT + 1, access_log=None, print=None, backlog=512)
