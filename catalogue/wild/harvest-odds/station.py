"""Stand-in of the weather bureau: the spring outlook of a district."""

import asyncio
import os

from aiohttp import web


async def outlook(request: web.Request) -> web.Response:
    await asyncio.sleep(0.4)
    district = int(request.match_info["district"])
    return web.json_response({"district": district, "chill": 0.05 + 0.01 * (district % 9)})


app = web.Application()
app.router.add_get("/outlook/{district}", outlook)

if __name__ == "__main__":
    web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]) + 1, access_log=None, print=None)
