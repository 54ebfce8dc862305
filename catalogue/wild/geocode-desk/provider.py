"""Stands in for the map provider: every address takes a while, however many are asked for."""
import asyncio
import os
import sys
import zlib

from aiohttp import web

SECONDS = 0.35 if os.environ.get("VARIANT") == "healthy" else 0.2


async def search(request):
    await asyncio.sleep(SECONDS)
    spot = zlib.crc32(request.query["text"].encode())
    point = {"lat": 47 + spot % 7000 / 1000, "lon": 6 + spot // 7000 % 9000 / 1000}
    return web.json_response({"features": [{"point": point, "confidence": 0.93}]})


app = web.Application()
app.router.add_get("/search", search)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, backlog=512, print=None)
