"""A balancer's log, counted by backend and status. Sums are by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadlens.signals.collect.balancer import BalancerLog, BalancerMonitor, Logs
from tests.unit.signals.collect.test_monitor import read, value

BACKENDS = {"127.0.0.1:8001": "app.1", "127.0.0.1:8002": "app.2"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "access.jsonl"


@pytest.fixture
def monitor(file: Path) -> BalancerMonitor:
    opened = BalancerMonitor()
    opened.open(Logs((BalancerLog("lb", str(file), BACKENDS),)))
    return opened


def line(backend: str, status: int, seconds: float, backend_s: str, connect_s: str = "0.001") -> str:
    content = {
        "backend": backend,
        "status": status,
        "seconds": seconds,
        "backend_s": backend_s,
        "connect_s": connect_s,
    }
    return json.dumps(content) + "\n"


def test_requests_and_times_add_up_by_backend_and_status(monitor: BalancerMonitor, file: Path) -> None:
    file.write_text(
        line("127.0.0.1:8001", 200, 0.5, "0.25")
        + line("127.0.0.1:8001", 200, 0.25, "0.125", "0.002")
        + line("127.0.0.1:8002", 502, 0.75, "-", "-")
    )
    first = read(monitor)
    with file.open("a") as growing:
        growing.write(line("127.0.0.1:8001", 200, 1.0, "1.0"))
    second = read(monitor)

    labels = {"service": "lb", "backend": "app.1", "status": "200"}
    assert value(first, "requests", **labels) == 2
    assert value(first, "request_seconds", **labels) == 0.75
    assert value(first, "backend_seconds", **labels) == 0.375
    assert value(first, "connect_seconds", **labels) == 0.003
    assert value(first, "backend_seconds", service="lb", backend="app.2", status="502") == 0
    assert (value(second, "requests", **labels), value(second, "request_seconds", **labels)) == (3, 1.75)


def test_times_at_several_backends_are_added_and_no_backend_is_said(
    monitor: BalancerMonitor, file: Path
) -> None:
    file.write_text(
        line("127.0.0.1:8001, 127.0.0.1:8002", 200, 1.0, "0.25, 0.5") + line("", 400, 0.001, "", "")
    )

    rows = read(monitor)

    both = "127.0.0.1:8001, 127.0.0.1:8002"
    assert value(rows, "backend_seconds", service="lb", backend=both, status="200") == 0.75
    assert value(rows, "requests", service="lb", backend="none", status="400") == 1


def test_lines_that_cannot_be_read_are_counted(monitor: BalancerMonitor, file: Path) -> None:
    file.write_text("{\n" + '{"backend": "x"}\n' + line("127.0.0.1:8001", 200, 1.0, "1.0"))

    assert value(read(monitor), "faulty_lines", service="lb") == 2
