# The exchange's gateway, as a stand-in: six calls at a time, 120 ms each. One more is refused, which costs it work too.
import asyncio
import hashlib
import os

from aiohttp import web

busy = 0


async def last(request):
    global busy
    if busy >= 6:
        hashlib.pbkdf2_hmac("sha256", b"audit", b"refused", 1500)
        return web.json_response({"error": "too many calls"}, status=503)
    busy += 1
    try:
        await asyncio.sleep(0.12)
    finally:
        busy -= 1
    return web.json_response({"price": 101.25, "venue": "XETR"})


site = web.Application()
site.router.add_get("/last/{symbol}", last)
web.run_app(site, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
