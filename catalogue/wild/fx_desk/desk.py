#!/usr/bin/env python
"""FX desk: quotes a currency pair with the client's own margin."""
import asyncio
import os
import sys
import time

from aiohttp import ClientSession, TCPConnector, web
from prometheus_client import Counter, Histogram
from prometheus_client.aiohttp import make_aiohttp_handler

VARIANT = os.environ.get("VARIANT", "flawed")
PORT = int(sys.argv[1])
EXCHANGE = f"http://127.0.0.1:{PORT + 1}"

SECONDS = Histogram("desk_quote_seconds", "Time to quote", buckets=(0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10))
QUOTES = Counter("desk_quotes", "Quotes given", ["pair"])

routes = web.RouteTableDef()


class Book:
    """The last prices, with the time at which they were taken."""

    def __init__(self, http):
        self.http = http
        self.prices = {}
        self.update = asyncio.Lock()

    async def tick(self, pair):
        async with self.http.get(f"{EXCHANGE}/tick/{pair}") as answer:
            self.prices[pair] = (await answer.json(), time.time())

    async def price(self, pair):
        if VARIANT == "flawed":
            async with self.update:
                await self.tick(pair)
        else:
            await self.tick(pair)
        return self.prices[pair]

    async def margin(self, client):
        async with self.http.get(f"{EXCHANGE}/margin/{client}") as answer:
            return (await answer.json())["bp"]


@routes.get("/quote/{pair}")
async def quote(request):
    with SECONDS.time():
        book, pair = request.app["book"], request.match_info["pair"]
        bp = await book.margin(request.query.get("client", "house"))
        price, taken = await book.price(pair)
        QUOTES.labels(pair).inc()
        return web.json_response({"pair": pair, "ask": price["mid"] * (1 + bp / 1e4), "age": time.time() - taken})


@routes.get("/")
async def up(_):
    return web.Response(text="desk is open")


async def exchange():
    """Stand-in of the exchange: 40 ms for a tick, longer for a margin, and no limit."""

    async def tick(_):
        await asyncio.sleep(0.04)
        return web.json_response({"mid": 1.0834})

    async def margin(_):
        await asyncio.sleep(0.4 if VARIANT == "healthy" else 0.25)
        return web.json_response({"bp": 12})

    site = web.Application()
    site.add_routes([web.get("/tick/{pair}", tick), web.get("/margin/{client}", margin)])
    runner = web.AppRunner(site, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PORT + 1).start()
    await asyncio.Event().wait()


async def with_client(app):
    async with ClientSession(connector=TCPConnector(limit=0)) as http:
        app["book"] = Book(http)
        yield


if __name__ == "__main__":
    if sys.argv[2:] == ["exchange"]:
        asyncio.run(exchange())
    else:
        app = web.Application()
        app.add_routes([*routes, web.get("/metrics", make_aiohttp_handler())])
        app.cleanup_ctx.append(with_client)
        web.run_app(app, host="127.0.0.1", port=PORT, access_log=None)
