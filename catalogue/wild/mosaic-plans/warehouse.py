"""Stand-in of the warehouse that says how many tiles of each colour are there."""

import asyncio
import os

from aiohttp import web

WAIT_S = 0.7 if os.environ.get("VARIANT") == "healthy" else 0.01
STOCK = {"ochre": 400, "umber": 250, "slate": 90, "ivory": 610, "cobalt": 120, "moss": 330, "carmine": 80, "onyx": 510}


async def stock(_request: web.Request) -> web.Response:
    await asyncio.sleep(WAIT_S)
    return web.json_response(STOCK)


app = web.Application()
app.router.add_get("/stock", stock)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, print=None, access_log=None, backlog=512)
