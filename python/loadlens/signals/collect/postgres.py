"""A PostgreSQL server from inside: connections and what they wait for, locks, work done, cache, log, size."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from loadlens.signals.collect.monitor import Metric, Row, labels
from loadlens.signals.collect.scene import Scene

_WITHIN_S = 2.0
# Connections of clients, but not ours; a backend that runs waits for nothing.
_ACTIVITY = """
SELECT coalesce(state, 'unknown'),
       CASE WHEN state = 'active' THEN coalesce(wait_event_type, 'none') ELSE 'idle' END,
       count(*), coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1, 2
"""
_LOCKS = """
SELECT count(*) FILTER (WHERE NOT granted), count(*),
       coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8
FROM pg_locks
"""
_LOCKS_BEFORE_14 = "SELECT count(*) FILTER (WHERE NOT granted), count(*), NULL FROM pg_locks"
_WORK = """
SELECT sum(xact_commit), sum(xact_rollback), sum(deadlocks), sum(blks_hit), sum(blks_read),
       sum(tup_returned), sum(tup_inserted), sum(tup_updated), sum(tup_deleted),
       sum(temp_files), sum(temp_bytes), (pg_current_wal_insert_lsn() - '0/0')::bigint
FROM pg_stat_database
"""
_WORK_METRICS = (
    Metric("commits", "", "counter", "transactions that were kept"),
    Metric("rollbacks", "", "counter", "transactions that were not"),
    Metric("deadlocks", "", "counter", "of these, those that were ended to break a circle"),
    Metric("blocks_hit", "", "counter", "blocks found in the server's own cache"),
    Metric("blocks_read", "", "counter", "blocks asked of the system"),
    Metric("rows_returned", "", "counter", "rows read by scans"),
    Metric("rows_inserted", "", "counter", "rows inserted"),
    Metric("rows_updated", "", "counter", "rows updated"),
    Metric("rows_deleted", "", "counter", "rows deleted"),
    Metric("temporary_files", "", "counter", "files made because memory for a sort or a hash was short"),
    Metric("temporary_bytes", "bytes", "counter", "written to them"),
    Metric("log_bytes", "bytes", "counter", "written to the write-ahead log"),
)
METRICS: Final = (
    Metric(
        "connections",
        "",
        "gauge",
        "connections of clients by `state` (`active`, `idle`, `idle in transaction` …) and, if active, "
        "by `wait`: `Lock`, `IO`, `LWLock` …, or `none`, they run",
    ),
    Metric("max_connections", "", "gauge", "how many there may be"),
    Metric("longest_transaction_s", "s", "gauge", "age of the oldest open transaction"),
    Metric("locks_held", "", "gauge", "locks that are held"),
    Metric("locks_waited_for", "", "gauge", "locks that were asked for and not granted yet"),
    Metric("longest_lock_wait_s", "s", "gauge", "how long the first of these has been waited for"),
    *_WORK_METRICS,
    Metric("database_bytes", "bytes", "gauge", "size of the database; read each fifth tick and at the end"),
)
_SIZE_EVERY = 5  # ticks: the server looks at every file for it
_LIMIT = "SELECT current_setting('max_connections')::int"
_SIZE = "SELECT pg_database_size(current_database())"


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
        self._told: set[tuple[str, str]] = set()
        self._ticks = 0

    def open(self, spec: Mapping[str, Any]) -> None:
        """Connections are made at the first tick."""
        self._databases = tuple(Database(**database) for database in spec["databases"])

    def tick(self, now_ns: int, *, last: bool) -> Iterable[Row]:
        """Every metric of every server once; a server that does not answer has one row without a value."""
        from pg8000.exceptions import Error

        with_size = last or self._ticks % _SIZE_EVERY == 0
        self._ticks += 1
        for database in self._databases:
            try:
                yield from list(_rows(database.service, self._connection(database), with_size=with_size))
            except (Error, OSError) as error:
                self._drop(database.service)
                yield Row("connections", labels(service=database.service, state="unknown"), "", None)
                yield from self._tell_once(database.service, _words(error))

    def close(self) -> None:
        """Close the connections."""
        for service in list(self._connections):
            self._drop(service)

    def _tell_once(self, service: str, why: str) -> Iterator[Row]:
        if (service, why) not in self._told:
            self._told.add((service, why))
            yield Row("missed", labels(service=service, why=why), "", None)

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


def _rows(service: str, connection: Any, *, with_size: bool) -> Iterator[Row]:
    of = labels(service=service)
    longest = 0.0
    for state, wait, count, transaction_s in connection.run(_ACTIVITY):
        longest = max(longest, float(transaction_s))
        yield Row("connections", labels(service=service, state=state, wait=wait), "", int(count))
    yield Row("longest_transaction_s", of, "s", round(longest, 6))
    waiting, locks, wait_s = connection.run(_locks_of(connection))[0]
    yield Row("locks_waited_for", of, "", int(waiting))
    yield Row("locks_held", of, "", int(locks) - int(waiting))
    yield Row("longest_lock_wait_s", of, "s", None if wait_s is None else round(float(wait_s), 6))
    for metric, value in zip(_WORK_METRICS, connection.run(_WORK)[0], strict=True):
        yield Row(metric.name, of, metric.unit, int(value))
    yield Row("max_connections", of, "", int(connection.run(_LIMIT)[0][0]))
    if with_size:
        yield Row("database_bytes", of, "bytes", int(connection.run(_SIZE)[0][0]))


def _locks_of(connection: Any) -> str:
    """How long a lock is waited for is known since version 14."""
    version = str(connection.parameter_statuses.get("server_version", "0"))
    return _LOCKS if int(version.partition(".")[0]) >= 14 else _LOCKS_BEFORE_14


def _words(error: Exception) -> str:
    """The server's own words, without its fields."""
    fields = error.args[0] if error.args else None
    said = fields.get("M") if isinstance(fields, dict) else None
    return str(said or error)[:200] or type(error).__name__
