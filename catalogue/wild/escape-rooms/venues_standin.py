"""Stand-in of the booking systems of the venues."""

import asyncio
import os
import zlib

from aiohttp import web

LATENCY_S = 0.250 if os.environ["VARIANT"] == "healthy" else 0.030


async def slots(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    venue = request.match_info["venue"]
    first = zlib.crc32(venue.encode()) % 4
    return web.json_response({"venue": venue, "slots": [f"{17 + first + hour}:30" for hour in range(3)]})


app = web.Application()
app.router.add_get("/venues/{venue}/slots", slots)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, backlog=512)
