"""Gateway from HTTP to the ticker plant, which speaks a length-prefixed protocol over TCP."""
import os
import queue
import socket
import struct
import time

from flask import Flask, Response, jsonify
from prometheus_client import CONTENT_TYPE_LATEST, Histogram, generate_latest

VARIANT = os.environ.get("VARIANT", "flawed")
PLANT = ("127.0.0.1", int(os.environ["PORT"]) + 1)
LINKS = 2  # as licensed

app = Flask(__name__)
round_trip = Histogram("plant_round_trip_seconds", "Time of a request to the plant", buckets=(0.001, 0.005, 0.02, 0.05, 0.1, 0.5, 1))
waited = Histogram("plant_link_wait_seconds", "Time until a link is free", buckets=(0.001, 0.01, 0.05, 0.1, 0.5, 1, 5))


class Link:
    def __init__(self):
        self.sock = socket.create_connection(PLANT)
        if VARIANT != "flawed":
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.inbound = self.sock.makefile("rb")

    def ask(self, symbol):
        body = symbol.encode()
        self.sock.sendall(struct.pack(">I", len(body)))
        self.sock.sendall(body)
        (length,) = struct.unpack(">I", self.inbound.read(4))
        return self.inbound.read(length).decode()


links = queue.LifoQueue()
for _ in range(LINKS):
    links.put(None)


def ask(symbol):
    with waited.time():
        link = links.get()
    try:
        link = link or Link()
        with round_trip.time():
            return link.ask(symbol)
    finally:
        links.put(link)


def entitled(user):
    time.sleep(0.4 if VARIANT == "healthy" else 0.25)  # the entitlement service
    return True


@app.get("/last/<symbol>")
def last(symbol):
    if not entitled("desk"):
        return jsonify(error="not entitled"), 403
    return jsonify(symbol=symbol, last=float(ask(symbol[:12].upper())))


@app.get("/metrics")
def metrics():
    return Response(generate_latest(), mimetype=CONTENT_TYPE_LATEST)
