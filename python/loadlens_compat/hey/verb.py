"""`loadlens hey`: hey's flags, our engine, hey's layout; then our own report of the same requests."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from loadlens import units
from loadlens.cli import preflight
from loadlens.cli.hit_load import quantity
from loadlens.cli.hit_requests import bytes_body, file_body, target_of
from loadlens.errors import ExitCode, UsageError
from loadlens.model.workload import Body, Closed, Plan, Step, Target, Think
from loadlens_compat import layouts
from loadlens_compat.letters import Flag, go_flags, literal, refuse, usage, whole

FLAGS: Final = (
    Flag("n", "Number of requests to run, a multiple of -c. Default: 200", "requests"),
    Flag("c", "Number of workers to run concurrently. Default: 50", "workers"),
    Flag("q", "Rate limit, in queries per second for each worker. Default: none", "rate"),
    Flag("z", "Duration of application to send requests; -n is ignored. Examples: -z 10s -z 3m", "duration"),
    Flag("o", "Output type: csv, a row for each request. Default: a summary", "csv"),
    Flag("m", "HTTP method. Default: GET", "method"),
    Flag("H", 'Custom HTTP header, -H "Accept: text/html". (repeatable)', "header"),
    Flag("t", "Timeout for each request in seconds. Default: 20", "timeout"),
    Flag("A", "HTTP Accept header", "type"),
    Flag("d", "HTTP request body", "body"),
    Flag("D", "HTTP request body from file", "file"),
    Flag("T", "Content-type. Default: text/html", "type"),
    Flag("U", "User-Agent", "agent"),
    Flag("a", "Basic authentication, username:password", "credentials"),
    Flag("host", "HTTP Host header", "host"),
    Flag("disable-compression", "Ask for no gzip"),
    Flag("disable-keepalive", "Make a new connection for each request"),
    Flag("disable-redirects", "Take redirections as answers. Here they always are"),
    Flag("cpus", "Number of threads. Default: one per core, as far as useful", "threads"),
    Flag("help", "Display usage information (this message)"),
    Flag("x", "the engine knows no HTTP proxies", "host:port", "the proxy's own URL, or the service's"),
    Flag("h2", "the engine speaks HTTP/1.1", "", "h2load"),
    Flag("h", "deprecated in hey", "header", "-H, or -help"),
)
FIRST_LINE: Final = "Usage: loadlens hey [options...] <url>"
_HEADER = re.compile(r"([\w-]+):\s*(.+)")


@dataclass(frozen=True, slots=True)
class Options:
    """Values of the flags."""

    requests: int = 200
    workers: int = 50
    rate_per_s: float | None = None
    duration_ns: int | None = None
    is_csv: bool = False
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "text/html"),)
    timeout_s: int = 20
    text: str | None = None
    file: Path | None = None
    is_kept: bool = True
    may_compress: bool = True
    threads: int | None = None

    def with_header(self, name: str, value: str) -> Options:
        """With a header in the place of one of the same name."""
        others = (pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=(*others, (name, value)))


def hey(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTIONS] URL", help="hey's own flags, then the URL.", show_default=False),
    ] = None,
) -> None:
    """Take hey's flags, run our engine, print hey's layout.

    Figures follow hey's definitions; below its layout stands what Loadlens says of the same requests, with -o
    csv on stderr.
    """
    asked_words = ["-help" if word in ("-h", "--help") else word for word in words or ()]
    given, rest = go_flags(asked_words, FLAGS, "hey")
    if any(flag.name == "help" for flag, _ in given):
        print("\n".join(usage(FIRST_LINE, FLAGS)))
        return
    refuse(given, "hey")
    url = layouts.only_url(rest, "hey")
    asked = _options([(flag.name, value) for flag, value in given])
    target, path = target_of(url)
    sys.exit(int(_drive(asked, plan_of(asked, target, path))))


_SWITCHES: Final[dict[str, dict[str, Any]]] = {
    "disable-compression": {"may_compress": False},
    "disable-keepalive": {"is_kept": False},
    "disable-redirects": {},
}


def _options(given: list[tuple[str, str]]) -> Options:
    from loadlens_compat.logged import MOST_REQUESTS

    asked = Options()
    for name, value in given:
        asked = replace(asked, **_SWITCHES[name]) if name in _SWITCHES else _VALUES[name](asked, value)
    if asked.duration_ns is not None:
        return replace(asked, requests=MOST_REQUESTS)
    if asked.requests < asked.workers:
        raise UsageError("-n cannot be less than -c", where="-n and -c", hint=f"-c {asked.requests}")
    return replace(asked, requests=asked.requests // asked.workers * asked.workers)


def _header(asked: Options, value: str) -> Options:
    header = _HEADER.match(literal(value, "-H"))
    if header is None:
        raise UsageError(f"not a header: {value.split(' ')[0]!r}", where="-H", hint="-H 'Name: value'")
    layouts.refuse_engines_header(header[1])
    return asked.with_header(header[1], header[2])


def _credentials(asked: Options, value: str) -> Options:
    if ":" not in value.strip(":"):
        # The text is a secret, so it is not shown.
        raise UsageError("not credentials", where="-a", hint="-a user:password")
    return asked.with_header(*layouts.basic(value))


def _rate(asked: Options, value: str) -> Options:
    try:
        rate = float(value)
    except ValueError:
        raise UsageError(f"not a rate: {value!r}", where="-q", hint="-q 50") from None
    if not 0 <= rate <= units.NS_PER_S:
        raise UsageError(f"a rate is from 0 (none) to 1e9, got {value}", where="-q", hint="-q 50")
    return replace(asked, rate_per_s=rate or None)


def _output(asked: Options, value: str) -> Options:
    if value != "csv":
        raise UsageError(f"only csv, got {value!r}", where="-o", hint="-o csv, or loadlens hit --json")
    return replace(asked, is_csv=True)


def _number(asked: Options, value: str) -> Options:
    from loadlens_compat.logged import MOST_REQUESTS

    return replace(asked, requests=whole(value, "-n", at_least=1, at_most=MOST_REQUESTS))


def _named(name: str, flag: str) -> Callable[[Options, str], Options]:
    return lambda asked, value: asked.with_header(name, literal(value, flag))


_VALUES: Final[dict[str, Callable[[Options, str], Options]]] = {
    "n": _number,
    "c": lambda asked, value: replace(asked, workers=whole(value, "-c", at_least=1)),
    "q": _rate,
    "z": lambda asked, value: replace(
        asked, duration_ns=quantity(lambda text: units.duration_ns(text, at_least_ns=1), value, "-z")
    ),
    "o": _output,
    "m": lambda asked, value: replace(asked, method=value.upper()),
    "H": _header,
    "t": lambda asked, value: replace(
        asked, timeout_s=whole(value, "-t", at_least=1, at_most=units.LONGEST_S)
    ),
    "A": _named("Accept", "-A"),
    "d": lambda asked, value: replace(asked, text=value),
    "D": lambda asked, value: replace(asked, file=Path(value)),
    "T": _named("Content-Type", "-T"),
    "U": _named("User-Agent", "-U"),
    "a": _credentials,
    "host": _named("Host", "-host"),
    "cpus": lambda asked, value: replace(asked, threads=whole(value, "-cpus", at_least=1)),
}


def plan_of(asked: Options, target: Target, path: str) -> Plan:
    """The load: so many workers, each with one request at a time, who hold themselves back to a rate.

    Raises:
        UsageError: A file that cannot be read.
    """
    body = Body()
    if asked.file is not None:
        body = file_body(asked.file, "-D")
    elif asked.text:
        body = bytes_body(asked.text.encode())
    names = {name.lower() for name, _ in asked.headers}
    if asked.may_compress and asked.method != "HEAD" and not names & {"accept-encoding", "range"}:
        asked = asked.with_header("Accept-Encoding", "gzip")
    step = Step("request", asked.method, layouts.plain_path(path), headers=asked.headers, body=body)
    rate = asked.rate_per_s
    pace = None if rate is None else Think("fixed", ns=max(1, round(units.NS_PER_S / rate)))
    timeout_ns = asked.timeout_s * units.NS_PER_S
    return layouts.plan_of(
        target,
        step,
        Closed(users=asked.workers, requests=asked.requests, pace=pace),
        is_kept=asked.is_kept,
        timeout_ns=timeout_ns,
        duration_ns=asked.duration_ns,
        drain_ns=0 if asked.duration_ns is None else timeout_ns,  # workers end what they have begun
        threads=asked.threads,
    )


def _drive(asked: Options, plan: Plan) -> ExitCode:
    from loadlens import engine

    engine.refuse_faults(plan)
    preflight.connect_once(plan)
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens_compat.hey import layout as rendered
    from loadlens_compat.logged import run_logged

    logged = run_logged(plan)
    result = logged.done.result
    account = layouts.own_account(plan, result, _notes(asked, plan, result["streams"][0]["status"]))
    if asked.is_csv:
        for line in rendered.csv(logged.log):
            print(line)
        print(*account, sep="\n", file=sys.stderr)
    else:
        summary = rendered.text(rendered.figures_of(logged.log, result["measured_s"]))
        print_lines([*summary.removesuffix("\n").split("\n"), *account])
    return logged.done.exit_code


def _notes(asked: Options, plan: Plan, statuses: dict[str, int]) -> list[str]:
    """List where hey does more than this verb."""
    notes = []
    redirected = sum(n for code, n in statuses.items() if code.startswith("3"))
    if redirected:
        notes.append(f"{redirected} redirections are answers here: none was followed")
    if asked.rate_per_s is not None:
        notes.append(
            "-q is a pace: a late request counts from when it was sent above, from when it was due below"
        )
    if plan.streams[0].target.tls is not None:
        notes.append("the certificate was not verified, as hey does not")
    return notes
