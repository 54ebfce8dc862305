"""A row of a real PostgreSQL server that a service's requests wait for, explained with the URL alone."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from loadlens.measure import whole_run
from loadlens.model.topology import Service
from loadlens.record import open_run
from tests.calm import calmly
from tests.end_to_end.explaining import explained, free_port
from tests.end_to_end.testbed_cases import bed_of

SERVICE = Path(__file__).with_name("row_service.py")


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """Start the server and the service; yield the URL, and the server's pid."""
    with tempfile.TemporaryDirectory(prefix="loadlens-test-") as folder:
        Path(folder).chmod(0o755)
        database = Service("db", use="postgres", ports=("sql",))
        with bed_of(database, folder=Path(folder), marker=f"test-{secrets.token_hex(6)}") as bed:
            bed.start()
            port = free_port()
            command = [sys.executable, str(SERVICE), str(port), str(bed.ports["db"][0]["sql"])]
            with subprocess.Popen(command) as service:
                try:
                    wait_for(f"http://127.0.0.1:{port}/none")
                    yield f"http://127.0.0.1:{port}/count", bed.processes()[0].pid
                finally:
                    service.kill()


def wait_for(url: str) -> None:
    """Until it is answered, with 404."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no answer from {url}")


@pytest.fixture(scope="module")
def place() -> Iterator[tuple[str, int]]:
    with serving() as up:
        yield up


def test_a_row_for_which_requests_wait_is_named_with_the_command(
    place: tuple[str, int], tmp_path: Path
) -> None:
    url, server = place

    def check() -> None:
        out = tmp_path / secrets.token_hex(4)
        # Beyond eight users the service's own short queue for connections drops some of them.
        bounds = ("--budget", "60s", "--max-users", "8")
        assert_named(explained(url, *bounds, "--no-stacks", "-o", str(out)), out, server)

    calmly(check)


def assert_named(answer: dict[str, Any], out: Path, server: int) -> None:
    assert any(text.startswith(f"calls {server} (postgres)") for text in answer["found"])
    finding = next(each for each in answer["findings"] if each["rule"] == "db.lock")
    assert finding["grade"] in ("probable", "strong")
    assert finding["statement"].endswith("wait for it in UPDATE")
    assert "the transaction is idle" in str(finding["evidence"])
    # The row is held for 20 ms and three statements: hardly more than 1 / 0.02 s go through.
    assert 25 < answer["capacity"]["point"] < 50
    (curve,) = whole_run.facts(open_run(out)).curves
    programs = {process.program for process in curve.steps[-1].processes if process.is_called}
    assert programs == {"postgres"}
