"""Stands in for the gateway of the ferry line: ten workers, and a release that broke most of the discounts.

As a gateway does, it goes on with a request whose caller has gone away: it cannot see that.
"""
import asyncio
import random
import sys

from aiohttp import web

BROKEN = 0.75  # three of the four nodes of the member service
workers = asyncio.Semaphore(10)


async def fare(request):
    async with workers:
        await asyncio.sleep(random.uniform(0.04, 0.06))
    return web.json_response({"route": request.match_info["route"], "fare": 284.0})


async def discount(request):
    async with workers:
        if random.random() < BROKEN:
            await asyncio.sleep(random.uniform(0.08, 0.1))
            return web.json_response({"error": "member service failed"}, status=500)
        await asyncio.sleep(random.uniform(0.04, 0.06))
    return web.json_response({"percent": 10})


app = web.Application()
app.router.add_get("/fares/{route}", fare)
app.router.add_get("/members/{member}/discount", discount)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, backlog=1024, print=None)
