"""Invoices of a customer, for callers with an API key."""

from __future__ import annotations

import hashlib
import hmac
import json

from loadlens.demo.services.web import serve_async

SALT = b"invoices"
ROUNDS = 40_000
STORED = hashlib.pbkdf2_hmac("sha256", b"demo-key", SALT, ROUNDS)
INVOICES = [{"number": 1000 + n, "cents": 990 * (n + 1)} for n in range(10)]


def is_valid(key: str) -> bool:
    digest = hashlib.pbkdf2_hmac("sha256", key.encode(), SALT, ROUNDS)
    return hmac.compare_digest(digest, STORED)


async def invoices() -> str:
    # a real service takes the key from a header
    if not is_valid("demo-key"):
        raise PermissionError
    return json.dumps(INVOICES)


async def healthz() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_async({"/invoices": invoices, "/healthz": healthz})
