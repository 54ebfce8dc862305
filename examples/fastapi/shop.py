"""A shop that keeps its orders in memory."""

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
orders = []


class Order(BaseModel):
    product: int
    count: int


@app.get("/health")
async def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/orders")
async def latest() -> list[Order]:
    return orders[-20:]


@app.post("/orders", status_code=201)
async def take(order: Order) -> dict[str, int]:
    orders.append(order)
    return {"id": len(orders)}
