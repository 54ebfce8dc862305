"""`loadlens wrk`: wrk's flags and scripts, our engine, wrk's layout; and what we say of the same requests."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from loadlens import __version__, units
from loadlens.cli import preflight
from loadlens.cli.hit_requests import target_of
from loadlens.cli.options import read_file
from loadlens.credentials import Hiding
from loadlens.errors import ExitCode, ScriptError, UsageError
from loadlens.model.workload import Closed, Plan, Scenario, Step
from loadlens.temporary import memory_file
from loadlens_compat import layouts
from loadlens_compat.letters import Flag, getopt_long, usage

if TYPE_CHECKING:
    from loadlens.engine import Result, Script, ScriptSpec
    from loadlens_compat.wrk.layout import WrkFigures

FLAGS: Final = (
    Flag("c", "Connections to keep open, one request at a time each. Default: 10", "N", long="connections"),
    Flag("d", "Duration of test: 30s, 2m, 1h. Default: 10s", "T", long="duration"),
    Flag("t", "Number of threads to use. Default: 2", "N", long="threads"),
    Flag("s", "Load Lua script file; what follows -- goes to its init", "S", long="script"),
    Flag("H", "Add header to request, 'Name: value'. (repeatable)", "H", long="header"),
    Flag("L", "Print latency statistics", long="latency"),
    Flag("T", "Socket/request timeout. Default: 2s", "T", long="timeout"),
    Flag("v", "Print version details", long="version"),
    Flag("h", "Display usage information (this message)", long="help"),
)
FIRST_LINE: Final = "Usage: loadlens wrk <options> <url> [-- arguments of the script]"
_NUMBER: Final = re.compile(r"\s*(\d{1,15})\s*([A-Za-z]*)")
_COUNTS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_TIMES: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
MOST_THREADS: Final = 1024  # the engine has no more


@dataclass(frozen=True, slots=True)
class Options:
    """Values of the flags."""

    threads: int = 2
    connections: int = 10
    duration_s: int = 10
    timeout_s: int = 2
    script: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    percentiles: bool = False


def wrk(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OPTIONS] URL [-- ARGS]",
            help="wrk's own flags and URL, in any order; behind -- what the script is given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Take wrk's flags and Lua scripts, run our engine, print wrk's layout.

    A script has the interface of wrk 4.1 (setup, init, delay, request, response, done); one without a
    function request costs nothing for a request. Latencies are those that requests had, from when each was
    due; below wrk's layout stands what Loadlens says of the same requests.
    """
    given, rest = getopt_long(words or (), FLAGS, "wrk")
    names = {flag.name for flag, _ in given}
    if "h" in names:
        print("\n".join(usage(FIRST_LINE, FLAGS)))
        return
    if "v" in names:
        print(f"Loadlens {__version__} in the layout of wrk 4.1.0")
        if not rest:
            return
    if not rest:
        raise UsageError(
            "no URL", where="loadlens wrk", hint="loadlens wrk -t2 -c10 -d10s http://127.0.0.1:8080/"
        )
    asked = _options([(flag.name, value) for flag, value in given])
    sys.exit(int(_drive(asked, rest)))


def _options(given: list[tuple[str, str]]) -> Options:
    asked = Options()
    for name, value in given:
        if name in _VALUES:
            asked = _VALUES[name](asked, value)
    if asked.connections < asked.threads:
        raise UsageError(
            f"number of connections must be >= number of threads: {asked.connections} and {asked.threads}",
            where="-c and -t",
            hint=f"-t {asked.connections}",
        )
    return asked


def _scaled(text: str, flag: str, multiples: Mapping[str, int], example: str, *, at_most: int) -> int:
    """A whole number with a unit, above 0."""
    match = _NUMBER.fullmatch(text)
    multiple = multiples.get(match[2].lower()) if match else None
    if match is None or multiple is None:
        raise UsageError(
            f"not a whole number with a unit: {text[:60]!r}", where=flag, hint=f"{flag} {example}"
        )
    number = int(match[1]) * multiple
    if not 1 <= number <= at_most:
        raise UsageError(f"from 1 to {at_most}, got {number}", where=flag, hint=f"{flag} {example}")
    return number


def _count(flag: str, at_most: int) -> Callable[[str], int]:
    return lambda text: _scaled(text, flag, _COUNTS, "100, or 1k", at_most=at_most)


def _time(flag: str) -> Callable[[str], int]:
    return lambda text: _scaled(text, flag, _TIMES, "30s, 2m or 1h", at_most=units.LONGEST_S)


def _header(asked: Options, text: str) -> Options:
    name, colon, value = text.partition(": ")
    if not colon or not name or re.search(r"[\r\n\0]", text):
        raise UsageError(
            f"not a header: {text.split(' ')[0]!r}; wrk leaves out what is no name, colon, space and value",
            where="-H",
            hint="-H 'Name: value'",
        )
    return replace(asked, headers=(*asked.headers, (name, value)))


_VALUES: Final[dict[str, Callable[[Options, str], Options]]] = {
    "t": lambda asked, text: replace(asked, threads=_count("-t", MOST_THREADS)(text)),
    "c": lambda asked, text: replace(asked, connections=_count("-c", 2**32 - 1)(text)),
    "d": lambda asked, text: replace(asked, duration_s=_time("-d")(text)),
    "T": lambda asked, text: replace(asked, timeout_s=_time("--timeout")(text)),
    "s": lambda asked, text: replace(asked, script=text),
    "H": _header,
    "L": lambda asked, _: replace(asked, percentiles=True),
}


def plan_of(asked: Options, url: str) -> Plan:
    """The load: so many users, each with one connection. What it sends comes from the script."""
    target, _ = target_of(url)
    is_kept = not any(
        name.lower() == "connection" and value.lower() == "close" for name, value in asked.headers
    )
    return layouts.plan_of(
        target,
        Step("request", "GET", "/"),
        Closed(users=asked.connections),
        is_kept=is_kept,
        timeout_ns=asked.timeout_s * units.NS_PER_S,
        duration_ns=asked.duration_s * units.NS_PER_S,
        threads=asked.threads,
    )


def script_of(asked: Options, words: list[str]) -> ScriptSpec:
    """Return the settings of the script; `words` are the URL and the arguments after it."""
    from loadlens.engine import ScriptSpec

    url = words[0] if "://" in words[0] else f"http://{words[0]}"
    parts = urlsplit(url)
    target, path = target_of(url)
    script = asked.script
    if script is not None and Path(script).is_fifo():
        script = str(memory_file(read_file(script, "-s")))
    return ScriptSpec(
        script=script,
        scheme=parts.scheme,
        host=target.host,
        port=None if parts.port is None else str(parts.port),
        path=path,
        headers=asked.headers,
        args=tuple(words),
        threads=asked.threads,
        timeout_ns=asked.timeout_s * units.NS_PER_S,
        duration_ns=asked.duration_s * units.NS_PER_S,
    )


def _drive(asked: Options, words: list[str]) -> ExitCode:
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens_compat.wrk import layout as rendered
    from loadlens_compat.wrk.scripted import finish, prepare, run_scripted

    plan = plan_of(asked, words[0])
    sys.stdout.flush()  # the script writes to the same place by itself
    script = prepare(script_of(asked, words))
    if plan.streams[0].target.tls is not None:
        preflight.connect_once(plan)  # `prepare` has connected, but without TLS
    head = rendered.head(
        Hiding().text(words[0]),
        duration_s=asked.duration_s,
        threads=asked.threads,
        connections=asked.connections,
    )
    print("\n".join(head), flush=True)
    done = run_scripted(plan, script)
    measured_ns = round(done.result["measured_s"] * units.NS_PER_S)
    report = script.figures(measured_ns, asked.connections)
    figures = rendered.figures_of(done.result, report)
    print("\n".join(rendered.text(figures, percentiles=asked.percentiles)), flush=True)
    fault: ScriptError | None = None
    try:
        finish(script, measured_ns, figures.summary())
    except ScriptError as error:
        fault = error
    notes = _notes(asked, figures, report, done.result)
    print_lines(["", *layouts.own_account(_as_shown(plan, asked, script), done.result, notes)])
    if fault is not None:
        raise fault
    return done.exit_code


def _as_shown(plan: Plan, asked: Options, script: Script) -> Plan:
    """The plan with a step that says what was sent, for the line that describes the load."""
    line = script.first_line()
    method, _, rest = ("requests of", "", asked.script or "") if line is None else line.partition(" ")
    step = Step("request", method, rest.partition(" ")[0] if line is not None else rest)
    stream = replace(plan.streams[0], scenarios=(Scenario("request", 1.0, (step,)),))
    return replace(plan, streams=(stream,))


def _notes(asked: Options, figures: WrkFigures, report: Mapping[str, Any], result: Result) -> list[str]:
    """List where wrk's own figures would differ."""
    from loadlens_compat.wrk.layout import microseconds

    notes = []
    if report["added_by_wrk"]:
        p99 = dict(figures.percentiles)[99.0]
        notes.append(
            f"wrk would have added {report['added_by_wrk']} latencies that no request had, and shown "
            f"{microseconds(report['p99_by_wrk'])} at 99% instead of {microseconds(p99)}"
        )
    if figures.timeout:
        plural = "s" if figures.timeout != 1 else ""
        notes.append(
            f"{figures.timeout} request{plural} had no answer in {asked.timeout_s} s and ended there; wrk "
            "waits on, and counts only answers that come too late"
        )
    if left_over := asked.connections % asked.threads:
        notes.append(
            f"all {asked.connections} connections were made; wrk makes {asked.connections - left_over} "
            f"with {asked.threads} threads"
        )
    stream = result["streams"][0]
    if stream["tls"] is not None:
        notes.append("the certificate was not verified, as wrk does not")
    return notes
