import asyncio
import os
import time
from contextlib import asynccontextmanager

import aiohttp
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette_exporter import PrometheusMiddleware, handle_metrics

MODEL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
TTL = 1.0
CITY_LOOKUP = 0.35 if os.environ["VARIANT"] == "healthy" else 0.2


class PlainCache:
    def __init__(self, load):
        self.load = load
        self.entries = {}

    async def get(self, key):
        entry = self.entries.get(key)
        if entry and time.monotonic() < entry[1]:
            return entry[0]
        value = await self.load(key)  # not there, or too old
        self.entries[key] = (value, time.monotonic() + TTL)
        return value


class SharedCache(PlainCache):
    """Only one caller loads a missing entry; an old one is served while a new one is loaded."""

    def __init__(self, load):
        super().__init__(load)
        self.loading = {}

    async def _reload(self, key):
        try:
            value = await self.load(key)
            self.entries[key] = (value, time.monotonic() + TTL)
            return value
        finally:
            del self.loading[key]

    async def get(self, key):
        entry = self.entries.get(key)
        if entry and time.monotonic() < entry[1]:
            return entry[0]
        if key not in self.loading:
            self.loading[key] = asyncio.create_task(self._reload(key))
        return entry[0] if entry else await self.loading[key]


async def run_model(city):
    async with app.state.client.get(f"{MODEL}/run/{city}") as answer:
        return await answer.json()


cache = (PlainCache if os.environ["VARIANT"] == "flawed" else SharedCache)(run_model)


async def forecast(request):
    city = request.path_params["city"].lower()
    await asyncio.sleep(CITY_LOOKUP)  # spelling of the city, by the map service
    return JSONResponse({"city": city, "forecast": await cache.get(city)})


async def ready(request):
    return JSONResponse({"cities": list(cache.entries)})


@asynccontextmanager
async def lifespan(app):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as app.state.client:
        yield


app = Starlette(
    routes=[Route("/forecast/{city}", forecast), Route("/ready", ready), Route("/metrics", handle_metrics)], lifespan=lifespan
)
app.add_middleware(PrometheusMiddleware, app_name="forecast")
