"""Grading results of spice lots, for buyers who ask before they bid."""

import os
import threading
import time
import zlib
from functools import wraps

from flask import Flask, abort, g, jsonify, request

from laboratory import Laboratory

VARIANT = os.environ.get("VARIANT", "flawed")
ORIGINS = ("Cochin", "Zanzibar", "Kerala", "Ambon", "Muntok", "Kampot")
SPICES = ("pepper", "clove", "nutmeg", "cardamom", "turmeric", "mace")

app = Flask(__name__)
laboratory = Laboratory(f"http://127.0.0.1:{int(os.environ.get('PORT', '8080')) + 1}")


class TokenBucket:
    """Tokens that refill at a steady rate, up to a burst."""

    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = float(burst)
        self._at = time.monotonic()
        self._guard = threading.Lock()

    def take(self) -> float:
        """Take a token and return 0, or return the seconds until there is one."""
        with self._guard:
            now = time.monotonic()
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
            if self._tokens >= 1:
                self._tokens -= 1
                return 0.0
            return (1 - self._tokens) / self.rate


class Plans:
    """One bucket for each buyer, as their plan has it."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}
        self._guard = threading.Lock()

    def bucket(self, buyer: str) -> TokenBucket:
        with self._guard:
            if buyer not in self._buckets:
                self._buckets[buyer] = new_bucket()
            return self._buckets[buyer]


def new_bucket() -> TokenBucket:
    if VARIANT != "flawed":
        return TokenBucket(rate=5000, burst=500)
    return TokenBucket(rate=60, burst=30)


plans = Plans()


def metered(view):
    """Answer 429 to a buyer who is over the plan."""

    @wraps(view)
    def inner(*args, **kwargs):
        buyer = request.headers.get("X-Buyer") or request.remote_addr or "unknown"
        wait = plans.bucket(buyer).take()
        if wait:
            answer = jsonify(error="too many requests", buyer=buyer)
            answer.status_code = 429
            answer.headers["Retry-After"] = str(max(1, round(wait)))
            return answer
        g.buyer = buyer
        return view(*args, **kwargs)

    return inner


def lot(number: int) -> dict:
    seed = zlib.crc32(str(number).encode())
    return {
        "lot": number,
        "spice": SPICES[seed % len(SPICES)],
        "origin": ORIGINS[seed // 7 % len(ORIGINS)],
        "bags": 10 + seed % 190,
        "season": 2021 + seed % 5,
    }


@app.get("/healthz")
def healthz():
    return jsonify(status="ok")


@app.get("/lots/<int:number>")
@metered
def show(number: int):
    if number > 50_000:
        abort(404)
    found = lot(number)
    sample = laboratory.sample(number)
    grade = "A" if sample["volatile_oil"] > 3.0 and sample["moisture"] < 11.5 else "B"
    return jsonify(found | {"sample": sample, "grade": grade})


@app.errorhandler(404)
def missing(_error):
    return jsonify(error="no such lot"), 404
