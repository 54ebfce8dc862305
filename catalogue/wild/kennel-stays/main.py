"""Stays at a boarding kennel: what a week costs, with the vet's check of the dog's jabs."""

import os
from contextlib import asynccontextmanager

import aiohttp
import requests
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from starlette_exporter import PrometheusMiddleware, handle_metrics

VARIANT = os.environ.get("VARIANT", "flawed")
VET = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
RATES = {"small": 17.5, "medium": 21.0, "large": 26.5}
EXTRAS = {"walk": 6.0, "groom": 14.0, "none": 0.0}


class Stay(BaseModel):
    dog: int
    size: str
    nights: int
    vaccinated: bool
    price: float


class VetUnavailable(Exception):
    """The vet's practice did not answer."""


class Practice:
    """Asks the vet's practice for a dog's record, with the kennel's account."""

    def __init__(self) -> None:
        self.session = requests.Session()
        self.session.headers["X-Kennel"] = "hollow-oak"

    async def record(self, dog: int) -> dict:
        answer = self.session.get(f"{VET}/dogs/{dog}", timeout=5)
        if answer.status_code != 200:
            raise VetUnavailable(answer.status_code)
        return answer.json()

    async def close(self) -> None:
        self.session.close()


class AsyncPractice:
    """Asks the vet's practice for a dog's record, with the kennel's account."""

    def __init__(self) -> None:
        self.session = aiohttp.ClientSession(
            headers={"X-Kennel": "hollow-oak"},
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=5),
        )

    async def record(self, dog: int) -> dict:
        async with self.session.get(f"{VET}/dogs/{dog}") as answer:
            if answer.status != 200:
                raise VetUnavailable(answer.status)
            return await answer.json()

    async def close(self) -> None:
        await self.session.close()


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.practice = Practice() if VARIANT == "flawed" else AsyncPractice()
    yield
    await app.state.practice.close()


app = FastAPI(title="Hollow Oak Kennels", lifespan=lifespan)
app.add_middleware(PrometheusMiddleware, app_name="kennel", prefix="kennel", group_paths=True)
app.add_route("/metrics", handle_metrics)


@app.get("/stays/{dog}")
async def stay(dog: int, size: str = "medium", nights: int = 7, extra: str = "none") -> Stay:
    if size not in RATES or extra not in EXTRAS:
        raise HTTPException(422, "no such size or extra")
    try:
        record = await app.state.practice.record(dog)
    except VetUnavailable as error:
        raise HTTPException(502, "the vet's practice does not answer") from error
    price = nights * (RATES[size] + EXTRAS[extra])
    if not record["vaccinated"]:
        price += 38.0
    if nights >= 7:
        price *= 0.93
    return Stay(dog=dog, size=size, nights=nights, vaccinated=record["vaccinated"], price=round(price, 2))


@app.get("/rates")
async def rates() -> dict[str, float]:
    return RATES


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "up"}
