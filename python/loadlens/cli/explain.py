"""`loadlens explain`: raises the load by itself and reports the limit of the service, with evidence."""

from __future__ import annotations

import secrets
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.cli.options import Expected, Headers, Insecure, Method, Out, Seed
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from loadlens.run.progress import Progress
    from loadlens.search import Aim

STUDY_FILE = "study.yaml"


def explain(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...",
            help="URLs of one service to load; the cheapest of several is also the probe. Or a study "
            "(its quick profile is run), or a record.",
        ),
    ],
    pid: Annotated[
        list[int] | None,
        typer.Option(
            "--pid",
            metavar="PID",
            min=1,
            help="Watch a running process, its threads and its children; repeatable. Example: --pid 4711",
        ),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="CMD",
            help="Start the service with CMD (no shell). It is ready when the first URL answers, watched as "
            "with --pid, and stopped at the end. Example: --start 'node app.js'",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            metavar="URL",
            help="Scrape the service's metrics in the Prometheus text format once a second. "
            "Example: --metrics http://127.0.0.1:8080/metrics",
        ),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests",
            metavar="METRIC",
            help="Compare the counter METRIC of --metrics, summed over its labels, with the requests sent. "
            "Example: --requests http_requests_total",
        ),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option(
            "--probe",
            metavar="URL",
            help="Request this cheap URL alongside every load level, at most 20/s. Default: the "
            "cheapest of several URLs, else the only one.",
        ),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Finish within TIME, start-up included; at least 15s. Default: 90s.",
        ),
    ] = "90s",
    rate_cap: Annotated[
        str | None,
        typer.Option(
            "--rate-cap",
            metavar="RATE",
            help="Never send more than RATE requests/s, failures and probes included. Default: 20k/s; "
            "beyond loopback 200/s.",
        ),
    ] = None,
    max_users: Annotated[
        str | None,
        typer.Option(
            "--max-users", metavar="N", help="Never run more than N users, one request each. Default: 1024."
        ),
    ] = None,
    remote: Annotated[
        bool,
        typer.Option(
            "--remote",
            help="Allow a target that is not on this machine. Only with permission of its operator.",
        ),
    ] = False,
    method: Method = None,
    header: Headers = None,
    body: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--body",
            metavar="TEXT",
            help="Send TEXT as the body; {{...}} is filled in per request. Probes have no body.",
        ),
    ] = None,
    expect: Expected = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Fail a request after TIME, connecting included. Default: 10s."),
    ] = "10s",
    insecure: Insecure = False,
    seed: Seed = None,
    out: Out = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON (docs/reference/explain-json.md).")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the limit.")] = False,
) -> None:
    """Find what limits a service: the limit, its evidence, the capacity, what to do, what is not known.

    Doubles the users from one until throughput stops growing, with the probe at every level. Ends early
    when requests fail. Undecided is an answer too, and exits 0. Ctrl-C gives the answer so far.
    """
    flags = ExplainFlags(
        pids=tuple(pid or ()),
        start=start,
        metrics=metrics,
        requests=requests,
        probe=probe,
        method=method,
        headers=tuple(header or ()),
        body=body,
        expect=expect,
        budget=budget,
        rate_cap=rate_cap,
        max_users=max_users,
        timeout=timeout,
        seed=seed,
        insecure=insecure,
        remote=remote,
    )
    show = _Show(as_json=as_json, quiet=quiet)
    path = _path_of(targets)
    if path is None:
        sys.exit(int(_of_urls(aim_of(targets, flags), out, show)))
    if flags != ExplainFlags():
        raise UsageError(
            f"{path} defines its own load, so the flags for URLs do not apply",
            where="explain",
            hint="only --out, --json and --quiet, or a URL instead",
        )
    sys.exit(int(_of_path(path, out, show)))


class _Show:
    """Output format of the answer."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet

    @property
    def is_silent(self) -> bool:
        """True if nothing may be printed before the answer."""
        return self._as_json or self._quiet

    def answer(self, record: Path, *, is_kept: bool) -> None:
        """Read a record and print its answer."""
        from loadlens.record import open_run
        from loadlens.search import explanation

        answer = explanation(open_run(record), is_kept=is_kept)
        if self._as_json:
            from loadlens.report.write.json import explanation_as_json

            print(explanation_as_json(answer))
        else:
            from loadlens.report.write.terminal.explanation_text import print_explanation

            print_explanation(answer, quiet=self._quiet)


def _path_of(targets: list[str]) -> Path | None:
    """Return the study or record among the targets; `None` for URLs."""
    path = Path(targets[0])
    if "://" in targets[0]:
        return None
    if not path.exists():
        if targets[0].startswith(("/", "./", "../")) or path.suffix in (".yaml", ".yml"):
            raise UsageError(
                f"there is no study or record {targets[0]}", where="explain", hint="a URL: http://..."
            )
        return None
    if len(targets) > 1:
        raise UsageError(
            f"{path} cannot be combined with other targets",
            where="explain",
            hint="one study or record, or URLs",
        )
    return path


def _of_urls(aim: Aim, out: Path | None, show: _Show) -> ExitCode:
    from loadlens.run.interrupts import Stopped
    from loadlens.search import explore

    with ExitStack() as stack:
        record = _record(out, "explain", stack)
        try:
            with ExitStack() as drawing:
                title = f"explain {aim.origin}: {', '.join(step.path for step in aim.steps)}"
                done = explore(aim, record, progress=_listener(show, title, aim.bounds.budget_s, drawing))
        except Stopped as stopped:
            return stopped.code  # before anything was measured
        show.answer(record, is_kept=out is not None)
        return done.code or ExitCode.OK


def _of_path(path: Path, out: Path | None, show: _Show) -> ExitCode:
    from loadlens.record import is_record

    if path.is_dir() and is_record(path):
        show.answer(path, is_kept=True)
        return ExitCode.OK
    from loadlens.cli.run import planned_study
    from loadlens.live.run_view import run_view
    from loadlens.run import secret_variables
    from loadlens.run.interrupts import Stopped
    from loadlens.run.progress import PlainPrinter, Silent
    from loadlens.run.study_runner import run_study

    study = planned_study(path, quick=True, settings=[])
    secret_variables.refuse_missing(study, str(path / STUDY_FILE if path.is_dir() else path))
    code = ExitCode.OK
    with ExitStack() as stack:
        record = _record(out, study.name, stack)
        try:
            with ExitStack() as drawing:
                progress: Progress = Silent() if show.is_silent else PlainPrinter()
                if not show.is_silent and sys.stderr.isatty():
                    progress = drawing.enter_context(run_view())
                run_study(study, record, progress=progress)
        except Stopped as stopped:
            code = stopped.code
            if not is_record(record):
                return code
        show.answer(record, is_kept=out is not None)
    return code


def _record(out: Path | None, name: str, stack: ExitStack) -> Path:
    """Return the folder of the record: --out, or a temporary one."""
    if out is not None:
        return out
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="loadlens-"))
    return Path(folder) / f"{name}-{secrets.token_hex(4)}"  # marks processes: no other run may be called so


def _listener(show: _Show, title: str, budget_s: float, drawing: ExitStack) -> Progress:
    from loadlens.live.explain_view import explain_view
    from loadlens.run.progress import PlainPrinter, Silent

    if show.is_silent:
        return Silent()
    if sys.stderr.isatty():
        return drawing.enter_context(explain_view(title, budget_s))
    return PlainPrinter()
