"""Stand-in of the excise office."""

import asyncio
import os
import zlib

from aiohttp import web

DELAY_S = 0.25 if os.environ["VARIANT"] == "healthy" else 0.03


async def serial(request: web.Request) -> web.Response:
    await asyncio.sleep(DELAY_S)
    country, case = request.match_info["country"], request.match_info["case"]
    return web.json_response({"serial": f"{country}{zlib.crc32(case.encode()):010d}"})


app = web.Application()
app.router.add_get("/serials/{country}/{case}", serial)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, print=None, access_log=None)
