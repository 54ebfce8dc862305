"""The application. Start with `uvicorn api.main:app`, after `python -m api.schema`."""

from __future__ import annotations

from fastapi import FastAPI

from api import users
from api.settings import settings
from api.times import ResponseTimes

app = FastAPI(title="register")
app.include_router(users.router)
if settings.times_file is not None:
    app.add_middleware(ResponseTimes, file=settings.times_file)


@app.get("/api/health/")
async def health() -> dict[str, str]:
    """Answers at once, unless something blocks the event loop."""
    return {"status": "OK"}
