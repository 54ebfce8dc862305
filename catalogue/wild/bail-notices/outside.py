"""Stand-ins of the court register and of the log collector of the county."""

import asyncio
import os

from aiohttp import web

PORT = int(os.environ["PORT"])
REGISTER_S = 0.4 if os.environ.get("VARIANT") == "healthy" else 0.012
COLLECTOR_S = 0.025


async def case(request: web.Request) -> web.Response:
    await asyncio.sleep(REGISTER_S)
    number = int(request.match_info["number"])
    return web.json_response({"case": number, "court": f"Division {number % 7 + 1}", "sum": 500 + number % 40 * 250})


async def collect(request: web.Request) -> web.Response:
    await request.read()
    await asyncio.sleep(COLLECTOR_S)
    return web.Response(status=204)


async def main() -> None:
    register = web.Application()
    register.add_routes([web.get("/cases/{number}", case)])
    collector = web.Application()
    collector.add_routes([web.post("/records", collect)])
    for app, port in ((register, PORT + 2), (collector, PORT + 3)):
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
    await asyncio.Event().wait()


asyncio.run(main())
