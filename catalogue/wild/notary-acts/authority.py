"""Stand-in of the time-stamp authority."""

import asyncio
import os
import secrets

from aiohttp import web

WAIT_S = 0.4 if os.environ.get("VARIANT") == "healthy" else 0.02


async def stamp(request: web.Request) -> web.Response:
    asked = await request.json()
    await asyncio.sleep(WAIT_S)
    return web.json_response({"digest": asked["digest"], "token": secrets.token_hex(24)})


app = web.Application()
app.router.add_post("/stamps", stamp)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, print=None, access_log=None, backlog=512)
