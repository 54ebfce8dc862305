"""Stands in for the timetable service of the port authorities."""
import asyncio
import os
import random
import sys

from aiohttp import web

SECONDS = 0.7 if os.environ.get("VARIANT") == "healthy" else 0.4


async def departure(request):
    await asyncio.sleep(random.uniform(0.9, 1.1) * SECONDS)
    return web.json_response({"ship": "Magic", "departs": request.query["date"] + "T14:00", "hours": 20})


app = web.Application()
app.router.add_get("/departures/{route}", departure)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, backlog=512, print=None)
