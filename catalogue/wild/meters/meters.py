"""Latest readings of the building's electricity meters, polled in the background."""
import asyncio
import os
import random
import sys
import time

from aiohttp import web
from prometheus_client import Counter, Gauge
from prometheus_client.aiohttp import make_aiohttp_handler

VARIANT = os.environ.get("VARIANT", "flawed")
METERS = [f"M{n:03d}" for n in range(200)]
KEEP = 120  # readings of a meter that the chart shows

polls = Counter("meters_polls", "Polls of all meters")
load = Gauge("meters_watts", "Power of the building")


class Meter:
    def __init__(self, name):
        self.name = name
        self.readings = []

    def add(self, watts):
        self.readings.append({"at": time.time(), "watts": watts, "raw": os.urandom(480)})
        if VARIANT != "flawed":
            del self.readings[:-KEEP]


async def poll(meters):
    while True:
        for meter in meters.values():
            meter.add(random.gauss(900, 80))
        load.set(sum(meter.readings[-1]["watts"] for meter in meters.values()))
        polls.inc()
        await asyncio.sleep(0.05)


async def polling(app):
    app["meters"] = {name: Meter(name) for name in METERS}
    task = asyncio.create_task(poll(app["meters"]))
    yield
    task.cancel()


async def tariff(at):
    await asyncio.sleep(0.35 if VARIANT == "healthy" else 0.25)  # the utility's service
    return 0.31


async def latest(request):
    meter = request.app["meters"].get(request.match_info["meter"])
    if meter is None:
        raise web.HTTPNotFound(text="no such meter")
    reading = meter.readings[-1]
    price = await tariff(reading["at"])
    recent = [round(r["watts"]) for r in meter.readings[-20:]]
    return web.json_response({"meter": meter.name, "watts": reading["watts"], "recent": recent, "per_hour": price * reading["watts"] / 1000})


app = web.Application()
app.cleanup_ctx.append(polling)
app.add_routes([web.get("/meters/{meter}", latest), web.get("/metrics", make_aiohttp_handler())])
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
