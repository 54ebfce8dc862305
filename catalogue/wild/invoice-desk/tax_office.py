"""Stands in for the tax office's signature service."""
import asyncio
import hashlib
import os
import sys

from aiohttp import web

SECONDS = 0.45 if os.environ.get("VARIANT") == "healthy" else 0.3


async def sign(request):
    form = await request.post()
    await asyncio.sleep(SECONDS)
    text = f"{form['order']}|{form['cents']}".encode()
    return web.json_response({"signature": hashlib.sha256(text).hexdigest()[:32]})


app = web.Application()
app.router.add_post("/sign", sign)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, backlog=512, print=None)
