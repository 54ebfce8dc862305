"""Stand-in of the county's road service: a few route engines behind one front."""

import asyncio
import os

from aiohttp import web

VARIANT = os.environ.get("VARIANT", "mended")
ENGINES, ROUTE_S = (400, 0.4) if VARIANT == "healthy" else (4, 0.04)
engines = asyncio.Semaphore(ENGINES)


async def minutes(request: web.Request) -> web.Response:
    zone = request.match_info["zone"]
    async with engines:
        await asyncio.sleep(ROUTE_S)
    return web.json_response({"zone": zone, "minutes": 9 + sum(zone.encode()) % 31})


app = web.Application()
app.add_routes([web.get("/minutes/{zone}", minutes)])
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None, backlog=1024)
