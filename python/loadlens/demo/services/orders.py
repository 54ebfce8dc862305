"""Open orders, read from a database through a pool of connections."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import Gauge

from loadlens.demo.services.web import serve_threads

POOL_SIZE = 3
QUERY_S = 0.015

# The names are those of OpenTelemetry's conventions for database clients.
USAGE = Gauge("db_client_connections_usage", "Connections by state.", ["pool_name", "state"])
MOST = Gauge("db_client_connections_max", "Most connections that may be open.", ["pool_name"])
PENDING = Gauge("db_client_connections_pending_requests", "Requests without a connection.", ["pool_name"])


class Connection:
    """Stands for a connection to a database on another machine."""

    def query(self) -> list[dict[str, object]]:
        time.sleep(QUERY_S)
        return [{"order": 70_000 + n, "state": "open"} for n in range(10)]


class Pool:
    def __init__(self, name: str, size: int) -> None:
        self._free: queue.LifoQueue[Connection] = queue.LifoQueue()
        for _ in range(size):
            self._free.put(Connection())
        self._pending = PENDING.labels(name)
        self._used, self._idle = USAGE.labels(name, "used"), USAGE.labels(name, "idle")
        self._idle.set(size)
        MOST.labels(name).set(size)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        with self._pending.track_inprogress():
            connection = self._free.get()
        self._used.inc()
        self._idle.dec()
        try:
            yield connection
        finally:
            self._used.dec()
            self._idle.inc()
            self._free.put(connection)


pool = Pool("orders", POOL_SIZE)


def orders() -> str:
    with pool.connection() as connection:
        rows = connection.query()
    return json.dumps(rows)


def health() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_threads({"/orders": orders, "/health": health})
