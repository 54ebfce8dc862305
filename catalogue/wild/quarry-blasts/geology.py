"""Stand-in of the geological survey's rock service."""

import asyncio
import os

from aiohttp import web

LATENCY_S = 0.4 if os.environ.get("VARIANT") == "healthy" else 0.006


async def rock(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    bench = int(request.match_info["bench"])
    return web.json_response({"bench": bench, "density": 2.4 + bench % 9 / 10, "damping": 0.9 + bench % 7 / 100})


app = web.Application()
app.add_routes([web.get("/rock/{bench}", rock)])
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None, backlog=1024)
