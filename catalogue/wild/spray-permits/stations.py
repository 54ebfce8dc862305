"""Stand-in of the weather stations' gateway."""

import asyncio
import os

from aiohttp import web

DELAY_S = 0.25 if os.environ["VARIANT"] == "healthy" else 0.02


async def station(request: web.Request) -> web.Response:
    await asyncio.sleep(DELAY_S)
    code = request.match_info["code"]
    number = int(code[2:])
    return web.json_response({"code": code, "wind_kmh": 6 + number * 0.4, "rain_mm": number % 7 * 2.0})


app = web.Application()
app.router.add_get("/stations/{code}", station)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, print=None, access_log=None)
