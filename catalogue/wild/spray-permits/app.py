"""Spray permits for vineyards: may this plot be sprayed today?"""

import os
from contextlib import asynccontextmanager
from datetime import date

import aiohttp
import requests
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel

VARIANT = os.environ["VARIANT"]
WEATHER_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
MAX_WIND_KMH = 19.0
BUFFER_M = {"copper": 5, "sulphur": 3, "glyphosate": 20, "folpet": 10}


class Station(BaseModel):
    code: str
    wind_kmh: float
    rain_mm: float


class Permit(BaseModel):
    plot: int
    product: str
    day: date
    granted: bool
    reasons: list[str]
    buffer_m: int
    station: str


class Weather:
    """Readings of the chamber of agriculture's stations."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def close(self) -> None:
        await self.client.close()

    async def station(self, code: str) -> Station:
        async with self.client.get(f"{self.base}/stations/{code}", timeout=aiohttp.ClientTimeout(5)) as answer:
            answer.raise_for_status()
            return Station(**await answer.json())


class RegionalWeather(Weather):
    """The same stations through the region's gateway, with its session cookie."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self.session = requests.Session()
        self.session.headers["Accept"] = "application/json"
        self.session.trust_env = False

    async def station(self, code: str) -> Station:
        answer = self.session.get(f"{self.base}/stations/{code}", timeout=5)
        answer.raise_for_status()
        return Station(**answer.json())


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.weather = RegionalWeather(WEATHER_URL) if VARIANT == "flawed" else Weather(WEATHER_URL)
    yield
    await app.state.weather.close()


app = FastAPI(title="spray-permits", lifespan=lifespan)


def weather(request: Request) -> Weather:
    return request.app.state.weather


def refusals(station: Station, product: str) -> list[str]:
    reasons = []
    if station.wind_kmh > MAX_WIND_KMH:
        reasons.append(f"wind {station.wind_kmh:.1f} km/h is above {MAX_WIND_KMH:.0f} km/h")
    if product == "copper" and station.rain_mm > 10:
        reasons.append("copper washes out after more than 10 mm of rain")
    return reasons


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "up"}


@app.get("/permits/{plot}")
async def permit(plot: int, product: str = "sulphur", source: Weather = Depends(weather)) -> Permit:
    if product not in BUFFER_M:
        raise HTTPException(404, f"unknown product {product}")
    station = await source.station(f"ST{plot % 40:02d}")
    reasons = refusals(station, product)
    return Permit(
        plot=plot,
        product=product,
        day=date.today(),
        granted=not reasons,
        reasons=reasons,
        buffer_m=BUFFER_M[product],
        station=station.code,
    )
