"""The backends monitor: titles as servers of several versions write them, and a real server's own account."""

from __future__ import annotations

import itertools
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pg8000.native
import pytest

from loadlens.model.readings import BackendsMetrics, Labels
from loadlens.model.topology import Service
from loadlens.signals.collect import backends
from loadlens.signals.collect.backends import Backend, BackendsMonitor, Callers, Root, backend_of
from loadlens.signals.collect.monitor import Row
from loadlens.testbed import Testbed
from tests.end_to_end.testbed_cases import bed_of


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("postgres: shop orders [local] idle", Backend("shop orders [local]", 0, "idle", "")),
        (
            "postgres: 15/main: shop orders 127.0.0.1(40112) UPDATE waiting",
            Backend("15/main: shop orders 127.0.0.1", 40112, "waiting", "UPDATE"),
        ),
        (
            "postgres: shop orders ::1(40112) idle in transaction (aborted)",
            Backend("shop orders ::1", 40112, "idle in transaction", ""),
        ),
        (
            "postgres: the shop my db db.example.com(5) SELECT FOR UPDATE",
            Backend("the shop my db db.example.com", 5, "active", "SELECT FOR UPDATE"),
        ),
        (
            "postgres: shop orders [local] idle in transaction",
            Backend("shop orders [local]", 0, "idle in transaction", ""),
        ),
        ("postgres: shop orders 127.0.0.1(40112) startup", None),
        ("postgres: shop orders [local]", None),  # update_process_title is off
        ("postgres: checkpointer", None),
        ("postgres: autovacuum worker orders", None),
        ("postgres: walsender copy 10.0.0.7(40112) streaming 0/3000148", None),
        ("postgres: 15/main: walsender copy 10.0.0.7(40112) streaming 0/3000148", None),
        ("/usr/lib/postgresql/15/bin/postgres -D /var/lib/postgresql", None),
    ],
)
def test_a_title_says_who_is_connected_and_the_state(title: str, expected: Backend | None) -> None:
    assert backend_of(title) == expected


def test_a_sample_that_fails_is_a_row_once_and_sampling_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []

    def fail(pids: object) -> set[int]:
        looked.append(pids)
        raise OSError("no room")

    monkeypatch.setattr(backends, "with_descendants", fail)
    monkeypatch.setattr(backends, "LOOK_AGAIN_S", 0.0)
    with watching(Root("app", os.getpid())) as monitor:
        until = time.monotonic() + 20
        while len(looked) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    rows = list(monitor.tick(time.monotonic_ns(), last=False))

    assert len(looked) >= 3
    assert [(row.metric, row.value, Labels.of(row.labels).why) for row in rows] == [
        ("missed", None, "OSError: no room")
    ]


# --- a real server -----------------------------------------------------------------------------------------


@pytest.fixture
def bed() -> Iterator[Testbed]:
    service = Service("db", use="postgres", ports=("sql",))
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder:
        Path(folder).chmod(0o755)
        with bed_of(service, folder=Path(folder), marker=f"test-{secrets.token_hex(6)}") as up:
            up.start()
            yield up


def client(bed: Testbed) -> pg8000.native.Connection:
    port = bed.ports["db"][0]["sql"]
    return pg8000.native.Connection("lab", host="127.0.0.1", port=port, database="postgres")


@contextmanager
def watching(*roots: Root) -> Iterator[BackendsMonitor]:
    monitor = BackendsMonitor()
    monitor.open(Callers(roots))
    try:
        yield monitor
    finally:
        monitor.close()


def last_moment(rows: list[Row]) -> Counter[tuple[str, str]]:
    """States and commands at the last sample."""
    at = max(row.time_ns or 0 for row in rows if row.metric == BackendsMetrics.backends_in_all.name)
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        if row.metric == BackendsMetrics.backends.name and row.time_ns == at:
            own = Labels.of(row.labels)
            counts[own.state, own.kind] += int(row.value or 0)
    return counts


# What the server itself reports of its clients, in the words of titles; the one that asks is left out.
ACTIVITY = """
SELECT CASE WHEN wait_event_type = 'Lock' THEN 'waiting' ELSE state END,
       upper(split_part(query, ' ', 1)), count(*)
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1, 2
"""


@pytest.mark.slow
def test_who_holds_a_row_and_who_waits_for_it_are_those_that_the_server_reports(bed: Testbed) -> None:
    holder, reader, *waiters = (client(bed) for _ in range(5))
    holder.run("create table account (id int primary key, cents int)")
    holder.run("insert into account values (1, 0)")
    holder.run("begin")
    holder.run("update account set cents = cents + 1 where id = 1")
    change = "update account set cents = cents + 2 where id = 1"
    threads = [threading.Thread(target=waiter.run, args=(change,)) for waiter in waiters]
    threads.append(threading.Thread(target=reader.run, args=("select pg_sleep(4)",)))
    for thread in threads:
        thread.start()

    (server,) = (process.pid for process in bed.processes())
    with watching(Root("app", os.getpid()), Root("db", server)) as monitor, client(bed) as asking:
        time.sleep(1.0)
        before = asking.run(ACTIVITY)
        answered_ns, rows = time.monotonic_ns(), list[Row]()
        for _ in range(200):  # until a sample is of the time after the answer
            rows += monitor.tick(time.monotonic_ns(), last=False)
            if rows and (rows[-1].time_ns or 0) > answered_ns:
                break
            time.sleep(0.01)
        after = asking.run(ACTIVITY)
    assert before == after
    expected = {
        (state, "" if state.startswith("idle") else command): count for state, command, count in before
    }
    holder.run("rollback")
    for thread in threads:
        thread.join()

    assert expected == {("idle in transaction", ""): 1, ("waiting", "UPDATE"): 3, ("active", "SELECT"): 1}
    assert last_moment(rows) == {**expected, ("idle", ""): 1}  # the one that asks
    in_all = [row for row in rows if row.metric == BackendsMetrics.backends_in_all.name]
    assert {row.value for row in in_all} == {6}
    assert {(of.service, of.process) for of in (Labels.of(row.labels) for row in in_all)} == {
        ("db", "postgres")
    }
    gaps = [(b.time_ns or 0) - (a.time_ns or 0) for a, b in itertools.pairwise(in_all)]
    assert len(in_all) >= 4
    assert min(gaps) >= 0.09e9


@pytest.mark.slow
def test_connections_of_others_are_left_out(bed: Testbed) -> None:
    (server,) = (process.pid for process in bed.processes())
    with client(bed), subprocess.Popen(["sleep", "60"]) as other:
        with watching(Root("app", other.pid), Root("db", server)) as monitor:
            time.sleep(0.8)
            rows = list(monitor.tick(time.monotonic_ns(), last=False))
        other.kill()

    assert {row.value for row in rows if row.metric == BackendsMetrics.backends_in_all.name} == {0}
