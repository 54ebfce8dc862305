"""Stock of an article, with the price that the supplier quotes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge

from loadlens.demo.services.web import serve_threads

SUPPLIER_S = 0.008

HELD = Gauge("stock_lock_held", "Threads that hold the lock of the stock.")
WAITING = Gauge("stock_lock_waiting", "Threads that wait for the lock of the stock.")

lock = threading.Lock()
pieces = {"article-1": 12}


@contextmanager
def locked_stock() -> Iterator[dict[str, int]]:
    with WAITING.track_inprogress():
        lock.acquire()
    try:
        with HELD.track_inprogress():
            yield pieces
    finally:
        lock.release()


def price_of(article: str) -> int:
    """Stands for a call of the supplier's service."""
    time.sleep(SUPPLIER_S)
    return 100 * len(article)


def stock() -> str:
    with locked_stock() as counts:
        cents = price_of("article-1")
        return json.dumps({"pieces": counts["article-1"], "cents": cents})


def health() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_threads({"/stock": stock, "/health": health})
