"""Readings of the tanks in a wine cellar, for the cellar master's tablet."""

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor

from aiohttp import web

from gauge import VARIANT, ControllerError, Links

LINKS = 128 if VARIANT == "healthy" else 8
SENSORS = ("temperature", "level", "density")
LIMITS = {"temperature": (12.0, 18.0), "level": (5.0, 98.0), "density": (0.99, 1.1)}
TANKS = range(1, 61)

links_key = web.AppKey("links", Links)
workers_key = web.AppKey("workers", ThreadPoolExecutor)
routes = web.RouteTableDef()


def read(links: Links, tank: int, sensor: str) -> dict:
    with links.link() as link:
        return link.ask(tank, sensor)


@routes.get("/health")
async def health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


@routes.get("/tanks")
async def tanks(request: web.Request) -> web.Response:
    return web.json_response({"tanks": list(TANKS), "sensors": SENSORS})


@routes.get("/tanks/{tank:\\d+}/{sensor}")
async def show(request: web.Request) -> web.Response:
    tank, sensor = int(request.match_info["tank"]), request.match_info["sensor"]
    if tank not in TANKS or sensor not in SENSORS:
        raise web.HTTPNotFound(text="no such tank or sensor")
    loop = asyncio.get_running_loop()
    try:
        value = await loop.run_in_executor(
            request.app[workers_key], read, request.app[links_key], tank, sensor
        )
    except (OSError, ControllerError) as error:
        raise web.HTTPBadGateway(text=f"controller: {error}") from error
    low, high = LIMITS[sensor]
    return web.json_response(value | {"alarm": not low <= value["value"] <= high})


async def lifecycle(app: web.Application):
    app[links_key] = Links("127.0.0.1", int(os.environ["PORT"]) + 1, LINKS)
    app[workers_key] = ThreadPoolExecutor(max_workers=LINKS, thread_name_prefix="controller")
    yield
    app[workers_key].shutdown(wait=False, cancel_futures=True)


def make_app() -> web.Application:
    app = web.Application()
    app.add_routes(routes)
    app.cleanup_ctx.append(lifecycle)
    return app


if __name__ == "__main__":
    web.run_app(make_app(), host="127.0.0.1", port=int(os.environ["PORT"]), access_log=None, print=None, backlog=512)
