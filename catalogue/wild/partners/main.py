import os
from contextlib import asynccontextmanager

import client
from fastapi import FastAPI, Path


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.airline = await client.make(f"http://127.0.0.1:{int(os.environ['PORT']) + 1}")
    yield
    await app.state.airline.close()


app = FastAPI(title="Partner fares", lifespan=lifespan, docs_url=None)


@app.get("/offers/{origin}/{target}")
async def offers(origin: str = Path(pattern="^[A-Z]{3}$"), target: str = Path(pattern="^[A-Z]{3}$")):
    fares = await client.fares(app.state.airline, origin, target)
    best = min(fares, key=lambda fare: fare["cents"])
    return {"route": f"{origin}-{target}", "best": best, "offers": len(fares), "commission": best["cents"] // 20}


@app.get("/health")
async def health():
    return {"airline_client": "open"}
