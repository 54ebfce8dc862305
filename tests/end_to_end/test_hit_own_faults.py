"""Faults of the generator: the result names them and charges nothing to the service."""

from __future__ import annotations

import json
import resource
import secrets
from pathlib import Path

from benches.measuring import Origin

from tests.calm import where_calm
from tests.end_to_end.hitting import begin, ended, settled_books, stop_for, tried, url_of


def test_more_connections_than_descriptors_are_refused_before_the_start(server: Origin) -> None:
    server.new_books()

    done = tried(url_of(server), "-c", "100", "-d", "1s", preexec_fn=_with_64_descriptors)

    assert done.returncode == 2
    assert "100 connections need" in done.stderr
    assert "is 64 (ulimit -Hn)" in done.stderr
    assert "ulimit -n" in done.stderr.splitlines()[-1]  # one thing to try
    assert server.books()["received"] == 0


def _with_64_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


@where_calm
def test_a_generator_that_was_stopped_calls_itself_late(server: Origin) -> None:
    process = begin(server, "/", "-r", "500", "-d", "3s")
    stop_for(process, 1.0)
    result = ended(process, 4)

    # A third of the requests were due while it was stopped: they left late, and none was left out.
    assert result["generator"]["verdict"] != "kept_up"
    assert result["generator"]["lag_p99_s"] > 0.5
    assert abs(result["requests"]["due"] - 1500) <= 1
    assert result["requests"]["dropped"] == 0
    # The response time counts from the due time, so it holds the lag; the service time does not.
    assert result["response_time_s"]["p95"]["value"] > 0.5
    assert result["service_time_s"]["p50"]["value"] < 0.1


@where_calm
def test_a_stop_of_five_seconds_stands_where_it_lay_and_in_no_time_out(
    server: Origin, tmp_path: Path
) -> None:
    # A new connection each: some requests are cut while connecting or sending, and have no answer to come.
    record = tmp_path / secrets.token_hex(4)
    load = ("-c", "20", "--connection", "new", "--timeout", "2s", "-d", "8s", "-o", str(record))
    process = begin(server, "/delay/5", *load)
    stop_for(process, 5.0)
    result = ended(process, 4)

    assert result["errors"] == {}
    assert result["generator"]["verdict"] == "stood_still"
    assert "the load generator stood still for 5." in result["generator"]["reasons"][0]
    (counters,) = record.glob("trials/*/*/counters.jsonl")
    rows = [json.loads(line) for line in counters.read_text().splitlines()[1:]]
    stalls = [(row["length_s"], max(row["generator"]["stalled_s"])) for row in rows if row["stream"] is None]
    # It begins in one interval, fills those behind it, which became one, and ends in the next.
    at = max(range(len(stalls)), key=lambda row: stalls[row][1])
    assert stalls[at][1] >= 3.9, stalls
    assert sum(seconds for _, seconds in stalls[max(at - 1, 0) : at + 2]) >= 4.9, stalls
    assert all(seconds <= length + 1e-6 for length, seconds in stalls), stalls


@where_calm
def test_answers_that_came_while_the_generator_was_stopped_are_no_time_outs(server: Origin) -> None:
    # longer than the time-out, which is longer than any machine keeps the server from answering
    process = begin(server, "/delay/30", "-c", "20", "--timeout", "3s", "-d", "6s")
    stop_for(process, 4.0)
    result = ended(process, 4)
    counts = settled_books(server)

    assert result["errors"] == {}
    assert counts["answered"] - result["requests"]["answered"] <= 20  # in flight at the end
