"""Stands for the underwriter's service."""

import asyncio
import os

from aiohttp import web

DELAY_S = 0.3 if os.environ.get("VARIANT") == "healthy" else 0.2
FACTORS = {"sloop": "1.03", "ketch": "1.11", "trawler": "1.27"}


async def risk(request: web.Request) -> web.Response:
    await asyncio.sleep(DELAY_S)
    return web.json_response({"factor": FACTORS.get(request.match_info["hull"], "1.50")})


app = web.Application()
app.router.add_get("/risk/{hull}", risk)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
