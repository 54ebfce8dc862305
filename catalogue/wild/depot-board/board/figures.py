"""Figures of a depot, from the scans of the week."""

import logging
import random
import sqlite3
import threading
import time
from functools import lru_cache
from typing import Any

from prometheus_client import Counter, Histogram

from .settings import DEPOTS, Settings, load

log = logging.getLogger("board.figures")

QUERIES = Histogram("board_figures_query_seconds", "Time to compute the figures of a depot", ["depot"])
READS = Counter("board_figures_reads_total", "Reads of figures", ["depot"])

TOTALS = """
    select lane, count(*), count(distinct pallet), sum(kilos), avg(late_min), sum(late_min > 15)
    from scans where depot = ? group by lane order by sum(kilos) desc
"""

_local = threading.local()


def _connection(settings: Settings) -> sqlite3.Connection:
    if not hasattr(_local, "db"):
        _local.db = sqlite3.connect(f"file:{settings.database}?mode=ro", uri=True)
    return _local.db


def compute(depot: str) -> dict[str, Any]:
    with QUERIES.labels(depot).time():
        rows = _connection(load()).execute(TOTALS, (depot,)).fetchall()
    kilos = sum(row[3] for row in rows)
    return {
        "depot": depot,
        "scans": sum(row[1] for row in rows),
        "tonnes": round(kilos / 1000, 1),
        "late": sum(row[5] for row in rows),
        "lanes": [
            {"lane": lane, "pallets": pallets, "kilos": round(weight), "late_min": round(late, 1)}
            for lane, _, pallets, weight, late, _ in rows[:8]
        ],
        "as_of": time.strftime("%H:%M:%S"),
    }


@lru_cache(maxsize=64)
def _figures_at(depot: str, tick: int) -> dict[str, Any]:
    return compute(depot)


class TickingFigures:
    """Figures kept for a tick of the clock."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def get(self, depot: str) -> dict[str, Any]:
        READS.labels(depot).inc()
        figures = _figures_at(depot, int(time.time() // self.settings.ttl_s))
        return figures


class RefreshedFigures:
    """Figures renewed in the background, one depot after the other."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.known = {depot: compute(depot) for depot in DEPOTS}
        threading.Thread(target=self._renew, name="figures", daemon=True).start()

    def _renew(self) -> None:
        while True:
            for depot in DEPOTS:
                time.sleep(self.settings.ttl_s / len(DEPOTS) * random.uniform(0.9, 1.1))
                try:
                    self.known[depot] = compute(depot)
                except sqlite3.Error:
                    log.exception("could not renew %s", depot)

    def get(self, depot: str) -> dict[str, Any]:
        READS.labels(depot).inc()
        return self.known[depot]
