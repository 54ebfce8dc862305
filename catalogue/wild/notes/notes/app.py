import asyncio
import os
from contextlib import asynccontextmanager

from fastapi import FastAPI, Query

from .store import PooledStore, Store

variant = os.environ.get("VARIANT", "flawed")
store = Store() if variant == "flawed" else PooledStore()


@asynccontextmanager
async def lifespan(app: FastAPI):
    await store.open()
    yield
    await store.close()


app = FastAPI(lifespan=lifespan)


async def may_read(user: str) -> bool:
    await asyncio.sleep(0.4 if variant == "healthy" else 0.25)  # directory service
    return user != "guest"


@app.get("/search")
async def search(q: str = Query(min_length=2), user: str = "mia"):
    if not await may_read(user):
        return {"notes": []}
    return {"notes": await store.search(q)}


@app.get("/ping")
async def ping():
    return {"ping": "pong"}
