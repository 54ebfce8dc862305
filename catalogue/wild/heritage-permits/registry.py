"""Stand-in of the land registry's web API."""

import asyncio
import os

from aiohttp import web

DELAY_S = 0.6 if os.environ.get("VARIANT") == "healthy" else 0.035
ZONES = ("conservation", "residential", "harbour", "old town")


async def parcel(request):
    number = int(request.match_info["number"])
    await asyncio.sleep(DELAY_S)
    if number > 900_000:
        raise web.HTTPNotFound
    return web.json_response({"parcel": number, "zone": ZONES[number % 4], "grade": number % 5})


app = web.Application()
app.router.add_get("/parcels/{number:\\d+}", parcel)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
