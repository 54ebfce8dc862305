"""`loadlens ab`: ab's flags, our engine, ab's layout; then our own report of the same requests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from loadlens import __version__, named_pipes, units
from loadlens.cli import preflight
from loadlens.cli.hit import pem_of
from loadlens.cli.hit_requests import file_body, header_of, target_of
from loadlens.credentials import Hiding
from loadlens.errors import ExitCode, RecordError, UsageError
from loadlens.model.workload import Body, Closed, Plan, Step, Target
from loadlens_compat import layouts
from loadlens_compat.letters import Flag, getopt, literal, refuse, usage, whole

if TYPE_CHECKING:
    from loadlens_compat.ab.figures import AbFigures
    from loadlens_compat.ab.layout import Shown
    from loadlens_compat.logged import Logged

TIMED_REQUESTS: Final = 50_000  # what -t implies
_OWN_SOCKETS = "the engine makes its sockets itself"

FLAGS: Final = (
    Flag("n", "Number of requests to perform. Default: 1", "requests"),
    Flag("c", "Number of multiple requests to make at a time. Default: 1", "concurrency"),
    Flag("t", "Seconds to max. to spend on benchmarking; implies -n 50000 unless -n follows", "timelimit"),
    Flag("s", "Seconds to max. wait for each response. Default: 30", "timeout"),
    Flag("p", "File containing data to POST. Remember also to set -T", "postfile"),
    Flag("u", "File containing data to PUT. Remember also to set -T", "putfile"),
    Flag("T", "Content-type header of the data. Default: text/plain", "content-type"),
    Flag("m", "Method name", "method"),
    Flag("i", "Use HEAD instead of GET"),
    Flag("C", "Add cookie, eg. 'Apache=1234'. (repeatable)", "attribute"),
    Flag("H", "Add arbitrary header line, eg. 'Accept-Encoding: gzip'. (repeatable)", "attribute"),
    Flag("A", "Add basic authentication, user name and password with a colon between them", "attribute"),
    Flag("k", "Use HTTP KeepAlive feature. Default: a connection for each request"),
    Flag("l", "Accept variable document length (use this for dynamic pages)"),
    Flag("r", "Don't exit on socket receive errors. Here nothing does"),
    Flag("d", "Do not show percentiles served table"),
    Flag("S", "Do not show confidence estimators and warnings"),
    Flag("q", "Do not show progress when doing more than 150 requests"),
    Flag("g", "Output collected data to gnuplot format file", "filename"),
    Flag("e", "Output CSV file with percentages served", "filename"),
    Flag("w", "Print out results in HTML tables"),
    Flag("x", "String to insert as table attributes", "attributes"),
    Flag("y", "String to insert as tr attributes", "attributes"),
    Flag("z", "String to insert as td or th attributes", "attributes"),
    Flag("E", "Client certificate chain and private key in one PEM file", "certfile"),
    Flag("V", "Print version number and exit"),
    Flag("h", "Display usage information (this message)"),
    Flag("X", "the engine knows no HTTP proxies", "proxy:port", "the proxy's own URL, or the service's"),
    Flag(
        "P",
        "the engine knows no HTTP proxies",
        "attribute",
        "-H 'Proxy-Authorization: ...' at the proxy's URL",
    ),
    Flag("B", _OWN_SOCKETS, "address", "a routing rule of the system"),
    Flag("b", _OWN_SOCKETS, "windowsize", "net.ipv4.tcp_rmem and tcp_wmem of the system"),
    Flag("v", "no heads or bodies of answers are kept", "verbosity", "loadlens hit -v, or curl -v once"),
    Flag("I", "the name of the host goes into every TLS handshake", "", "loadlens hit --servername NAME"),
    Flag("Z", "cipher suites are those of rustls", "ciphersuite", "the server's own settings"),
    Flag("f", "TLS 1.2 and 1.3 are spoken, as the server likes", "protocol", "the server's own settings"),
)
FIRST_LINE: Final = "Usage: loadlens ab [options] [http[s]://]hostname[:port]/path"


@dataclass(frozen=True, slots=True)
class Options:
    """Values of the flags."""

    requests: int = 1
    concurrency: int = 1
    seconds: int | None = None
    timeout_s: int = 30
    method: str = ""
    body: Path | None = None
    content_type: str = "text/plain"
    cookies: tuple[str, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    is_kept: bool = False
    any_length: bool = False
    percentiles: bool = True
    confidence: bool = True
    quiet: bool = False
    rows: Path | None = None  # -g
    served: Path | None = None  # -e
    is_html: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)  # of table, row, cell
    certificate: Path | None = None

    @property
    def step_of_progress(self) -> int:
        """After how many requests ab says how many there were; 0: it says nothing."""
        return max(100, self.requests // 10) if self.requests > 150 and not self.quiet else 0


def ab(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTIONS] URL", help="ab's own flags, then the URL.", show_default=False),
    ] = None,
) -> None:
    """Take ab's flags, run our engine, print ab's layout.

    One connection for each request unless -k is given, as ab does. Figures follow ab's definitions; below its
    layout stands what Loadlens says of the same requests. A connection speaks HTTP/1.1.
    """
    letters = ["-h" if word == "--help" else word for word in words or ()]
    given, rest = getopt(letters, FLAGS, "ab")
    if any(flag.name == "h" for flag, _ in given):
        print("\n".join(usage(FIRST_LINE, FLAGS)))
        return
    if any(flag.name == "V" for flag, _ in given):
        print("\n".join(_banner()))
        return
    refuse(given, "ab")
    url = layouts.only_url(rest, "ab")
    asked = _options([(flag.name, value) for flag, value in given])
    target, path = target_of(url)
    sys.exit(int(_drive(asked, plan_of(asked, target, path), path)))


def _banner() -> list[str]:
    return [
        f"This is Loadlens {__version__} in the layout of ApacheBench, Version 2.3",
        "Requests are made and counted by Loadlens; what it says of them itself stands at the end",
        "",
    ]


_SWITCHES: Final[dict[str, dict[str, Any]]] = {
    "k": {"is_kept": True},
    "l": {"any_length": True},
    "r": {},
    "d": {"percentiles": False},
    "S": {"confidence": False},
    "q": {"quiet": True},
    "w": {"is_html": True},
}
_ATTRIBUTES: Final = {"x": "table", "y": "row", "z": "cell"}


def _options(given: list[tuple[str, str]]) -> Options:
    """The flags in their order: a later one counts, and -t after -n sets -n anew, as in ab."""
    from loadlens_compat.logged import MOST_REQUESTS

    asked = Options()
    for name, value in given:
        if name in _SWITCHES:
            asked = replace(asked, **_SWITCHES[name])
        elif name in _ATTRIBUTES:
            asked = replace(asked, is_html=True, attributes={**asked.attributes, _ATTRIBUTES[name]: value})
        else:
            asked = _VALUES[name](asked, value)
    if asked.requests > MOST_REQUESTS:
        raise UsageError(
            f"a row is kept of each request, so at most {MOST_REQUESTS}, got {asked.requests}",
            where="-n",
            hint=f"-n {MOST_REQUESTS}, or loadlens hit",
        )
    if asked.concurrency > asked.requests:
        raise UsageError(
            f"cannot use concurrency level greater than total number of requests: {asked.concurrency} "
            f"and {asked.requests}",
            where="-c and -n",
            hint=f"-c {asked.requests}",
        )
    return asked


def _timed(asked: Options, value: str) -> Options:
    return replace(asked, seconds=whole(value, "-t", at_least=1), requests=TIMED_REQUESTS)


def _head(asked: Options, _value: str = "") -> Options:
    return replace(asked, method=_alone(asked, "HEAD"))


def _sends(method: str) -> Callable[[Options, str], Options]:
    return lambda asked, value: replace(asked, method=_alone(asked, method), body=Path(value))


def _alone(asked: Options, method: str) -> str:
    if asked.method:
        raise UsageError(
            f"cannot mix {method} with other methods", where="-i, -p, -u and -m", hint="one of them, -m last"
        )
    return method


def _with_header(asked: Options, value: str) -> Options:
    name, content = header_of(literal(value, "-H"))
    layouts.refuse_engines_header(name)
    return replace(asked, headers=(*asked.headers, (name, content)))


def _with_credentials(asked: Options, value: str) -> Options:
    return replace(asked, headers=(*asked.headers, layouts.basic(value.lstrip())))


_VALUES: Final[dict[str, Callable[[Options, str], Options]]] = {
    "n": lambda asked, value: replace(asked, requests=whole(value, "-n", at_least=1)),
    "c": lambda asked, value: replace(asked, concurrency=whole(value, "-c", at_least=1)),
    "t": _timed,
    "s": lambda asked, value: replace(
        asked, timeout_s=whole(value, "-s", at_least=1, at_most=units.LONGEST_S)
    ),
    "i": _head,
    "p": _sends("POST"),
    "u": _sends("PUT"),
    "m": lambda asked, value: replace(asked, method=value),
    "T": lambda asked, value: replace(asked, content_type=literal(value, "-T")),
    "C": lambda asked, value: replace(asked, cookies=(*asked.cookies, literal(value, "-C"))),
    "H": _with_header,
    "A": _with_credentials,
    "g": lambda asked, value: replace(asked, rows=Path(value)),
    "e": lambda asked, value: replace(asked, served=Path(value)),
    "E": lambda asked, value: replace(asked, certificate=Path(value)),
}


def plan_of(asked: Options, target: Target, path: str) -> Plan:
    """The load: so many users, each with one request at a time.

    Raises:
        UsageError: A file that cannot be read, or is no certificate.
    """
    headers = list(asked.headers)
    if asked.cookies:
        headers.insert(0, ("Cookie", "; ".join(asked.cookies)))
    body = Body()
    if asked.body is not None:
        body = file_body(asked.body, "-p and -u")
        if not any(name.lower() == "content-type" for name, _ in headers):
            headers.insert(0, ("Content-Type", asked.content_type))
    if target.tls is not None:
        certificate = pem_of(asked.certificate, "-E", "CERTIFICATE")
        target = replace(target, tls=replace(target.tls, certificate=certificate))
    method = asked.method or "GET"
    step = Step("request", method, layouts.plain_path(path), headers=tuple(headers), body=body)
    return layouts.plan_of(
        target,
        step,
        Closed(users=asked.concurrency, requests=asked.requests),
        is_kept=asked.is_kept,
        timeout_ns=asked.timeout_s * units.NS_PER_S,
        duration_ns=None if asked.seconds is None else asked.seconds * units.NS_PER_S,
    )


class Progress:
    """`Completed N requests` on stderr, as often as ab says it."""

    def __init__(self, step: int, tell: Callable[[str], object]) -> None:
        self._step = step
        self._tell = tell
        self._told = 0

    def update(self, progress: Mapping[str, Any]) -> None:
        """Take the engine's snapshot."""
        stream = progress["streams"][0]
        self.reach(stream["answered"] + stream["failed"])

    def reach(self, count: int) -> None:
        """Say all that was passed since."""
        while self._step and self._told + self._step <= count:
            self._told += self._step
            self._tell(f"Completed {self._told} requests")

    def end(self, count: int) -> None:
        """Say that it is over."""
        self.reach(count)
        if self._step:
            self._tell(f"Finished {count} requests")


def _drive(asked: Options, plan: Plan, path: str) -> ExitCode:
    from loadlens import engine

    for file, flag in ((asked.rows, "-g"), (asked.served, "-e")):
        if file is not None:
            writable(file, flag)
    engine.refuse_faults(plan)
    preflight.connect_once(plan)
    from loadlens_compat.ab.figures import figures_of
    from loadlens_compat.logged import run_logged

    target = plan.streams[0].target
    step = asked.step_of_progress
    if not asked.is_html:
        print(
            "\n".join([*_banner(), f"Benchmarking {target.host} (be patient){'' if step else '...'}"]), end=""
        )
        print(end="\n" if step else "", flush=True)
    progress = Progress(step, lambda line: print(line, file=sys.stderr, flush=True))
    logged = run_logged(plan, on_progress=progress.update)
    figures = figures_of(
        logged.log,
        logged.done.result,
        closed_by_server=logged.log.closed_by_server,
        any_length=asked.any_length,
    )
    progress.end(figures.complete)
    _write_files(asked, figures, logged)
    shown = _shown(asked, plan, path, logged.done.result)
    _print(asked, plan, figures, shown, logged)
    return logged.done.exit_code


def writable(file: Path, flag: str) -> None:
    """Find out before the load whether a file can be written."""
    try:
        open(file, "w", opener=named_pipes.opener).close()
    except OSError as fault:
        raise UsageError(f"cannot write {str(file)!r}: {fault.strerror}", where=flag) from None


def _write_files(asked: Options, figures: AbFigures, logged: Logged) -> None:
    from loadlens_compat.ab.files import percentile_file, request_file

    if asked.served is not None and figures.complete:
        _write(asked.served, percentile_file(figures.totals_us))
    if asked.rows is not None and figures.complete:
        _write(asked.rows, request_file(logged.log, logged.done.result["t0_unix_ns"]))


def _write(file: Path, lines: Iterator[str]) -> None:
    try:
        with open(file, "w", encoding="utf-8", opener=named_pipes.opener) as out:
            out.writelines(f"{line}\n" for line in lines)
    except OSError as fault:
        raise RecordError(
            f"cannot write: {fault.strerror}", where=str(file), hint="free space there"
        ) from None


def _shown(asked: Options, plan: Plan, path: str, result: Mapping[str, Any]) -> Shown:
    from loadlens_compat.ab.layout import Shown

    target = plan.streams[0].target
    sessions = (result["streams"][0]["tls"] or {}).get("sessions") or {}
    is_name = not target.host.replace(".", "").isdecimal() and ":" not in target.host
    return Shown(
        host=target.host,
        port=target.port,
        path=Hiding().text(path),
        concurrency=asked.concurrency,
        is_kept=asked.is_kept,
        has_body=asked.body is not None,
        any_length=asked.any_length,
        percentiles=asked.percentiles,
        confidence=asked.confidence,
        tls=_agreed(next(iter(sessions), None)),
        server_name=target.host if is_name else None,
    )


def _agreed(session: str | None) -> str | None:
    """`TLSv1.3,TLS_AES_256_GCM_SHA384`; ab adds key lengths, which the engine does not report."""
    if session is None:
        return None
    version, _, suite = session.partition(" ")
    return f"{version.replace('_', '.')},{suite.replace('TLS13_', 'TLS_')}"


def _print(asked: Options, plan: Plan, figures: AbFigures, shown: Shown, logged: Logged) -> None:
    from html import escape

    from loadlens.report.write.terminal.printing import print_lines
    from loadlens_compat.ab.html import Attributes, html
    from loadlens_compat.ab.layout import text

    own = layouts.own_account(plan, logged.done.result, _notes(asked, plan, figures))
    if asked.is_html:
        table = html(figures, shown, Attributes(**asked.attributes))
        print_lines(["", "", *table, "<pre>", *map(escape, own), "</pre>"])
        return
    done = [] if asked.step_of_progress else ["..done"]
    print_lines([*done, "", "", *text(figures, shown), "", *own])


def _notes(asked: Options, plan: Plan, figures: AbFigures) -> list[str]:
    """List where ab's output says less than our record, or more."""
    notes = ["Server Software is not read: no heads of answers are kept"]
    if figures.length_failed:
        plural = "s" if figures.length_failed != 1 else ""
        notes.append(
            f"Length: {figures.length_failed} answer{plural} without the {figures.document_length} bytes of "
            f"the first; {figures.expected_but_other_length} of them came as expected (-l takes any length)"
        )
    if figures.receive_failed:
        notes.append("Receive: ab itself ends at the first of these unless -r is given")
    if plan.streams[0].target.tls is not None:
        notes.append("the certificate was not verified, as ab does not")
    return notes
