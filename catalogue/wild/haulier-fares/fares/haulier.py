"""Stand-in for the haulier's API."""

from __future__ import annotations

import asyncio
import random
import sys

from aiohttp import web

from . import config
from .tariff import printed

CONFIG = config.load()


async def prices(request: web.Request) -> web.Response:
    await asyncio.sleep(CONFIG.slow_s if random.random() < CONFIG.slow_share else CONFIG.usual_s)
    leg = request.query
    price = printed(leg["from"], leg["to"], int(leg["pallets"])) * random.uniform(0.9, 1.02)
    return web.json_response({"price": round(price, 2), "currency": "EUR"})


def main() -> None:
    app = web.Application()
    app.add_routes([web.get("/v1/prices", prices)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, backlog=512)


if __name__ == "__main__":
    main()
