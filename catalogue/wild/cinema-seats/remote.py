"""Stands in for the accounts of the cinema group and for the theatre's seat system. Both are elsewhere and wait for nobody."""
import asyncio
import itertools
import os
import sys

from aiohttp import web

ACCOUNT_SECONDS = 0.5 if os.environ.get("VARIANT") == "healthy" else 0.3
THEATRE_SECONDS = 0.04
block = itertools.count(1)


async def account(request):
    await asyncio.sleep(ACCOUNT_SECONDS)
    return web.json_response({"account": request.match_info["account"], "tier": "gold"})


async def claim(request):
    await asyncio.sleep(THEATRE_SECONDS)
    n = next(block)
    party = int(request.query["party"])
    return web.json_response({"row": n // 20 % 30 + 1, "seats": [n % 20 * party + i for i in range(party)]})


async def serve(port, method, path, handler):
    app = web.Application()
    app.router.add_route(method, path, handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=512).start()


async def main(accounts_port, theatre_port):
    await serve(accounts_port, "GET", "/accounts/{account}", account)
    await serve(theatre_port, "POST", "/screenings/{screening}/claims", claim)
    await asyncio.Event().wait()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
