"""Stand-in of the auction house's index of makers, which clerks look up in the house's books."""

import asyncio
import os

from aiohttp import web

PLANS = {
    "flawed": {"desks": 6, "lookup_s": 0.06},
    "mended": {"desks": 200, "lookup_s": 0.06},
    "healthy": {"desks": 400, "lookup_s": 0.35},
}
PLAN = PLANS[os.environ.get("VARIANT", "mended")]
REPUTE = {"steinhof": 1.9, "bluether": 1.6, "yamara": 1.1, "petrow": 0.95, "kawata": 1.05}

desks = asyncio.Semaphore(PLAN["desks"])


async def index(request: web.Request) -> web.Response:
    maker = request.query["maker"].lower()
    year = int(request.query["year"])
    async with desks:
        await asyncio.sleep(PLAN["lookup_s"])
    vintage = 1.15 if year < 1930 else 1.0
    return web.json_response({"maker": maker, "index": REPUTE.get(maker, 0.7) * vintage})


app = web.Application()
app.router.add_get("/index", index)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None, backlog=512)
