"""Product page of the shop, put together from three services."""
import argparse
import asyncio
import os
import time

from aiohttp import ClientSession, TCPConnector, web
from prometheus_client import Histogram
from prometheus_client.aiohttp import make_aiohttp_handler

VARIANT = os.environ.get("VARIANT", "flawed")
page_seconds = Histogram("storefront_page_seconds", "Time to build a page")
call_seconds = Histogram("storefront_call_seconds", "Time of a call to another service", ["service"])


class Shop:
    def __init__(self, http, base):
        self.http = http
        self.base = base
        self.suggested = {}

    async def call(self, service, product):
        with call_seconds.labels(service).time():
            async with self.http.get(f"{self.base}/{service}/{product}") as answer:
                return await answer.json()

    async def suggestions(self, product):
        if VARIANT == "flawed":
            return await self.call("recommend", product)
        # the recommendations of yesterday are as good
        entry = self.suggested.get(product)
        if entry is None or entry[0] < time.time() - 3600:
            entry = self.suggested[product] = (time.time(), await self.call("recommend", product))
        return entry[1]

    async def page(self, request):
        product = request.match_info["product"]
        with page_seconds.time():
            info, price = await asyncio.gather(self.call("info", product), self.call("price", product))
            also = await self.suggestions(product)
        return web.json_response({"product": product, "info": info, "price": price, "others_bought": also})


async def start(port):
    async with ClientSession(connector=TCPConnector(limit=0)) as http:
        shop = Shop(http, f"http://127.0.0.1:{port + 1}")
        app = web.Application()
        app.add_routes([web.get("/p/{product}", shop.page), web.get("/metrics", make_aiohttp_handler())])
        await listen(app, port)


async def others(port):
    """The three services behind, none of which has a limit."""
    delay = {"info": 0.1, "price": 0.15, "recommend": 0.9}
    if VARIANT == "healthy":
        delay = {"info": 0.3, "price": 0.35, "recommend": 0.4}

    async def answer(request):
        service, product = request.match_info["service"], request.match_info["product"]
        await asyncio.sleep(delay[service])
        return web.json_response({"service": service, "for": product, "items": list(range(5))})

    app = web.Application()
    app.add_routes([web.get("/{service}/{product}", answer)])
    await listen(app, port + 1)


async def listen(app, port):
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, backlog=512).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["shop", "others"])
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    asyncio.run((start if options.role == "shop" else others)(options.port))
