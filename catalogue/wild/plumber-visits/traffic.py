"""Stand-in of the traffic service, which says how long a drive takes at this hour."""

import asyncio
import os

from aiohttp import web

LATENCY_S = 0.26 if os.environ.get("VARIANT") == "healthy" else 0.05


async def drive(request: web.Request) -> web.Response:
    await asyncio.sleep(LATENCY_S)
    apart = abs(int(request.query["from"]) - int(request.query["to"]))
    return web.Response(text=str(6 + apart % 37))


app = web.Application()
app.router.add_get("/drive", drive)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["TRAFFIC_PORT"]), access_log=None, backlog=512)
