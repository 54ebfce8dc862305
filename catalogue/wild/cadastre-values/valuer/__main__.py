"""HTTP front of the value desk."""

from __future__ import annotations

import logging
import re
import sys
import time

from aiohttp import web

from . import settings as settings_module
from .session import RegistryError, Sessions
from .values import WEIGHTS, value_of

log = logging.getLogger("valuer")
PLOT = re.compile(r"\d{4}-\d{4}-\d{1,4}")
SESSIONS = web.AppKey("sessions", Sessions)
SETTINGS = web.AppKey("settings", settings_module.Settings)


async def ping(_: web.Request) -> web.Response:
    return web.json_response({"pong": True})


async def uses(_: web.Request) -> web.Response:
    return web.json_response(sorted(WEIGHTS))


async def value(request: web.Request) -> web.Response:
    plot, use = request.match_info["plot"], request.query.get("use", "residential")
    if not PLOT.fullmatch(plot):
        return web.json_response({"error": "no such plot number"}, status=400)
    start = time.perf_counter()
    try:
        answer = await value_of(request.app[SESSIONS], plot, use, request.app[SETTINGS].comparables)
    except (RegistryError, OSError) as error:
        log.warning("registry: %s", error)
        return web.json_response({"error": "registry not available"}, status=502)
    took = time.perf_counter() - start
    if took > 2.0:
        log.info("slow value %s %.0f ms", plot, took * 1000)
    return web.json_response(answer)


async def open_sessions(app: web.Application) -> None:
    app[SESSIONS] = Sessions(app[SETTINGS])


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app = web.Application()
    app[SETTINGS] = settings_module.load()
    app.on_startup.append(open_sessions)
    app.add_routes([web.get("/ping", ping), web.get("/uses", uses), web.get("/values/{plot}", value)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, backlog=512)


if __name__ == "__main__":
    main()
