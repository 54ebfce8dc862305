"""`loadlens ab` and the real ab on one origin: the same layout, and figures confirmed by its counts."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from benches.measuring import Origin, origin

from tests.calm import assert_counted, where_calm
from tests.end_to_end.ab_output import OWN, figures, layout, number
from tests.end_to_end.hitting import LIMIT_S, environment, origin_program, settled_books

AB = shutil.which("ab")
needs_ab = pytest.mark.skipif(AB is None, reason="ab is not installed: apt-get install apache2-utils")
OURS = (sys.executable, "-m", "loadlens", "ab")
BOTH = [pytest.param(OURS, id="loadlens"), pytest.param((AB or "ab",), id="ab", marks=needs_ab)]


def run(program: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments], capture_output=True, text=True, timeout=LIMIT_S, env=environment()
    )


def asked(program: tuple[str, ...], server: Origin, path: str, *flags: str) -> str:
    """Standard output of a load whose counts are good; the origin counts from zero."""
    server.new_books()
    done = run(program, *flags, f"http://127.0.0.1:{server.port}{path}")
    assert_counted(done)
    return done.stdout


@needs_ab
@pytest.mark.parametrize(
    "flags",
    [
        pytest.param(("-n", "100", "-c", "4"), id="plain"),
        pytest.param(("-kc5", "-n200", "-q"), id="kept"),
        pytest.param(("-n", "100", "-S", "-d", "-l"), id="bare"),
        pytest.param(("-n", "20", "-i", "-k"), id="head"),
        pytest.param(("-n", "1"), id="one"),
    ],
)
def test_the_layout_is_that_of_ab_line_by_line(server: Origin, flags: tuple[str, ...]) -> None:
    theirs = asked((AB or "",), server, "/delay/20", *flags)
    ours = asked(OURS, server, "/delay/20", *flags)

    assert layout(ours) == layout(theirs)


@needs_ab
def test_a_sent_body_has_the_lines_of_ab(server: Origin, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text('{"a": 1}')
    flags = ("-n", "50", "-p", str(body), "-T", "application/json")

    theirs, ours = (asked(program, server, "/echo", *flags) for program in ((AB or "",), OURS))

    assert layout(ours) == layout(theirs)
    assert figures(ours)["HTML transferred"] == figures(theirs)["HTML transferred"] == "400 bytes"


@needs_ab
def test_html_is_that_of_ab(server: Origin) -> None:
    flags = ("-w", "-n", "20", "-x", "border=1", "-y", "align=left", "-z", "class=a")

    theirs, ours = (asked(program, server, "/status/404", *flags) for program in ((AB or "",), OURS))

    def table(stdout: str) -> list[str]:
        lines = stdout[stdout.index("<table") : stdout.index("</table>")].splitlines()
        kept = [line for line in lines if "Server Software" not in line]
        return ["".join("#" if letter.isdigit() else letter for letter in line) for line in kept]

    def squeezed(lines: list[str]) -> list[str]:
        return [line.replace("#", "").replace(" ", "") for line in lines]

    assert squeezed(table(ours)) == squeezed(table(theirs))


@pytest.mark.parametrize("program", BOTH)
@pytest.mark.parametrize("is_kept", [False, True], ids=["new", "kept"])
def test_requests_connections_and_bytes_match_those_of_the_origin(
    server: Origin, program: tuple[str, ...], is_kept: bool
) -> None:
    printed = asked(program, server, "/", "-n", "300", "-c", "6", *(["-k"] if is_kept else []))
    counts = settled_books(server)

    assert number(printed, "Complete requests") == counts["answered"] == counts["received"] == 300
    assert number(printed, "Failed requests") == 0
    assert number(printed, "Total transferred") == counts["bytes_out"]
    assert number(printed, "HTML transferred") == 300 * number(printed, "Document Length")
    opened = counts["connections"]["accepted"] - (6 if is_kept else 300)
    # One connection before the load is ours; ab begins some that it never uses.
    assert opened == 1 if program is OURS else 0 <= opened <= 6
    assert ("Keep-Alive requests" in figures(printed)) == is_kept
    if is_kept:
        assert number(printed, "Keep-Alive requests") == 300


@pytest.mark.parametrize("program", BOTH)
def test_another_length_than_the_first_one_is_a_failure_of_ab(program: tuple[str, ...]) -> None:
    # Items are numbered from 1 and say their number: 1 to 9 are one byte shorter than 10 to 30.
    with origin(origin_program(), cpu=0) as fresh:
        printed = asked(program, fresh, "/items", "-n", "30", "-m", "POST")
        shown = figures(printed)

    assert shown["Failed requests"] == "21"
    assert "   (Connect: 0, Receive: 0, Length: 21, Exceptions: 0)" in printed.splitlines()
    assert shown["Complete requests"] == "30"
    assert "Non-2xx responses" not in shown


def test_our_own_words_stand_below_and_call_other_lengths_answers(server: Origin) -> None:
    with origin(origin_program(), cpu=0) as fresh:
        printed = asked(OURS, fresh, "/items", "-n", "30", "-m", "POST")

    own = printed.partition(OWN)[2]
    assert "21 of them came as expected" in own
    assert "errors 0" in own


@pytest.mark.parametrize("program", BOTH)
def test_answers_that_are_no_2xx_are_counted_and_are_no_failures(
    server: Origin, program: tuple[str, ...]
) -> None:
    printed = asked(program, server, "/status/503", "-n", "40")

    assert number(printed, "Non-2xx responses") == 40
    assert number(printed, "Failed requests") == 0


@pytest.mark.parametrize("program", BOTH)
def test_any_length_will_do_with_l(program: tuple[str, ...]) -> None:
    with origin(origin_program(), cpu=0) as fresh:
        shown = figures(asked(program, fresh, "/items", "-n", "30", "-m", "POST", "-l"))

    assert shown["Failed requests"] == "0"
    assert shown["Document Length"] == "Variable"


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_a_time_limit_ends_the_load(server: Origin, program: tuple[str, ...]) -> None:
    printed = asked(program, server, "/delay/50", "-t", "1", "-c", "2")

    took = number(printed, "Time taken for tests")
    assert 0.9 <= took < 10  # without a limit it would make 50,000 requests
    # two users, 50 ms each: so many at most, and what was begun before the end
    assert 10 <= number(printed, "Complete requests") <= 2 * (took / 0.05 + 1)


@pytest.mark.parametrize("program", BOTH)
def test_progress_is_told_every_hundred_requests(server: Origin, program: tuple[str, ...]) -> None:
    done = run(program, "-n", "300", "-c", "3", f"http://127.0.0.1:{server.port}/")

    assert done.stderr.splitlines() == [
        "Completed 100 requests",
        "Completed 200 requests",
        "Completed 300 requests",
        "Finished 300 requests",
    ]


@pytest.mark.parametrize("program", BOTH)
def test_the_percentile_file_has_a_line_for_each_percentage(
    server: Origin, program: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "served.csv"
    asked(program, server, "/delay/10", "-n", "200", "-c", "4", "-e", str(file))

    head, *rows = file.read_text().splitlines()
    assert head == "Percentage served,Time in ms"
    assert [row.partition(",")[0] for row in rows] == [str(percent) for percent in range(101)]
    times = [float(row.partition(",")[2]) for row in rows]
    assert times == sorted(times)
    assert times[0] >= 10
    assert all(len(row.partition(".")[2]) == 3 for row in rows)


@pytest.mark.parametrize("program", BOTH)
def test_the_gnuplot_file_has_a_row_for_each_request_the_quickest_first(
    server: Origin, program: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "rows.tsv"
    asked(program, server, "/delay/10", "-n", "60", "-c", "4", "-g", str(file))

    head, *rows = [line.split("\t") for line in file.read_text().splitlines()]
    assert head == ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]
    assert len(rows) == 60
    totals = [int(row[4]) for row in rows]
    assert totals == sorted(totals)
    for when, seconds, connect, processing, total, wait in rows:
        assert len(when) == len("Sun Nov 22 06:31:45 2026")
        assert int(seconds) > 1_700_000_000
        assert abs(int(connect) + int(processing) - int(total)) <= 1
        assert 10 <= int(wait) <= int(processing)


def test_a_port_where_nothing_listens_is_refused_and_exits_3() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        done = run(OURS, "-n", "10", f"http://127.0.0.1:{bound.getsockname()[1]}/")

    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing is listening on 127.0.0.1:" in done.stderr


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("reset_in_body", "(Connect: 0, Receive: 8, Length: 0, Exceptions: 0)"),
        ("close_no_answer", "(Connect: 0, Receive: 0, Length: 8, Exceptions: 0)"),
    ],
)
def test_each_broken_answer_is_one_failure_of_one_class(server: Origin, behaviour: str, words: str) -> None:
    printed = asked(OURS, server, f"/bad/{behaviour}", "-n", "8", "-r")

    assert f"   {words}" in printed.splitlines()
    assert number(printed, "Failed requests") == number(printed, "Complete requests") == 8
