"""Stand-in of the sensor vendor's API: a gateway polls the probes by radio."""

import asyncio
import os
import zlib

from aiohttp import web

VARIANT = os.environ["VARIANT"]
CHANNELS = 1000 if VARIANT == "healthy" else 6
ROUND_TRIP_S = 0.2 if VARIANT == "healthy" else 0.04
radio = asyncio.Semaphore(CHANNELS)


async def probe(request):
    name = request.match_info["name"]
    async with radio:
        await asyncio.sleep(ROUND_TRIP_S)
    seed = zlib.crc32(name.encode())
    return web.json_response({"probe": name, "moisture": 0.1 + seed % 150 / 1000, "celsius": 9 + seed % 80 / 10})


app = web.Application()
app.router.add_get("/v2/probes/{name}", probe)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 2, access_log=None, print=None, backlog=512)
