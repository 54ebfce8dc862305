"""Stand-in of the other bank: a remote answer."""

import asyncio
import os
import sys

from aiohttp import web

ANSWER_S = 0.9 if os.environ.get("VARIANT") == "healthy" else 0.08


async def owner(request: web.Request) -> web.Response:
    await asyncio.sleep(ANSWER_S)
    return web.json_response({"owner": "J. Petersen", "account": request.match_info["account"]})


app = web.Application()
app.router.add_get("/accounts/{account}/owner", owner)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
