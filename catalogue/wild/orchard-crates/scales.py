"""Stand-in of the controller of the scales at the ends of the rows."""

import asyncio
import os
import random

from aiohttp import web

SETTLE_S = {"healthy": 0.28}.get(os.environ.get("VARIANT", ""), 0.012)


async def scale(request: web.Request) -> web.Response:
    await asyncio.sleep(SETTLE_S)
    return web.json_response({"row": int(request.match_info["row"]), "grams": random.randint(9_200, 17_900)})


app = web.Application()
app.router.add_get("/scales/{row}", scale)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, backlog=512)
