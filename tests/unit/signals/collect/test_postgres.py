"""The postgres monitor on a real server; expected readings follow from what the test does there."""

from __future__ import annotations

import json
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pg8000.native
import pytest

from loadlens.model.readings import METRICS
from loadlens.model.topology import Service
from loadlens.signals.collect.postgres import Database, Databases, PostgresMonitor, locks_query
from loadlens.testbed import Testbed
from tests.end_to_end.testbed_cases import bed_of
from tests.unit.signals.collect.test_monitor import read, value

pytestmark = pytest.mark.slow


@pytest.fixture
def bed() -> Iterator[Testbed]:
    service = Service("db", use="postgres", ports=("sql",), settings=(("max_connections", "23"),))
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder:
        Path(folder).chmod(0o755)
        with bed_of(service, folder=Path(folder), marker=f"test-{secrets.token_hex(6)}") as up:
            up.start()
            yield up


def client(bed: Testbed) -> pg8000.native.Connection:
    port = bed.ports["db"][0]["sql"]
    return pg8000.native.Connection("lab", host="127.0.0.1", port=port, database="postgres")


def test_it_sees_who_waits_for_a_lock_and_what_was_done(bed: Testbed) -> None:
    monitor = PostgresMonitor()
    monitor.open(Databases((Database("db", bed.databases()["db"]),)))
    holder, waiter, writer = client(bed), client(bed), client(bed)
    holder.run("create table t (n int)")
    before = read(monitor)
    writer.run("insert into t select generate_series(1, 50)")
    holder.run("begin")
    holder.run("lock table t")

    thread = threading.Thread(target=lambda: waiter.run("select count(*) from t"))
    thread.start()
    try:
        until = time.monotonic() + 20
        while True:
            time.sleep(0.2)
            writer.run("select 1")  # a session shows its counts once a second, when it has something to do
            during = read(monitor)
            waited_s = value(during, "longest_lock_wait_s", service="db")
            grown = value(during, "rows_inserted", service="db") - value(
                before, "rows_inserted", service="db"
            )
            if (waited_s >= 1.0 and grown >= 50) or time.monotonic() > until:
                break
    finally:
        holder.run("commit")
        thread.join()
        holder.close()
        waiter.close()
        writer.close()
        monitor.close()

    assert value(before, "max_connections", service="db") == 23
    assert value(before, "locks_waited_for", service="db") == 0
    assert value(during, "locks_waited_for", service="db") == 1
    assert value(during, "connections", service="db", state="active", wait="Lock") == 1
    assert value(during, "connections", service="db", state="idle in transaction", wait="idle") == 1
    assert value(during, "longest_transaction_s", service="db") >= 1.0
    assert 1.0 <= value(during, "longest_lock_wait_s", service="db") < 30
    assert value(before, "longest_lock_wait_s", service="db") == 0
    assert value(during, "locks_held", service="db") > value(before, "locks_held", service="db")
    logged = [value(rows, "log_bytes", service="db") for rows in (before, during)]
    assert logged[1] - logged[0] >= 50 * 28  # a row of one integer and its header, at least
    inserted = [value(rows, "rows_inserted", service="db") for rows in (before, during)]
    assert inserted[1] - inserted[0] >= 50


def test_a_server_that_is_gone_gives_a_row_without_a_value(bed: Testbed) -> None:
    monitor = PostgresMonitor()
    monitor.open(Databases((Database("db", bed.databases()["db"]),)))
    read(monitor)
    bed.stop()

    rows = read(monitor)

    assert [(row.metric, row.value) for row in rows] == [("connections", None), ("missed", None)]
    assert json.loads(rows[1].labels)["why"]
    assert [row.metric for row in read(monitor)].count(
        "missed"
    ) <= 1  # the next try may fail for another reason
    assert [row.metric for row in read(monitor)] == ["connections"]  # and then it has been said


def test_a_sort_without_memory_for_it_shows_as_temporary_files(bed: Testbed) -> None:
    monitor = PostgresMonitor()
    monitor.open(Databases((Database("db", bed.databases()["db"]),)))
    before = read(monitor)
    session = client(bed)
    session.run("set work_mem = '64kB'")
    session.run("select count(*) from (select n from generate_series(1, 100000) n order by n desc) s")
    time.sleep(1.1)  # a session shows its counts once a second, when it has something to do
    session.run("select 1")
    session.close()

    idle = client(bed)
    after = read(monitor, last=True)
    idle.close()
    monitor.close()

    grown = {
        metric: value(after, metric, service="db") - value(before, metric, service="db")
        for metric in ("temporary_files", "temporary_bytes", "commits", "rollbacks")
    }
    assert grown["temporary_files"] >= 1
    assert grown["temporary_bytes"] >= 100_000 * 4
    assert grown["commits"] >= 3
    assert grown["rollbacks"] == 0
    assert value(after, "database_bytes", service="db") > 1_000_000
    assert {(row.metric, row.unit) for row in after} == {
        (metric.name, metric.unit) for metric in METRICS["postgres"]
    }


@pytest.mark.parametrize(
    ("version", "has_times"),
    [  # pg_locks.waitstart is new in 14; versions as the servers and packages of Debian report them
        ("13.14", False),
        ("14", True),
        ("15.18 (Debian 15.18-0+deb12u1)", True),
        ("16beta1", True),
        ("17devel", True),
        ("", False),
    ],
)
def test_waiting_times_are_read_from_every_version_that_has_them(version: str, has_times: bool) -> None:
    assert ("waitstart" in locks_query(version)) == has_times
