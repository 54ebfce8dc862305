"""Stand-in of the vet's practice and its records."""

import asyncio
import os

from aiohttp import web

DELAY_S = 0.3 if os.environ.get("VARIANT") == "healthy" else 0.02


async def dog(request):
    number = int(request.match_info["number"])
    await asyncio.sleep(DELAY_S)
    return web.json_response({"dog": number, "vaccinated": number % 5 != 0, "last_visit": f"2026-0{1 + number % 9}-11"})


app = web.Application()
app.router.add_get("/dogs/{number:\\d+}", dog)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
