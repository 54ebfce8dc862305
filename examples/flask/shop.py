"""A shop that keeps its orders in memory."""

from flask import Flask, request

app = Flask(__name__)
orders = []


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/orders")
def latest():
    return orders[-20:]


@app.post("/orders")
def take():
    order = request.get_json()
    orders.append({"product": order["product"], "count": order["count"]})
    return {"id": len(orders)}, 201
