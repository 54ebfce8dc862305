"""Trip planner: asks the route engine; the route engine has a queue. Started twice: `trips.py web|engine`."""
import asyncio
import os
import sys
import time

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from prometheus_client import Histogram
from prometheus_client.aiohttp import make_aiohttp_handler

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ["PORT"])
ENGINE = f"http://127.0.0.1:{PORT + 1}"

PATIENCE = 0.6  # what the apps wait for, by contract
COMPUTE = 0.1
ENGINE_LANES = 6 if VARIANT == "flawed" else 80
STOPS = 0.5 if VARIANT == "healthy" else 0.25

DURATION = Histogram("trip_duration_seconds", "Time to plan", ["status"])


# web ------------------------------------------------------------------------------------------------------------


async def nearby_stops(place):
    await asyncio.sleep(STOPS)  # timetable service
    return [f"{place}-{n}" for n in range(3)]


async def plan(request):
    began = time.perf_counter()
    stops = await nearby_stops(request.query.get("from", "alexanderplatz"))
    status = 200
    try:
        async with request.app["http"].get(f"{ENGINE}/route", params={"to": stops[0]}) as answer:
            body = await answer.json()
    except asyncio.TimeoutError:
        body, status = {"error": "planning took too long"}, 504
    DURATION.labels(status).observe(time.perf_counter() - began)
    return web.json_response(body, status=status)


async def client(app):
    app["http"] = ClientSession(timeout=ClientTimeout(total=PATIENCE), connector=TCPConnector(limit=0))
    yield
    await app["http"].close()


def make_web():
    app = web.Application()
    app.cleanup_ctx.append(client)
    app.add_routes(
        [
            web.get("/trip", plan),
            web.get("/metrics", make_aiohttp_handler()),
            web.get("/ok", lambda request: web.json_response(True)),
        ]
    )
    return app


# engine ---------------------------------------------------------------------------------------------------------


async def compute(app, job):
    async with app["lanes"]:
        await asyncio.sleep(COMPUTE)
        if not job.done():
            job.set_result({"legs": ["U2", "S5", "walk"], "minutes": 31})


async def route(request):
    # a job is never taken back once it is in the queue
    job = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(compute(request.app, job))
    request.app["tasks"].add(task)
    task.add_done_callback(request.app["tasks"].discard)
    return web.json_response(await job)


def make_engine():
    app = web.Application()
    app["lanes"] = asyncio.Semaphore(ENGINE_LANES)
    app["tasks"] = set()
    app.add_routes([web.get("/route", route)])
    return app


if __name__ == "__main__":
    engine = sys.argv[1] == "engine"
    web.run_app(
        make_engine() if engine else make_web(),
        host="127.0.0.1",
        port=PORT + 1 if engine else PORT,
        access_log=None,
        print=None,
    )
