"""Stand-in of the tenants' register."""

import asyncio
import os

from aiohttp import web

LATENCY_S = 0.4 if os.environ.get("VARIANT") == "healthy" else 0.015


async def tenant(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    number = request.match_info["number"]
    return web.json_response({"number": int(number), "name": f"Household {number} of Larch Court"})


app = web.Application()
app.add_routes([web.get("/tenants/{number}", tenant)])
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None, backlog=1024)
