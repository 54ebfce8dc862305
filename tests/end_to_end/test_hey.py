"""`loadlens hey` and the real hey on one origin: same layout, and figures confirmed by its counts."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
import sys

import pytest
from benches.measuring import Origin

from tests.calm import assert_counted, where_calm
from tests.end_to_end.ab_output import OWN
from tests.end_to_end.hitting import LIMIT_S, environment, settled_books

HEY = shutil.which("hey")
needs_hey = pytest.mark.skipif(
    HEY is None, reason="hey is not installed: go install github.com/rakyll/hey@latest"
)
OURS = (sys.executable, "-m", "loadlens", "hey")
BOTH = [pytest.param(OURS, id="loadlens"), pytest.param((HEY or "hey",), id="hey", marks=needs_hey)]


def run(program: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments], capture_output=True, text=True, timeout=LIMIT_S, env=environment()
    )


def asked(program: tuple[str, ...], server: Origin, path: str, *flags: str) -> str:
    """Output of a load whose counts are good, up to the end of hey's layout; the origin counts from zero."""
    server.new_books()
    done = run(program, *flags, f"http://127.0.0.1:{server.port}{path}")
    assert_counted(done)
    return done.stdout.partition(OWN)[0]


def layout(printed: str) -> str:
    """The text with its figures taken out; decimals stay as many as they are."""
    kept = re.sub(r"  req write:.*", "  req write:", printed)
    kept = re.sub(r"■+", "", kept)
    return re.sub(
        r"\d+(\.\d+)?", lambda figure: "#" + "." * bool(figure[1]) + "d" * (len(figure[1] or ".") - 1), kept
    )


def number(printed: str, label: str) -> float:
    match = re.search(rf"{re.escape(label)}\t\s*([\d.]+)", printed)
    assert match is not None, printed
    return float(match[1])


@needs_hey
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-n", "200", "-c", "4"), id="kept"),
        pytest.param(("-n=100", "-c=4", "-disable-keepalive"), id="new"),
        pytest.param(("-n", "8", "-c", "8"), id="few"),
    ],
)
def test_the_layout_is_that_of_hey_byte_by_byte(server: Origin, flags: tuple[str, ...]) -> None:
    theirs, ours = (asked(program, server, "/delay/5", *flags) for program in ((HEY or "",), OURS))

    assert layout(ours) == layout(theirs)


@pytest.mark.parametrize("program", BOTH)
def test_requests_connections_and_bytes_match_those_of_the_origin(
    server: Origin, program: tuple[str, ...]
) -> None:
    printed = asked(program, server, "/", "-n", "200", "-c", "5")
    counts = settled_books(server)

    assert f"  [200]\t{counts['answered']} responses\n" in printed
    assert counts["answered"] == counts["received"] == 200
    assert number(printed, "Total data:") == 200 * number(printed, "Size/request:")
    assert counts["connections"]["accepted"] == 5 + (program is OURS)  # one connection before the load


@pytest.mark.parametrize("program", BOTH)
def test_each_worker_makes_its_whole_share(server: Origin, program: tuple[str, ...]) -> None:
    printed = asked(program, server, "/", "-n", "100", "-c", "30")

    assert "  [200]\t90 responses\n" in printed
    assert settled_books(server)["answered"] == 90


@pytest.mark.parametrize("program", BOTH)
def test_statuses_and_what_is_sent_are_the_same(server: Origin, program: tuple[str, ...]) -> None:
    flags = ("-m", "POST", "-d", '{"a": "{{b}}"}', "-T", "application/json", "-n", "20", "-c", "2")

    printed = asked(program, server, "/echo", *flags)
    counts = settled_books(server)

    assert "  [200]\t20 responses\n" in printed
    assert sum(path["body_bytes_in"] for path in counts["paths"].values()) == 20 * 14
    assert number(printed, "Size/request:") == 14


@pytest.mark.parametrize("program", BOTH)
def test_a_duration_ends_the_load_and_what_was_begun_is_ended(
    server: Origin, program: tuple[str, ...]
) -> None:
    printed = asked(program, server, "/delay/100", "-z", "1s", "-c", "3")
    counts = settled_books(server)

    assert f"  [200]\t{counts['received']} responses\n" in printed
    assert 1.0 <= number(printed, "Total:") < 5  # without it 200 requests, three in 100 ms: 7 s


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_a_rate_holds_each_worker_back(server: Origin, program: tuple[str, ...]) -> None:
    asked(program, server, "/", "-q", "10", "-c", "2", "-z", "4s")

    # Two workers, ten a second each, for four seconds; one more at the ends, and fewer where the machine was
    # away. Ten a second for both would be 40, no rate thousands.
    assert 50 <= settled_books(server)["answered"] <= 84


@pytest.mark.parametrize("program", BOTH)
def test_the_csv_has_a_row_for_each_answer(server: Origin, program: tuple[str, ...]) -> None:
    printed = asked(program, server, "/delay/10", "-n", "40", "-c", "4", "-o", "csv")

    rows = list(csv.DictReader(printed.strip().splitlines()))
    assert list(rows[0]) == [
        "response-time", "DNS+dialup", "DNS", "Request-write", "Response-delay", "Response-read",
        "status-code", "offset",
    ]  # fmt: skip
    assert len(rows) == 40
    assert all(float(row["response-time"]) >= 0.01 for row in rows)
    assert sum(float(row["DNS+dialup"]) > 0 for row in rows) <= 4
    assert {row["status-code"] for row in rows} == {"200"}


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ("-x", "p:1", "-h2"),
            "-x host:port: the engine knows no HTTP proxies; -h2: the engine speaks HTTP/1.1",
        ),
        (("-n", "5", "-c", "6"), "-n cannot be less than -c"),
        (("-o", "json"), "only csv, got 'json'"),
        (("-nope",), "hey has no flag -nope"),
    ],
)
def test_what_cannot_be_done_is_named_and_nothing_is_asked(
    server: Origin, flags: tuple[str, ...], words: str
) -> None:
    server.new_books()
    done = run(OURS, *flags, f"http://127.0.0.1:{server.port}/")

    assert done.returncode == 2
    assert done.stderr.startswith(f"loadlens: {words}\n")
    assert server.books()["received"] == 0
