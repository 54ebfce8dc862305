"""Duty stamps: what a case of spirits owes, and the serial number of its stamp."""

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

import aiohttp
from aiolimiter import AsyncLimiter
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel

CENT = Decimal("0.01")
DUTY_PER_LITRE_OF_ALCOHOL = {
    "DE": Decimal("13.03"),
    "AT": Decimal("12.00"),
    "FR": Decimal("18.66"),
    "IE": Decimal("42.57"),
}


@dataclass(frozen=True)
class Plan:
    """What the contract with the excise office allows."""

    name: str
    calls: int
    period_s: float


PLANS = {
    "flawed": Plan("pilot", calls=10, period_s=0.1),
    "mended": Plan("trader", calls=200, period_s=0.1),
    "healthy": Plan("trader", calls=200, period_s=0.1),
}


class Stamp(BaseModel):
    case: str
    country: str
    litres_of_alcohol: Decimal
    duty: Decimal
    serial: str


class Excise:
    """Client of the excise office; it keeps to the plan, since the office fines traders that do not."""

    def __init__(self, base: str, plan: Plan) -> None:
        self.base = base
        self.pace = AsyncLimiter(plan.calls, plan.period_s)
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=30)
        )

    async def close(self) -> None:
        await self.session.close()

    async def serial(self, country: str, case: str) -> str:
        async with self.pace:
            pass
        async with self.session.get(f"{self.base}/serials/{country}/{case}") as answer:
            if answer.status != 200:
                raise HTTPException(502, "the excise office gave no serial")
            return (await answer.json())["serial"]


@asynccontextmanager
async def lifespan(app: FastAPI):
    base = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
    app.state.excise = Excise(base, PLANS[os.environ["VARIANT"]])
    yield
    await app.state.excise.close()


app = FastAPI(title="duty-stamps", lifespan=lifespan)


def duty_of(country: str, bottles: int, litres: Decimal, strength: Decimal) -> tuple[Decimal, Decimal]:
    alcohol = (bottles * litres * strength / 100).quantize(Decimal("0.001"), ROUND_HALF_UP)
    return alcohol, (alcohol * DUTY_PER_LITRE_OF_ALCOHOL[country]).quantize(CENT, ROUND_HALF_UP)


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "up"}


@app.get("/stamps/{country}/{case}")
async def stamp(
    country: str,
    case: str,
    bottles: int = Query(6, gt=0, le=60),
    litres: Decimal = Decimal("0.7"),
    strength: Decimal = Decimal("40"),
) -> Stamp:
    country = country.upper()
    if country not in DUTY_PER_LITRE_OF_ALCOHOL:
        raise HTTPException(404, f"no duty is known for {country}")
    alcohol, duty = duty_of(country, bottles, litres, strength)
    serial = await app.state.excise.serial(country, case)
    return Stamp(case=case, country=country, litres_of_alcohol=alcohol, duty=duty, serial=serial)
