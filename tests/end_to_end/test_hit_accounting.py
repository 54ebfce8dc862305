"""`loadlens hit` against the origin: what it counts is what the server's books say."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import pytest
from benches.measuring import Origin

from tests.end_to_end.hitting import (
    begin,
    check_law,
    ended,
    hit,
    settled_books,
    tried,
    url_of,
)

BEFORE_LOAD = 1  # connections made to see that the port takes any


def test_as_many_requests_are_counted_as_the_server_received(server: Origin) -> None:
    result = hit(server, "/", "-c", "8", "-n", "1000")
    counts = settled_books(server)

    check_law(result["requests"])
    assert result["requests"]["ok"] == counts["received"] == counts["answered"] == 1000
    assert result["status"] == {"200": 1000}
    assert counts["connections"]["accepted"] - BEFORE_LOAD == result["connections"]["opened"] == 8
    assert counts["violations"] == 0


def test_after_a_timed_run_only_unfinished_requests_differ_from_the_origins_counts(server: Origin) -> None:
    result = hit(server, "/", "-c", "20", "-d", "1s")
    counts = settled_books(server)

    requests = result["requests"]
    check_law(requests)
    assert requests["failed"] == 0
    assert requests["answered"] <= counts["answered"] <= counts["received"] <= requests["issued"]
    assert requests["issued"] - requests["answered"] <= 20
    assert counts["violations"] == 0


def test_a_rate_is_kept_and_every_due_request_sent(server: Origin) -> None:
    result = hit(server, "/", "-r", "500", "-d", "2s")
    counts = settled_books(server)

    check_law(result["requests"])
    assert abs(result["requests"]["due"] - 1000) <= 1
    assert result["requests"]["dropped"] == 0
    assert counts["received"] == result["requests"]["issued"]


@pytest.mark.parametrize(("policy", "connections"), [("keep", 5), ("new", 100), ("10", 10)])
def test_a_connection_policy_opens_the_connections_that_it_says(
    server: Origin, policy: str, connections: int
) -> None:
    users = "1" if policy == "10" else "5"

    result = hit(server, "/", "-c", users, "-n", "100", "--connection", policy)
    counts = settled_books(server)

    assert result["connections"]["opened"] == connections
    assert counts["connections"]["accepted"] == connections + BEFORE_LOAD
    assert counts["received"] == 100


def test_unexpected_statuses_are_answers_and_no_failures(server: Origin) -> None:
    result = hit(server, "/status?codes=200:9,500:1", "-c", "1", "-n", "100")

    assert result["status"] == {"200": 90, "500": 10}
    assert result["requests"]["unexpected_status"] == 10
    assert result["requests"]["failed"] == 0


def test_failures_have_a_class_with_a_count_and_exit_3_if_nothing_succeeded(server: Origin) -> None:
    done = tried(url_of(server, "/bad/reset_in_body"), "-c", "2", "-n", "20")

    assert done.returncode == 3
    result = json.loads(done.stdout)
    assert result["requests"]["answered"] == 0
    assert {name: error["count"] for name, error in result["errors"].items()} == {"reset": 20}


def test_a_port_where_nothing_listens_is_refused_in_one_line_and_exits_3() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        done = tried(url, "-c", "2", "-n", "10")

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"loadlens: nothing is listening on {url[7:-1]} (connection refused)")


def test_an_interrupted_hit_prints_what_it_has_and_agrees_with_the_origin(server: Origin) -> None:
    process = begin(server, "/", "-c", "10", "-d", "60s")
    process.send_signal(signal.SIGINT)
    requests = ended(process, 130)["requests"]

    counts = settled_books(server)
    assert requests["answered"] <= counts["answered"] <= counts["received"] <= requests["issued"]
    assert counts["violations"] == 0


def test_a_killed_hit_leaves_no_connection_behind(server: Origin) -> None:
    process = begin(server, "/", "-c", "10", "-d", "60s", accepted=10 + BEFORE_LOAD)
    process.kill()
    process.communicate(timeout=10)

    assert settled_books(server)["connections"]["accepted"] == 10 + BEFORE_LOAD


def test_a_unique_feed_is_used_once_and_ends_the_load(server: Origin, tmp_path: Path) -> None:
    feed = tmp_path / "ids.csv"
    feed.write_text("id\n" + "".join(f"{number}\n" for number in range(120)))

    result = hit(server, "/?id={{ids.id}}", "-c", "7", "--feed", f"ids={feed},unique")

    check_law(result["requests"])
    assert result["requests"]["ok"] == result["requests"]["due"] == settled_books(server)["received"] == 120
    used = {"records": 120, "iterations": 120, "is_used_up": True}
    assert result["feeds"] == [{"name": "ids", "pick": "unique", "end": "stop", **used}]


def test_a_unique_feed_that_takes_longer_than_a_usual_load_is_used_up(server: Origin, tmp_path: Path) -> None:
    feed = tmp_path / "ids.csv"
    feed.write_text("id\n" + "".join(f"{number}\n" for number in range(22)))

    result = hit(server, "/?id={{ids.id}}", "--rate", "2", "--feed", f"ids={feed},unique")

    # 11 s; a load has 10 s by default
    assert result["requests"]["ok"] == settled_books(server)["received"] == 22
    assert result["feeds"][0]["is_used_up"]


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        ("ids", "not a feed"),
        ("ids=nowhere.csv", "cannot read 'nowhere.csv'"),
        ("ids=ids.txt", "unknown format of"),
        ("ids=ids.csv,once", "unknown format of"),
    ],
)
def test_a_feed_that_cannot_be_used_is_a_fault_of_its_flag(server: Origin, feed: str, words: str) -> None:
    done = tried(url_of(server, "/items/{{ids.id}}"), "-n", "1", "--feed", feed)

    assert done.returncode == 2
    assert words in done.stderr
    assert "--feed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_feed_of_which_the_request_takes_nothing_is_a_fault_of_its_flag(
    server: Origin, tmp_path: Path
) -> None:
    ids, names = tmp_path / "ids.csv", tmp_path / "names.csv"
    ids.write_text("id\n1\n")
    names.write_text("name\nann\n")
    feeds = ("--feed", f"ids={ids}", "--feed", f"names={names}")

    used = tried(url_of(server, "/?id={{ids.id}}"), "-n", "1", *feeds, "-H", "X-Name: {{names.name}}")
    unused = tried(url_of(server, "/?id={{ids.id}}"), "-n", "1", *feeds)

    assert used.returncode == 0, used.stderr
    assert unused.returncode == 2
    assert "uses no value of the feed names" in unused.stderr
