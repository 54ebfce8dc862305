"""Plans floor mosaics: lays tiles of the shop's palette over a motif, and counts what to order."""

import asyncio
import math
import os
import random
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

import aiohttp
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, Histogram, generate_latest

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(os.environ.get("PORT", "8080"))
WAREHOUSE = f"http://127.0.0.1:{PORT + 1}"
SIDE = 8 if VARIANT == "healthy" else 30

PALETTE = [
    ("ochre", (204, 119, 34)), ("umber", (99, 81, 71)), ("slate", (112, 128, 144)), ("ivory", (255, 255, 240)),
    ("cobalt", (0, 71, 171)), ("moss", (138, 154, 91)), ("carmine", (150, 0, 24)), ("onyx", (53, 56, 57)),
]

http_seconds = Histogram(
    "http_request_duration_seconds", "Time of a request", ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
plan_seconds = Histogram("plan_duration_seconds", "Time from the order of a plan until it is there")
plans_in_progress = Gauge("plans_in_progress", "Plans that are ordered and not there yet")


def shade(motif: int, x: int, y: int) -> tuple[float, float, float]:
    angle = math.atan2(y - SIDE / 2, x - SIDE / 2)
    radius = math.hypot(x - SIDE / 2, y - SIDE / 2)
    wave = math.sin(angle * (3 + motif % 5) + radius / 3)
    return 128 + 120 * wave, 110 + 90 * math.cos(radius / 4), 96 + 80 * math.sin(angle + motif)


def nearest(colour: tuple[float, float, float]) -> int:
    best, best_distance = 0, math.inf
    for index, (_, tile) in enumerate(PALETTE):
        distance = sum((a - b) ** 2 for a, b in zip(colour, tile))
        if distance < best_distance:
            best, best_distance = index, distance
    return best


def plan(motif: int) -> dict:
    """Return the rows of tiles and how many of each colour there are; a little noise keeps joints from lining up."""
    noise = random.Random(motif)
    counts = dict.fromkeys((name for name, _ in PALETTE), 0)
    rows = []
    for y in range(SIDE):
        row = []
        for x in range(SIDE):
            red, green, blue = shade(motif, x, y)
            tile = nearest((red + noise.uniform(-9, 9), green, blue))
            counts[PALETTE[tile][0]] += 1
            row.append(tile)
        rows.append("".join(map(str, row)))
    return {"motif": motif, "side": SIDE, "rows": rows, "tiles": counts}


def make_pool() -> Executor:
    if VARIANT == "mended":
        return ProcessPoolExecutor(max_workers=os.cpu_count())
    return ThreadPoolExecutor(max_workers=32, thread_name_prefix="plan")


async def on_stock(http: aiohttp.ClientSession) -> dict:
    async with http.get("/stock") as answer:
        answer.raise_for_status()
        return await answer.json()


async def show_plan(request: web.Request) -> web.Response:
    motif = int(request.match_info["motif"])
    stock = await on_stock(request.app[HTTP])
    with plan_seconds.time(), plans_in_progress.track_inprogress():
        found = await asyncio.get_running_loop().run_in_executor(request.app[POOL], plan, motif)
    short = sorted(name for name, needed in found["tiles"].items() if needed > stock.get(name, 0))
    return web.json_response(found | {"to_order": short})


async def healthz(_request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def metrics(_request: web.Request) -> web.Response:
    return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@web.middleware
async def measure(request: web.Request, handler):
    started = time.perf_counter()
    status = 500
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        resource = request.match_info.route.resource
        if resource is not None and resource.canonical.startswith("/plans"):
            http_seconds.labels(request.method, resource.canonical, status).observe(time.perf_counter() - started)


HTTP = web.AppKey("http", aiohttp.ClientSession)
POOL = web.AppKey("pool", Executor)


async def resources(app: web.Application):
    app[POOL] = make_pool()
    async with aiohttp.ClientSession(WAREHOUSE, connector=aiohttp.TCPConnector(limit=0)) as http:
        app[HTTP] = http
        yield
    app[POOL].shutdown(wait=False, cancel_futures=True)


def main() -> None:
    app = web.Application(middlewares=[measure])
    app.cleanup_ctx.append(resources)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/metrics", metrics)
    app.router.add_get(r"/plans/{motif:\d+}", show_plan)
    web.run_app(app, host="127.0.0.1", port=PORT, print=None, access_log=None, backlog=1024)


if __name__ == "__main__":
    main()
