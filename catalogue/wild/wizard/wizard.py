"""Quote wizard of an insurance: each visit starts a session with a draft."""
import os
import resource
import secrets
import time
from collections import OrderedDict

from flask import Flask, jsonify
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest

VARIANT = os.environ.get("VARIANT", "flawed")
KEEP = {"flawed": None, "mended": 500, "healthy": 300}[VARIANT]
TARIFF_SECONDS = {"flawed": 0.2, "mended": 0.2, "healthy": 0.35}[VARIANT]

# as the container in production
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))

app = Flask(__name__)
started = Counter("wizard_sessions_started", "Sessions started")
latency = Histogram("wizard_request_duration_seconds", "Time to answer", ["endpoint"])
sessions = OrderedDict()


class Draft:
    def __init__(self, product):
        self.product = product
        self.created = time.time()
        self.premium = None
        # the form, prefilled with the tariff's tables
        self.tables = [bytearray(4096) for _ in range(24)]


def premium(product):
    time.sleep(TARIFF_SECONDS)  # tariff engine
    return 100 + len(product) * 7.5


@app.get("/start/<product>")
def start(product):
    with latency.labels("start").time():
        draft = Draft(product)
        token = secrets.token_urlsafe(12)
        sessions[token] = draft
        while KEEP is not None and len(sessions) > KEEP:
            sessions.popitem(last=False)
        draft.premium = premium(product)
        started.inc()
        return jsonify(session=token, premium=draft.premium)


@app.get("/sessions/<token>")
def show(token):
    draft = sessions.get(token)
    if draft is None:
        return jsonify(error="the session has ended"), 404
    return jsonify(product=draft.product, premium=draft.premium)


@app.get("/metrics")
def metrics():
    return generate_latest(), 200, {"Content-Type": CONTENT_TYPE_LATEST}
