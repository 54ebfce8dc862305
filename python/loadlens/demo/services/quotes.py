"""Quotes of a currency exchange, with a table of rates that is computed again and again."""

from __future__ import annotations

import asyncio
import hashlib
import json

from loadlens.demo.services.web import serve_async

REFRESH_EVERY_S = 1.5
ROUNDS = 600_000
EXCHANGE_S = 0.060

rates = {"EUR": 1.0}
background: set[asyncio.Task[None]] = set()


def compute_rates() -> dict[str, float]:
    """Stands for some 200 ms of arithmetic."""
    digest = hashlib.pbkdf2_hmac("sha256", b"rates", b"salt", ROUNDS)
    return {"EUR": 1.0, "CHF": 0.9 + digest[0] / 2560}


async def refresh() -> None:
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due += REFRESH_EVERY_S
        await asyncio.sleep(due - loop.time())
        rates.update(compute_rates())


async def quote() -> str:
    if not background:
        background.add(asyncio.create_task(refresh()))
    await asyncio.sleep(EXCHANGE_S)  # stands for a call of the exchange
    return json.dumps(rates)


async def healthz() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_async({"/quote": quote, "/healthz": healthz})
