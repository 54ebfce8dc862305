"""The postgres monitor beside a real server; what it must say is what the test itself does there."""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pg8000.native
import pytest

from loadlens.model.topology import Service
from loadlens.monitors.postgres import PostgresMonitor
from loadlens.testbed import Testbed
from tests.end_to_end.testbed_cases import bed_of
from tests.unit.monitors.reading import read, value

pytestmark = pytest.mark.end_to_end


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
    monitor.open({"databases": [{"service": "db", "url": bed.databases()["db"]}]})
    holder, waiter, writer = client(bed), client(bed), client(bed)
    holder.run("create table t (n int)")
    before = read(monitor)
    writer.run("insert into t select generate_series(1, 50)")
    holder.run("begin")
    holder.run("lock table t")

    thread = threading.Thread(target=lambda: waiter.run("select count(*) from t"))
    thread.start()
    try:
        time.sleep(1.5)
        writer.run("select 1")  # a session shows its counts once a second, when it has something to do
        during = read(monitor)
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
    inserted = [value(rows, "rows_inserted", service="db") for rows in (before, during)]
    assert inserted[1] - inserted[0] >= 50


def test_a_server_that_is_gone_gives_a_row_without_a_value(bed: Testbed) -> None:
    monitor = PostgresMonitor()
    monitor.open({"databases": [{"service": "db", "url": bed.databases()["db"]}]})
    read(monitor)
    bed.stop()

    rows = read(monitor)

    assert [(row.metric, row.value) for row in rows] == [("connections", None)]
