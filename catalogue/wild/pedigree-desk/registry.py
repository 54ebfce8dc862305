"""Stand-in of the national kennel club's registry."""

import asyncio
import os

from aiohttp import web

WAIT_S = 0.18 if os.environ["VARIANT"] == "healthy" else 0.012


async def chip(request: web.Request) -> web.Response:
    await asyncio.sleep(WAIT_S)
    number = request.match_info["number"]
    return web.json_response({"chip": number, "sire": f"S{int(number) % 811}", "dam": f"D{int(number) % 677}"})


app = web.Application()
app.router.add_get("/chips/{number}", chip)

if __name__ == "__main__":
    web.run_app(
        app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None, backlog=512
    )
