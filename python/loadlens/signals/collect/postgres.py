"""A PostgreSQL server from inside: connections and what they wait for, locks, work done, cache, log, size."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from loadlens.model.readings import MonitorMetrics, PostgresMetrics
from loadlens.signals.collect.monitor import Monitor, Row, labels, reading
from loadlens.signals.collect.scene import Scene

if TYPE_CHECKING:
    from pg8000.native import Connection

_WITHIN_S = 2.0
_VERSION = "server_version"  # a parameter that the server reports
_MESSAGE = "M"  # the field of an error that holds its text
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
    PostgresMetrics.commits,
    PostgresMetrics.rollbacks,
    PostgresMetrics.deadlocks,
    PostgresMetrics.blocks_hit,
    PostgresMetrics.blocks_read,
    PostgresMetrics.rows_returned,
    PostgresMetrics.rows_inserted,
    PostgresMetrics.rows_updated,
    PostgresMetrics.rows_deleted,
    PostgresMetrics.temporary_files,
    PostgresMetrics.temporary_bytes,
    PostgresMetrics.log_bytes,
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
    """Settings of the postgres monitor."""

    monitor: ClassVar[str] = "postgres"
    databases: tuple[Database, ...]

    @property
    def waits_s(self) -> float:
        """For servers that do not answer, in the tick that runs and in the last one."""
        return 2 * _WITHIN_S * len(self.databases)


def wanted(scene: Scene) -> Databases | None:
    """Every PostgreSQL server of the testbed."""
    databases = tuple(Database(name, url) for name, url in scene.databases.items())
    return Databases(databases) if databases else None


class PostgresMonitor(Monitor):
    """The monitor; it holds one connection to each server."""

    name = "postgres"
    settings = Databases

    def __init__(self) -> None:
        self._databases: tuple[Database, ...] = ()
        self._connections: dict[str, Connection] = {}
        self._reported: set[tuple[str, str]] = set()
        self._ticks = 0

    def open(self, spec: Databases) -> None:
        """Connections are made at the first tick."""
        self._databases = spec.databases

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
                yield reading(
                    PostgresMetrics.connections, labels(service=database.service, state="unknown"), None
                )
                yield from self._report_once(database.service, _words(error))

    def close(self) -> None:
        """Close the connections."""
        for service in list(self._connections):
            self._drop(service)

    def _report_once(self, service: str, why: str) -> Iterator[Row]:
        if (service, why) not in self._reported:
            self._reported.add((service, why))
            yield reading(MonitorMetrics.missed, labels(service=service, why=why), None)

    def _connection(self, database: Database) -> Connection:
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


def _rows(service: str, connection: Connection, *, with_size: bool) -> Iterator[Row]:
    of = labels(service=service)
    longest = 0.0
    for state, wait, count, transaction_s in connection.run(_ACTIVITY):
        longest = max(longest, float(transaction_s))
        yield reading(
            PostgresMetrics.connections, labels(service=service, state=state, wait=wait), int(count)
        )
    yield reading(PostgresMetrics.longest_transaction_s, of, round(longest, 6))
    version = str(connection.parameter_statuses.get(_VERSION, ""))
    waiting, locks, wait_s = connection.run(locks_query(version))[0]
    yield reading(PostgresMetrics.locks_waited_for, of, int(waiting))
    yield reading(PostgresMetrics.locks_held, of, int(locks) - int(waiting))
    yield reading(
        PostgresMetrics.longest_lock_wait_s, of, None if wait_s is None else round(float(wait_s), 6)
    )
    for metric, value in zip(_WORK_METRICS, connection.run(_WORK)[0], strict=True):
        yield reading(metric, of, int(value))
    yield reading(PostgresMetrics.max_connections, of, int(connection.run(_LIMIT)[0][0]))
    if with_size:
        yield reading(PostgresMetrics.database_bytes, of, int(connection.run(_SIZE)[0][0]))


def locks_query(version: str) -> str:
    """Return the query for locks; waiting times exist since version 14. A version may be `17beta1`."""
    number = re.match(r"\d+", version)
    return _LOCKS if number is not None and int(number[0]) >= 14 else _LOCKS_BEFORE_14


def _words(error: Exception) -> str:
    """The server's own words, without its fields."""
    fields = error.args[0] if error.args else None
    message = fields.get(_MESSAGE) if isinstance(fields, dict) else None
    return str(message or error)[:200] or type(error).__name__
