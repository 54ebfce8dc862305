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
        ("sqlalchemy.exc.TimeoutError: QueuePool limit of size 5 overflow 10 reached", ["pool"]),
        ("HikariPool-1 - Connection is not available, request timed out after 30000ms.", ["pool"]),
        ("psycopg_pool.PoolTimeout: couldn't get a connection after 2.00 sec", ["pool"]),
        ("** connection not available and request was dropped from queue after 1280ms.", ["pool"]),
        ("Error: timeout exceeded when trying to connect", ["pool"]),
        ("no database connection within 2.0 s", ["pool"]),
        ("no connection in use, 5 idle", []),
        ("KnexTimeoutError: Knex: Timeout acquiring a connection. The pool is probably full.", ["pool"]),
        ("FATAL: sorry, too many clients already", ["pool"]),
        ("rpc error: context deadline exceeded", ["timeout"]),
        ('{"error": "planning took too long"}', ["timeout"]),
        ("upstream timed out (110: Connection timed out) while reading", ["timeout"]),
        ("concurrent.futures._base.TimeoutError", ["timeout"]),
        ("    return requests.get(url, timeout=5)", []),
        ("    at listOnTimeout (node:internal/timers:573:17)", []),
        ("GET /jobs?time_limit=30 HTTP/1.1", []),
        ("RuntimeError: can't start new thread", ["threads"]),
        ("java.lang.OutOfMemoryError: Java heap space", ["memory"]),
        ("plan allows 1500 an hour; next period begins at 04:00", ["quota"]),
        ("429 Too Many Requests", ["quota"]),
        ("monthly credits used up", ["quota"]),
        ("request timed out: limit 30 s exceeded", ["timeout"]),
        ("write: Disk quota exceeded", []),
        ("GET /account/quota 500", []),
        ("rate limit: 500/s, flush at most every second", []),
        ("retry budget exhausted", []),
        ("at most 20 rows of the hour are shown", []),
        ("GET /pool 200", []),
        ("connection pool created with 5 connections", []),
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


def test_an_answer_stands_for_those_of_its_status_and_a_log_that_says_the_same_counts_alone() -> None:
    locked = ('{"error":"database is locked"}', 40)

    (of_answers,) = signs(["GET / 500\n"], [locked, ("no words", 3), locked])
    (of_log,) = signs(["database is locked\n"], [locked])

    assert (of_answers.kind, of_answers.count, of_answers.source) == ("lock", 80, "answers")
    assert of_answers.text == '"database is locked" stands in 80 of the answers'
    assert (of_log.count, of_log.source) == (1, "log")
