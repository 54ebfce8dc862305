"""Evenings out: an escape room and a table afterwards."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from planner import DISTRICTS, PLANNERS, PlanTimedOut


class Stop(BaseModel):
    venue: str
    at: str


class Evening(BaseModel):
    district: str
    room: Stop
    dinner: Stop
    price: int


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.planner = PLANNERS[os.environ["VARIANT"]]()
    yield
    await app.state.planner.close()


app = FastAPI(title="evenings", lifespan=lifespan)


@app.exception_handler(PlanTimedOut)
async def timed_out(request: Request, error: PlanTimedOut) -> JSONResponse:
    return JSONResponse({"detail": "the venues did not answer in time"}, status_code=504)


@app.get("/evenings/{district}")
async def evening(district: str, guests: Annotated[int, Query(ge=2, le=12)], request: Request) -> Evening:
    if district not in DISTRICTS:
        raise HTTPException(404, "no such district")
    return Evening(**await request.app.state.planner.plan(district, guests))


@app.get("/districts")
async def districts() -> list[str]:
    return sorted(DISTRICTS)


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}
