"""Downloads say how long they are, or that they are cut: no short file looks like a whole one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from loadlens import record
from loadlens.errors import RecordError
from loadlens.ui import finished, server
from loadlens.ui.server import Server
from tests.unit.ui.pages import KEPT, WITHIN_S, asked, events, sent, served

PLACE = f"/api/runs/{record.run_id(KEPT)}/trials/alone-users-1/block-1"


@pytest.fixture
def page() -> Iterator[Server]:
    with served(KEPT, is_run=True) as running:
        yield running


def parts_of(monkeypatch: pytest.MonkeyPatch, *parts: bytes, fault: Exception | None = None) -> None:
    """Let each table as CSV consist of these parts, and then of a fault."""

    def as_csv(*_: object) -> Iterator[bytes]:
        yield from parts
        if fault is not None:
            raise fault

    monkeypatch.setattr(finished, "as_csv", as_csv)


@pytest.mark.parametrize("name", ["samples.parquet", "points.csv"])
def test_a_file_made_in_one_part_has_a_length(page: Server, name: str) -> None:
    answer = asked(page, f"{PLACE}/{name}")

    assert int(answer.headers["Content-Length"]) == len(answer.body) > 0


def test_a_table_that_is_sent_part_by_part_has_an_end(page: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(monkeypatch, b"a,b\n", b"", b"1,2\n" * 50_000)

    answer = asked(page, f"{PLACE}/samples.csv")

    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert answer.is_whole
    assert answer.body == b"a,b\n" + b"1,2\n" * 50_000


def test_an_older_client_gets_a_table_without_chunks(page: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    parts_of(monkeypatch, b"a,b\n", b"1,2\n")
    own, token = f"Host: 127.0.0.1:{page.guard.port}\r\n", f"X-Loadlens-Token: {page.guard.token}\r\n"

    answer = sent(page, f"GET {PLACE}/samples.csv HTTP/1.0\r\n{own}{token}\r\n".encode())

    assert answer is not None
    assert "Transfer-Encoding" not in answer.headers
    assert answer.body == b"a,b\n1,2\n"


@pytest.mark.parametrize("fault", [RecordError("damaged"), ValueError("unforeseen")], ids=repr)
def test_a_fault_after_the_first_part_cuts_the_table_and_adds_nothing(
    page: Server, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    parts_of(monkeypatch, b"a,b\n", fault=fault)

    answer = asked(page, f"{PLACE}/samples.csv")

    assert answer.status == 200
    assert not answer.is_whole
    assert answer.body == b"a,b\n"


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (RecordError("damaged"), 500),
        (ValueError("unforeseen"), 500),
        (FileNotFoundError("sealed meanwhile"), 404),
    ],
    ids=repr,
)
def test_a_fault_before_the_first_part_is_an_answer_of_its_own(
    page: Server, monkeypatch: pytest.MonkeyPatch, fault: Exception, status: int
) -> None:
    parts_of(monkeypatch, fault=fault)

    assert asked(page, f"{PLACE}/samples.csv").status == status


def test_a_slow_reader_gets_the_whole_table_while_it_takes_some_of_it_within_the_limit(
    page: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 MiB are more than the buffers of two sockets hold; reading them takes five limits."""
    limit_s, size = 0.4, 24 << 20
    monkeypatch.setattr(server, "SEND_WITHIN_S", limit_s)
    parts_of(monkeypatch, bytes(size))
    own, token = f"Host: 127.0.0.1:{page.guard.port}\r\n", f"X-Loadlens-Token: {page.guard.token}\r\n"

    received, end = 0, b""
    with socket.create_connection(("127.0.0.1", page.guard.port), timeout=WITHIN_S) as connection:
        connection.sendall(f"GET {PLACE}/samples.csv HTTP/1.1\r\n{own}{token}\r\n".encode())
        while part := connection.recv(1 << 20):
            received += len(part)
            end = (end + part)[-5:]
            time.sleep(5 * limit_s * len(part) / size)

    assert received > size
    assert end == b"0\r\n\r\n"


def test_a_server_that_closes_waits_until_its_streams_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()

    def send_events(*_: object) -> None:
        begun.set()
        time.sleep(0.3)
        ended.set()

    begun = threading.Event()
    monkeypatch.setattr(server._Handler, "_send_events", send_events)
    with served(KEPT, is_run=True) as running:
        reader = threading.Thread(target=lambda: list(events(running, record.run_id(KEPT))))
        reader.start()
        assert begun.wait(WITHIN_S)
    was_ended = ended.is_set()
    reader.join()

    assert was_ended
