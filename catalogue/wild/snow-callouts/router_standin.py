"""Stand-in of the county's routing service."""

import asyncio
import os

from aiohttp import web

LATENCY_S = {"flawed": 0.020, "mended": 0.020, "healthy": 0.400}[os.environ["VARIANT"]]


async def route(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    start = [float(part) for part in request.query["from"].split(",")]
    end = [float(part) for part in request.query["to"].split(",")]
    metres = 111_000 * (abs(start[0] - end[0]) + 0.7 * abs(start[1] - end[1]))
    return web.json_response({"metres": round(metres), "seconds": round(metres / 8.3)})


app = web.Application()
app.router.add_get("/route", route)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None)
