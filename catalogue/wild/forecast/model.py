"""Stand-in of the weather model: three runs at a time, 300 ms each."""
import asyncio
import os

from aiohttp import web

slots = asyncio.Semaphore(3)


async def run(request):
    async with slots:
        await asyncio.sleep(0.3)
    return web.json_response({"temperature": 11, "rain_mm": 2.5, "wind": "SW 4", "city": request.match_info["city"]})


app = web.Application()
app.router.add_get("/run/{city}", run)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
