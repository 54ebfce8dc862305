"""Stand-in of the publishers' house."""

import asyncio
import os
import secrets
import zlib

from aiohttp import web

WAIT_S = 0.35 if os.environ.get("VARIANT") == "healthy" else 0.02


async def open_session(_request: web.Request) -> web.Response:
    await asyncio.sleep(0.05)
    return web.json_response({"session": secrets.token_hex(8), "lasts_s": 60})


async def quote(request: web.Request) -> web.Response:
    await asyncio.sleep(WAIT_S)
    parts = 20 + zlib.crc32(request.query["work"].encode()) % 60
    return web.json_response({"parts": parts, "price": 180 + parts * 4.5 * int(request.query["performances"])})


app = web.Application()
app.router.add_get("/open", open_session)
app.router.add_get("/quote", quote)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, print=None, access_log=None, backlog=512)
