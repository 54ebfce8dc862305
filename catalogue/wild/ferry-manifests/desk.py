"""Stand-in of the boarding desk's feed at the terminal."""

import asyncio
import os

from aiohttp import web

DELAY_S = float(os.environ.get("DESK_DELAY_S", "0.08"))


async def boarded(request):
    sailing = int(request.match_info["sailing"])
    await asyncio.sleep(DELAY_S)
    people = [
        {"ticket": sailing * 1000 + n, "age": (sailing * 7 + n * 13) % 80, "vehicle": "car" if n % 3 == 0 else None}
        for n in range(12)
    ]
    return web.json_response(people)


app = web.Application()
app.router.add_get("/sailings/{sailing:\\d+}/boarded", boarded)
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
