"""A PostgreSQL server from inside: connections and what they wait for, locks, work done, cache, size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from loadlens.monitors.reading import Row, labels
from loadlens.monitors.scene import Scene

_WITHIN_S = 2.0
# Connections of clients, but not ours; a backend that runs waits for nothing.
_ACTIVITY = """
SELECT coalesce(state, 'unknown'),
       CASE WHEN state = 'active' THEN coalesce(wait_event_type, 'none') ELSE 'idle' END,
       count(*), coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1, 2
"""
_LOCKS = "SELECT count(*) FILTER (WHERE NOT granted) FROM pg_locks"
_WORK = """
SELECT sum(xact_commit), sum(xact_rollback), sum(deadlocks), sum(blks_hit), sum(blks_read),
       sum(tup_returned), sum(tup_inserted), sum(tup_updated), sum(tup_deleted), sum(temp_bytes)
FROM pg_stat_database
"""
_WORK_METRICS = (
    ("commits", ""),
    ("rollbacks", ""),
    ("deadlocks", ""),
    ("blocks_hit", ""),
    ("blocks_read", ""),
    ("rows_returned", ""),
    ("rows_inserted", ""),
    ("rows_updated", ""),
    ("rows_deleted", ""),
    ("temporary_bytes", "bytes"),
)
_LIMITS = "SELECT current_setting('max_connections')::int, pg_database_size(current_database())"


@dataclass(frozen=True, slots=True)
class Database:
    """One server."""

    service: str
    url: str  # postgresql://user@host:port/database


@dataclass(frozen=True, slots=True)
class Databases:
    """What the postgres monitor is asked for."""

    monitor: ClassVar[str] = "postgres"
    databases: tuple[Database, ...]


def wanted(scene: Scene) -> Databases | None:
    """Every PostgreSQL server of the testbed."""
    found = tuple(Database(name, url) for name, url in scene.databases.items())
    return Databases(found) if found else None


class PostgresMonitor:
    """The monitor; it holds one connection to each server."""

    name = "postgres"

    def __init__(self) -> None:
        self._databases: tuple[Database, ...] = ()
        self._connections: dict[str, Any] = {}

    def open(self, spec: Mapping[str, Any]) -> None:
        """Connections are made at the first tick."""
        self._databases = tuple(Database(**database) for database in spec["databases"])

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric of every server once; a server that does not answer has one row without a value."""
        from pg8000.exceptions import Error

        for database in self._databases:
            try:
                yield from list(_rows(database.service, self._connection(database)))
            except (Error, OSError):
                self._drop(database.service)
                yield Row("connections", labels(service=database.service, state="unknown"), "", None)

    def close(self) -> None:
        """Close the connections."""
        for service in list(self._connections):
            self._drop(service)

    def _connection(self, database: Database) -> Any:
        if database.service not in self._connections:
            import pg8000.native

            parts = urlsplit(database.url)
            self._connections[database.service] = pg8000.native.Connection(
                parts.username or "postgres",
                host=parts.hostname or "127.0.0.1",
                port=parts.port or 5432,
                database=parts.path.lstrip("/"),
                timeout=_WITHIN_S,
                application_name="loadlens",
            )
        return self._connections[database.service]

    def _drop(self, service: str) -> None:
        from pg8000.exceptions import Error

        connection = self._connections.pop(service, None)
        if connection is not None:
            with contextlib.suppress(Error, OSError):  # it was broken
                connection.close()


def _rows(service: str, connection: Any) -> Iterator[Row]:
    of = labels(service=service)
    longest = 0.0
    for state, wait, count, transaction_s in connection.run(_ACTIVITY):
        longest = max(longest, float(transaction_s))
        yield Row("connections", labels(service=service, state=state, wait=wait), "", int(count))
    yield Row("longest_transaction_s", of, "s", round(longest, 6))
    yield Row("locks_waited_for", of, "", int(connection.run(_LOCKS)[0][0]))
    for (metric, unit), value in zip(_WORK_METRICS, connection.run(_WORK)[0], strict=True):
        yield Row(metric, of, unit, int(value))
    most, size = connection.run(_LIMITS)[0]
    yield Row("max_connections", of, "", int(most))
    yield Row("database_bytes", of, "bytes", int(size))
