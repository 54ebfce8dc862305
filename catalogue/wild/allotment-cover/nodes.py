"""Stand-ins of the reinsurer's two rating nodes, each at the end of a leased line."""

import asyncio
import itertools
import os

from aiohttp import web

HEALTHY = os.environ.get("VARIANT") == "healthy"
DELAY_S = 0.25 if HEALTHY else 0.06
LOST_EACH = 0 if HEALTHY else 10  # one call in so many gets lost on the first node's line


def node(lost_each):
    turns = itertools.count(1)

    async def rates(request):
        plot = int(request.match_info["plot"])
        if lost_each and next(turns) % lost_each == 0:
            await asyncio.sleep(60)
        await asyncio.sleep(DELAY_S)
        return web.json_response({"area": 40 + plot % 200, "rate": 0.11 + plot % 7 / 100})

    app = web.Application()
    app.router.add_get("/rates/{plot:\\d+}/{peril}", rates)
    return app


async def main():
    for offset, lost_each in ((1, LOST_EACH), (2, 0)):
        runner = web.AppRunner(node(lost_each), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", int(os.environ["PORT"]) + offset).start()
    await asyncio.Event().wait()


asyncio.run(main())
