from contextlib import asynccontextmanager
from datetime import date as Date

from fastapi import FastAPI, HTTPException, Request

from . import settings
from .clients import FerryLine, Timetable
from .quote import insistent, lenient
from .retry import Unavailable

make_quote = lenient if settings.BREAKER else insistent


@asynccontextmanager
async def lifespan(app):
    app.state.timetable, app.state.line = Timetable(), FerryLine()
    yield
    await app.state.timetable.close()
    await app.state.line.close()


app = FastAPI(title="Trip quotes", lifespan=lifespan)


@app.get("/quotes/{route}")
async def quote(request: Request, route: str, date: Date, member: int):
    state = request.app.state
    try:
        return await make_quote(state.timetable, state.line, route, date.isoformat(), member)
    except Unavailable as error:
        raise HTTPException(502, f"no quote: {error}") from error


@app.get("/healthz")
async def healthz():
    return {"status": "up"}
