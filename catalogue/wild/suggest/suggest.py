"""Search suggestions, as you type."""
import asyncio
import bisect
import os
import sys

from aiohttp import web
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.aiohttp import make_aiohttp_handler

variant = os.environ.get("VARIANT", "flawed")
MOST = 14 if variant == "flawed" else 500
PROFILE = {"flawed": 0.2, "mended": 0.2, "healthy": 0.3}[variant]

SYLLABLES = ["ba", "de", "lo", "mi", "nu", "ra", "so", "ti"]
WORDS = sorted(a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES)

answered = Counter("suggest_answers", "Answers")
running = Gauge("suggest_running", "Searches now")
seconds = Histogram("suggest_seconds", "Time of a search", buckets=[0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2])


async def preferences(user):
    await asyncio.sleep(PROFILE)
    return sum(map(ord, user)) % 7


class Search:
    def __init__(self):
        self.now = 0

    async def find(self, prefix, user):
        if self.now >= MOST:
            return {"error": "search is busy", "suggestions": []}
        self.now += 1
        try:
            shift = await preferences(user)
            at = bisect.bisect_left(WORDS, prefix)
            hits = [word for word in WORDS[at : at + 12] if word.startswith(prefix)]
            return {"suggestions": hits[shift % 3 :][:8]}
        finally:
            self.now -= 1


search = Search()
running.set_function(lambda: search.now)




async def suggest(request):
    with seconds.time():
        body = await search.find(request.query.get("q", "")[:20], request.query.get("user", "guest"))
    answered.inc()
    return web.json_response(body)


async def hello(request):
    return web.Response(text="suggest\n")


app = web.Application()
app.add_routes(
    [web.get("/suggest", suggest), web.get("/", hello), web.get("/metrics", make_aiohttp_handler())],
)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None)
