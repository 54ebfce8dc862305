"""Bail notices: the sum and the court of a case, printed for the counter."""

import hashlib
import itertools
import os
import threading

import requests
from flask import Flask, jsonify, request
from prometheus_flask_exporter import PrometheusMetrics

from log_setup import set_up

REGISTER = f"http://127.0.0.1:{int(os.environ['PORT']) + 2}"

app = Flask(__name__)
metrics = PrometheusMetrics(app, group_by="endpoint")
log = set_up()
local = threading.local()
numbers = itertools.count(41_000)


def register() -> requests.Session:
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
    return local.session


def seal(text: str) -> str:
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"county clerk", 400).hex()[:24]


@app.get("/notices/next")
def next_notice():
    number = next(numbers)
    answer = register().get(f"{REGISTER}/cases/{number}", timeout=10)
    answer.raise_for_status()
    case = answer.json()
    text = f"Case {number}, {case['court']}: bail is set at {case['sum']}."
    notice = {"number": number, "text": text, "seal": seal(text)}
    log.info("notice %s issued to %s, request %s", number, request.remote_addr, request.headers.get("X-Request-Id"))
    return jsonify(notice)


@app.get("/up")
@metrics.do_not_track()
def up():
    return "up\n"
