import os
import threading
import time

from applicants import rows
from flask import Flask, jsonify
from patterns import EMAIL, NAME

app = Flask(__name__)
turn = threading.Lock()
CONSENT_SECONDS = 0.35 if os.environ.get("VARIANT") == "healthy" else 0.25


def consent_of(address):
    """The consent register, which another team runs."""
    time.sleep(CONSENT_SECONDS)
    return len(address) % 9 != 0


def problems(name, email):
    if not NAME.match(name):
        yield "name"
    if not EMAIL.match(email):
        yield "email"


@app.get("/import/next")
def import_next():
    with turn:
        name, email = next(rows)
    wrong = list(problems(name, email))
    agreed = consent_of(email)
    return jsonify(name=name, email=email, rejected=wrong, newsletter=agreed and not wrong)


@app.get("/version")
def version():
    return jsonify(version="1.9.2")
