"""`loadlens wrk` and the real wrk on one origin: layout, scripts, and figures confirmed by its counts."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benches.measuring import Origin, origin

from tests.calm import assert_counted, where_calm
from tests.end_to_end.ab_output import OWN
from tests.end_to_end.hitting import LIMIT_S, environment, origin_program, settled_books

WRK = shutil.which("wrk")
needs_wrk = pytest.mark.skipif(WRK is None, reason="wrk is not installed: apt-get install wrk")
OURS = (sys.executable, "-m", "loadlens", "wrk")
BOTH = [pytest.param(OURS, id="loadlens"), pytest.param((WRK or "wrk",), id="wrk", marks=needs_wrk)]

# The script of the published study.
SUM = Path(__file__).parents[2] / "studies" / "sum" / "wrk.lua"


def run(program: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*program, *arguments], capture_output=True, text=True, timeout=LIMIT_S, env=environment()
    )


def asked(program: tuple[str, ...], server: Origin, path: str, *flags: str) -> str:
    """Output of a load whose counts are good, without our own lines below; the origin counts from zero."""
    server.new_books()
    done = run(program, *flags, f"http://127.0.0.1:{server.port}{path}")
    assert_counted(done)
    return done.stdout.partition(f"\n{OWN}")[0]


def scripted(folder: Path, text: str) -> tuple[str, str]:
    """The flags of a script."""
    file = folder / "script.lua"
    file.write_text(text)
    return ("-s", str(file))


def counted(printed: str) -> int:
    match = re.search(r"^  (\d+) requests in ", printed, re.MULTILINE)
    assert match is not None, printed
    return int(match[1])


def shape(line: str) -> str:
    """A line without its figures; of figures in columns, where decimal points and the end of the line are."""
    if re.match(r"    (Latency|Req/Sec)  |  +\d+%|(Requests|Transfer)/sec:", line):
        # The share within a deviation is -nan of no values; tenths without answers are none to wrk.
        figures = line[:-9] if line.startswith(("    L", "    R")) else line
        points = [str(place) for place, letter in enumerate(figures) if letter == "."]
        return " ".join([line[:8], *points, str(len(line))])
    return re.sub(r"\d+(\.\d+)?(us|ms|s|m|h)?(?=[ ,]|$)|\d+\.\d+[KMG]?(?=B)", "#", line)


def layout(printed: str) -> list[str]:
    return [shape(line) for line in printed.rstrip("\n").split("\n")]


@needs_wrk
@pytest.mark.parametrize(
    ("path", "flags"),
    [
        pytest.param("/delay/2", ("-t2", "-c4", "-d1s"), id="plain"),
        pytest.param("/delay/2", ("--latency", "-t", "1", "-c", "1", "-d", "1"), id="latency"),
        pytest.param("/status/404", ("-L", "-t2", "-c10", "--duration=1s"), id="statuses"),
        pytest.param("/delay/1500", ("-L", "-t1", "-c2", "-d1s"), id="no-answers"),
    ],
)
@where_calm
def test_the_layout_is_that_of_wrk_line_by_line(server: Origin, path: str, flags: tuple[str, ...]) -> None:
    theirs, ours = (asked(program, server, path, *flags) for program in ((WRK or "",), OURS))

    assert layout(ours) == layout(theirs)


@pytest.mark.parametrize("program", BOTH)
def test_the_published_script_and_command_line_run_as_they_are(
    server: Origin, program: tuple[str, ...]
) -> None:
    printed = asked(program, server, "", "-t12", "-c12", "-d1s", "--latency", "-s", str(SUM))
    counts = settled_books(server)["paths"]["/api/sum"]

    assert printed.startswith(
        f"Running 1s test @ http://127.0.0.1:{server.port}\n  12 threads and 12 connections\n"
    )
    assert counts["received"] - 12 <= counted(printed) <= counts["received"]
    # {"a":1,"b":1} to {"a":100,"b":100}
    assert 13 * counts["received"] <= counts["body_bytes_in"] <= 17 * counts["received"]


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_what_a_script_sees_is_the_same(server: Origin, tmp_path: Path, program: tuple[str, ...]) -> None:
    script = scripted(
        tmp_path,
        """
        local threads = {}
        function setup(thread)
           table.insert(threads, thread)
           thread:set("id", #threads)
           thread:set("given", {a = "two"})
        end
        function init(args)
           kept = args[0]:match("^http") .. " " .. #args .. " " .. args[1] .. " " .. id .. " " .. given.a
           print(kept)
           seen = {}
           first = wrk.format("PUT", "/head", {["X-A"] = "b"}, "body")
           host = "|" .. #first:match("Host: ([^\\r]+)") .. "|" .. tostring(wrk.thread.addr):match("^[^:]+")
           first = first:gsub("\\r\\n.*\\r\\n\\r\\n", "|") .. host
        end
        function request()
           return wrk.format("POST", "/echo", {["X-Number"] = 7}, "hello")
        end
        function response(status, headers, body)
           seen = {type(status), status, headers["Content-Length"], type(headers), body, type(body)}
           if n == nil then n = 0 end
           n = n + 1
        end
        function done(summary, latency, requests)
           print(table.concat(threads[2]:get("seen"), " "))
           print(threads[1]:get("first"))
           print(threads[1]:get("n") + threads[2]:get("n") == summary.requests, threads[1]:get("nothing"))
           local took = summary.duration
           print(type(took), took >= 1e6 and took < 1e8, type(summary.bytes))
           local e = summary.errors
           print(e.connect, e.read, e.write, e.status, e.timeout)
           print(type(latency), type(latency.min), latency.min <= latency.mean, latency.mean <= latency.max)
           print(latency:percentile(50) <= latency:percentile(99), #latency > 0, latency.stdev >= 0)
           local value, count = latency(1)
           print(value == latency.min, count > 0, requests.max >= requests.min, type(requests.mean))
        end
        """,
    )
    server.new_books()
    url = f"http://127.0.0.1:{server.port}/"
    done = run(program, "-t2", "-c4", "-d1s", *script, url, "--", "one", "-t9")

    assert done.returncode == 0, done.stderr
    lines = done.stdout.partition(f"\n{OWN}")[0].rstrip("\n").split("\n")
    assert lines[:2] == ["http 2 one 1 two", "http 2 one 2 two"]
    assert lines[2].startswith("Running 1s test")
    host = len(f"127.0.0.1:{server.port}")
    assert lines[-8:] == [
        "number 200 5 table hello string",
        f"PUT /head HTTP/1.1|body|{host}|127.0.0.1",
        "true\tnil",
        "number\ttrue\tnumber",
        "0\t0\t0\t0\t0",
        "userdata\tnumber\ttrue\ttrue",
        "true\ttrue\ttrue",
        "true\ttrue\ttrue\tnumber",
    ]
    assert settled_books(server)["violations"] == 0


@pytest.mark.parametrize("program", BOTH)
def test_the_table_makes_requests_where_the_script_does_not(
    server: Origin, tmp_path: Path, program: tuple[str, ...]
) -> None:
    script = scripted(tmp_path, 'wrk.method = "POST"\nwrk.path = "/echo"\nwrk.body = "foo=bar"\n')
    printed = asked(program, server, "/elsewhere", "-t1", "-c2", "-d1s", *script)
    counts = settled_books(server)

    assert set(counts["paths"]) == {"/echo"}
    assert counts["paths"]["/echo"]["body_bytes_in"] == 7 * counts["received"]
    assert counts["received"] - 2 <= counted(printed) <= counts["received"]
    assert "Non-2xx" not in printed


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_a_thread_that_stops_itself_makes_no_more_requests(
    server: Origin, tmp_path: Path, program: tuple[str, ...]
) -> None:
    script = """
        local n = 0
        function response()
           n = n + 1
           if n == 100 then wrk.thread:stop() end
        end
        """
    printed = asked(program, server, "/json", "-t2", "-c2", "-d1s", *scripted(tmp_path, script))

    assert counted(printed) == 200
    assert settled_books(server)["answered"] in range(200, 203)  # wrk has sent one more on each connection


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_a_pause_before_each_request_is_kept(
    server: Origin, tmp_path: Path, program: tuple[str, ...]
) -> None:
    median = "print(latency:percentile(50) < 100000)"  # with the pause none would be below 100 ms
    script = f"function delay() return 100 end\nfunction done(_, latency) {median} end\n"
    printed = asked(program, server, "/json", "-t1", "-c2", "-d2s", *scripted(tmp_path, script))

    # At most ten a second on each of two connections; ten a second on both would be 20.
    assert 24 <= counted(printed) <= 40
    assert printed.rstrip().endswith("true")


@pytest.mark.parametrize("program", BOTH)
@where_calm
def test_a_script_learns_from_answers(server: Origin, tmp_path: Path, program: tuple[str, ...]) -> None:
    script = """
        local path = "/status/503"
        request = function() return wrk.format("GET", path) end
        response = function(status, headers, body)
           if status == 503 then path = "/json" end
        end
        """
    printed = asked(program, server, "/", "-t1", "-c1", "-d1s", *scripted(tmp_path, script))

    assert "  Non-2xx or 3xx responses: 1\n" in printed
    assert settled_books(server)["paths"]["/status/503"]["received"] == 1


@pytest.mark.parametrize("program", BOTH)
def test_headers_of_the_command_line_are_sent(
    server: Origin, tmp_path: Path, program: tuple[str, ...]
) -> None:
    script = """
        local thread
        function setup(t) thread = t end
        function response(status, headers, body) head = body end
        function done()
           local head = thread:get("head")
           print(head:match("X%-One: [^\\r]*"), head:match("Host: [^\\r]*"), head:match("^[^\\r]*"))
        end
        """
    flags = ("-H", "X-One: 1: 2", "-H", "Host: example.org")
    printed = asked(program, server, "/head", "-t1", "-c1", "-d1s", *flags, *scripted(tmp_path, script))

    assert printed.rstrip().endswith("X-One: 1: 2\tHost: example.org\tGET /head HTTP/1.1")


def test_connections_are_closed_where_the_request_says_so(server: Origin) -> None:
    printed = asked(OURS, server, "/json", "-t1", "-c2", "-d1s", "-H", "Connection: close")
    counts = settled_books(server)

    # One is that of finding out whether the address takes connections.
    assert 0 <= counts["connections"]["accepted"] - 1 - counted(printed) <= 2
    assert "Socket errors" not in printed


def test_a_load_over_tls_accepts_any_certificate_as_wrk_does() -> None:
    with origin(origin_program(), 0, "--tls") as secured:
        done = run(OURS, "-t1", "-c2", "-d1s", f"https://127.0.0.1:{secured.port}/json")
        counts = settled_books(secured)

    assert done.returncode == 0, done.stderr
    assert counts["received"] - 2 <= counted(done.stdout) <= counts["received"]
    assert "the certificate was not verified, as wrk does not" in done.stdout


@where_calm
def test_every_connection_is_made_and_every_time_out_counted(server: Origin) -> None:
    server.new_books()
    url = f"http://127.0.0.1:{server.port}/delay/5000"
    done = run(OURS, "-t2", "-c5", "-d3s", "--timeout", "1s", url)

    match = re.search(r"  Socket errors: connect 0, read 0, write 0, timeout (\d+)\n", done.stdout)
    assert match is not None, done.stdout + done.stderr
    assert 10 <= int(match[1]) <= 15  # each of five connections once a second, cut at the end
    own = done.stdout.partition(OWN)[2]
    assert f"{match[1]} requests had no answer in 1 s" in own
    assert "all 5 connections were made; wrk makes 4 with 2 threads" in own


def test_our_own_words_say_what_wrk_adds(server: Origin) -> None:
    # One answer in ten takes 200 ms, the others none: wrk fills the long ones up with shorter ones.
    done = run(OURS, "-t1", "-c2", "-d2s", f"http://127.0.0.1:{server.port}/mix?ms=0:9,200:1")

    assert re.search(r"wrk would have added \d+ latencies that no request had", done.stdout), done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1\n", "script.lua:1: unexpected symbol near '='"),
        ("\nfunction init() error('no token') end\n", "script.lua:2: no token"),
        ("\nfunction request() return 7 end\n", "script.lua:2: request() has returned"),
        (
            "function request() return wrk.format() .. wrk.format() end\n",
            "more than one request (pipelining)",
        ),
    ],
)
def test_a_script_that_cannot_be_used_is_refused_before_any_request(
    server: Origin, tmp_path: Path, text: str, message: str
) -> None:
    server.new_books()
    done = run(OURS, "-d1s", *scripted(tmp_path, text), f"http://127.0.0.1:{server.port}/")

    assert done.returncode == 2
    assert message in done.stderr
    assert "raceback" not in done.stderr + done.stdout
    assert settled_books(server)["received"] == 0


def test_a_script_that_fails_on_its_way_ends_the_run_with_its_line(server: Origin, tmp_path: Path) -> None:
    script = "n = 0\nfunction request()\n  n = n + 1\n  if n > 50 then n() end\n  return wrk.format()\nend\n"
    began = time.monotonic()
    done = run(OURS, "-t1", "-c1", "-d30s", *scripted(tmp_path, script), f"http://127.0.0.1:{server.port}/")

    assert done.returncode == 2
    assert "script.lua:4: attempt to call global 'n' (a number value)" in done.stderr
    assert "raceback" not in done.stderr
    assert time.monotonic() - began < 20


def test_a_script_that_loops_for_ever_ends_with_the_run(server: Origin, tmp_path: Path) -> None:
    script = "function response()\n  while true do end\nend\n"
    began = time.monotonic()
    done = run(
        OURS,
        "-t2",
        "-c2",
        "-d1s",
        "--timeout",
        "1s",
        *scripted(tmp_path, script),
        f"http://127.0.0.1:{server.port}/",
    )

    assert done.returncode == 2, done.stdout
    assert "script.lua:1: response() did not come back after the end of the run" in done.stderr
    # A duration, a time-out and a second are promised; the rest is Python's start on a busy machine.
    assert time.monotonic() - began < 15


def test_a_fault_in_done_comes_after_the_figures(server: Origin, tmp_path: Path) -> None:
    script = "function done()\n  io.write('half a line')\n  error('over')\nend\n"
    done = run(
        OURS, "-t1", "-c1", "-d1s", *scripted(tmp_path, script), f"http://127.0.0.1:{server.port}/json"
    )

    assert done.returncode == 2
    assert done.stderr.startswith("loadlens: ")
    assert "script.lua:3: over" in done.stderr
    assert "Transfer/sec" in done.stdout
    assert OWN in done.stdout


def test_ctrl_c_ends_the_load_and_shows_what_there_is(server: Origin, tmp_path: Path) -> None:
    server.new_books()
    script = scripted(tmp_path, "function done(summary) print(summary.requests > 0) end\n")
    command = [*OURS, "-t1", "-c1", "-d60s", *script, f"http://127.0.0.1:{server.port}/delay/1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    until = time.monotonic() + LIMIT_S
    while server.books()["answered"] < 10:
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=LIMIT_S)

    assert process.returncode == 130
    assert re.search(r"Transfer/sec: .*\ntrue\n", out), out


def test_a_port_where_nobody_listens_is_no_load() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        done = run(OURS, "-d1s", f"http://127.0.0.1:{port}/")

    assert done.returncode == 3
    assert f"unable to connect to 127.0.0.1:{port}: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-t4", "-c2"), "number of connections must be >= number of threads: 2 and 4"),
        (("-d", "1.5s"), "not a whole number with a unit: '1.5s'"),
        (("-H", "X:1"), "not a header: 'X:1'"),
        (("--threadz", "1"), "--threadz is no flag of wrk"),
        (("-c0",), "from 1 to"),
    ],
)
def test_flags_that_cannot_be_read_are_named(flags: tuple[str, ...], message: str) -> None:
    done = run(OURS, *flags, "http://127.0.0.1:9/")

    assert done.returncode == 2
    assert message in done.stderr


def test_help_and_version_need_no_url() -> None:
    shown, version, nothing = (run(OURS, *words) for words in (["--help"], ["-v"], []))

    assert shown.returncode == 0
    assert "-t, --threads N" in shown.stdout
    assert version.stdout.endswith("in the layout of wrk 4.1.0\n")
    assert nothing.returncode == 2
