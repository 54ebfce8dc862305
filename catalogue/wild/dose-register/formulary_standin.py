"""Stand-in of the hospital's formulary: a remote answer."""

import asyncio
import os
import sys

from aiohttp import web

ANSWER_S = 0.3 if os.environ.get("VARIANT") == "healthy" else 0.08


async def drug(request: web.Request) -> web.Response:
    await asyncio.sleep(ANSWER_S)
    return web.json_response({"drug": request.match_info["drug"], "max_mg": 30})


app = web.Application()
app.router.add_get("/drugs/{drug}", drug)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
