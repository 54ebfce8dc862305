"""Kinds of lines in a server's log, in the words of several languages."""

from __future__ import annotations

import pytest

from loadlens.signals.read.log_lines import signs


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("dial tcp 10.0.0.7:80: connect: cannot assign requested address", ["ports"]),
        ("Error: connect EADDRNOTAVAIL 127.0.0.1:80 - Local (127.0.0.1:0)", ["ports"]),
        ("connect() to 10.0.0.7:80 failed (99: Cannot assign requested address) to upstream", ["ports"]),
        ("httpx.ConnectError: [Errno 99] Cannot assign requested address", ["ports"]),
        ("java.net.NoRouteToHostException: Cannot assign requested address", ["ports"]),
        ("bind() to 10.0.0.8:80 failed (99: Cannot assign requested address)", []),  # not our address
        ("listen tcp 10.0.0.8:80: bind: cannot assign requested address", []),
        ("accept4: too many open files", ["descriptors"]),
        ("Error: connect EMFILE 127.0.0.1:80", ["descriptors"]),
        ("sqlite3.OperationalError: database is locked", ["lock"]),
        ("GET / 200", []),
    ],
)
def test_a_line_is_of_one_kind_or_of_none(line: str, kinds: list[str]) -> None:
    kinds_seen = signs([f"started\n{line}\nGET / 200\n"])

    assert [sign.kind for sign in kinds_seen] == kinds
    assert all(sign.sample in line for sign in kinds_seen)


def test_lines_are_counted_over_all_logs() -> None:
    line = "connect: cannot assign requested address\n"

    (sign,) = signs([2 * line, "GET / 200\n", 3 * line])

    assert sign.count == 5
