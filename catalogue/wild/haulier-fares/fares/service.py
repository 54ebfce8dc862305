"""The fares service: the haulier's fare, or the printed tariff."""

from __future__ import annotations

import asyncio
import logging
import sys

import aiohttp
from aiohttp import web

from . import config
from .tariff import printed

log = logging.getLogger("fares")
CONFIG = config.load()
SESSION = web.AppKey("session", aiohttp.ClientSession)


async def ask_haulier(session: aiohttp.ClientSession, leg: dict[str, str]) -> float:
    async with session.get(f"{CONFIG.haulier_url}/v1/prices", params=leg) as answer:
        answer.raise_for_status()
        return float((await answer.json())["price"])


async def quote(request: web.Request) -> web.Response:
    leg = dict(request.query)
    source = "haulier"
    try:
        net = await ask_haulier(request.app[SESSION], leg)
    except (asyncio.TimeoutError, aiohttp.ClientError) as error:
        log.debug("haulier: %r", error)
        net, source = printed(leg["from"], leg["to"], int(leg["pallets"])), "tariff"
    return web.json_response({"from": leg["from"], "to": leg["to"], "net": round(net, 2), "source": source})


async def client(app: web.Application):
    connector = aiohttp.TCPConnector(limit=CONFIG.haulier_connections)
    timeout = aiohttp.ClientTimeout(total=CONFIG.haulier_timeout_s)
    app[SESSION] = aiohttp.ClientSession(connector=connector, timeout=timeout)
    yield
    await app[SESSION].close()


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    app = web.Application()
    app.cleanup_ctx.append(client)
    app.add_routes([web.get("/quote", quote)])
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None, backlog=512)


if __name__ == "__main__":
    main()
