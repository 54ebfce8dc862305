"""Swaps of pallets between the docks of a distribution yard."""

import os

import urllib3
from flask import Flask, jsonify

from yard import Yard

VARIANT = os.environ["VARIANT"]

app = Flask(__name__)
yard = Yard()
swap = yard.swap if VARIANT == "flawed" else yard.swap_in_order
carrier = urllib3.HTTPConnectionPool("127.0.0.1", int(os.environ["PORT"]) + 1, maxsize=96, timeout=10, retries=False)


@app.get("/swaps/<one>/<other>")
def swaps(one: str, other: str):
    if one == other or not {one, other} <= yard.docks.keys():
        return jsonify(error="name two docks of this yard"), 422
    answer = {}
    if VARIANT == "healthy":
        answer["carrier"] = carrier.request("GET", f"/docks/{one}").json()
    return jsonify(answer | swap(one, other))


@app.get("/docks/<name>")
def dock(name: str):
    if name not in yard.docks:
        return jsonify(error="no such dock"), 404
    return jsonify(dock=name, pallets=list(yard.docks[name].pallets)[:10])


@app.get("/health")
def health():
    return jsonify(status="up")
