import time
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI, HTTPException
from prometheus_client import Gauge, Summary, make_asgi_app

from . import config, payments
from .db import Booking, Room, Session, create, engine

LATENCY = Summary("booking_latency_seconds", "Time of a booking")
Gauge("db_pool_checked_out", "Connections in use").set_function(lambda: engine.pool.checkedout())
Gauge("db_pool_size", "Connections of the pool").set_function(lambda: engine.pool.size())


@asynccontextmanager
async def start(app: FastAPI):
    anyio.to_thread.current_default_thread_limiter().total_tokens = config.THREADS
    await anyio.to_thread.run_sync(create)
    yield


app = FastAPI(lifespan=start)
app.mount("/metrics", make_asgi_app())


@app.get("/rooms/{room_id}/book")
def book(room_id: int):
    began = time.perf_counter()
    with Session() as session:
        room = session.get(Room, room_id)
        if room is None:
            raise HTTPException(404)
        if config.SHORT_TRANSACTIONS:
            session.commit()
        authorisation = payments.authorise(room.price_cents)
        booking = Booking(room_id=room.id, authorisation=authorisation)
        session.add(booking)
        session.commit()
        LATENCY.observe(time.perf_counter() - began)
        return {"booking": booking.id, "room": room.name, "authorisation": authorisation}


@app.get("/alive")
async def alive():
    return {}
