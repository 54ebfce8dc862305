"""Stand-in of the tannery's reservations."""

import asyncio
import itertools
import os

from aiohttp import web

LATENCY_S = 0.5 if os.environ.get("VARIANT") == "healthy" else 0.01
numbers = itertools.count(70_001)


async def reserve(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    return web.Response(text=f"{request.query['grade'][:2].upper()}-{next(numbers)}")


app = web.Application()
app.router.add_get("/reserve", reserve)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["TANNERY_PORT"]), access_log=None, backlog=512)
