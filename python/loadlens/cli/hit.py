"""`loadlens hit URL`: one load, a live view, and a summary with its own reliability."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from loadlens import engine, units
from loadlens.cli import plan_faults, preflight
from loadlens.cli.fleet.nodes import Wanted, nodes_of, peak_of
from loadlens.cli.hit_feeds import feeds_of
from loadlens.cli.hit_load import HitLoad, load_keys, load_of, quantity
from loadlens.cli.hit_options import HitOptions
from loadlens.cli.hit_requests import requests_of, shown_plan
from loadlens.cli.options import Example, choice, hiding_of, read_file, refuse_stream, verb
from loadlens.cli.outputs import Outputs, outputs_of
from loadlens.cli.ui.page import page_of
from loadlens.errors import ExitCode, PlanError, UsageError, nearest
from loadlens.model.workload import (
    KEPT_ROWS,
    Closed,
    Connection,
    Cookies,
    Open,
    PemFile,
    Plan,
    Stream,
    Target,
    Tls,
)
from loadlens.present import terminal

if TYPE_CHECKING:
    from loadlens.machine.calibration import Calibration
    from loadlens.model.report import ObjectiveRow
    from loadlens.model.result import EngineResult
    from loadlens.model.study import Objective
    from loadlens.model.workload import Feed, Scenario
    from loadlens.report.write.result import Result
    from loadlens.run.external import Driver
    from loadlens.run.single_load import HitDone

MOST_PEM_BYTES: Final = 16 << 20


@verb(
    HitOptions,
    Example("loadlens hit http://127.0.0.1:8080/", "10 users for 10 s"),
    Example("loadlens hit URL -r 500 -d 1m", "500 requests/s, whatever the answers"),
    Example("loadlens hit URL -X POST -b '{\"id\": {{int 1 9}}}'", "a body that changes"),
    Example("loadlens hit URL --objective 'p99<200ms'", "exit 99 if missed"),
)
def hit(given: HitOptions) -> None:
    """Load a URL, and report the result and how far to trust it.

    Several URLs of one service are drawn at random, each as often as the others, and have a row each.
    Ctrl-C stops the load and prints the results so far. Failed requests alone exit 0, unless none succeeded.
    """
    made = load(given)
    if given.as_json:
        print(made.as_json())
    elif made.result.driver is not None:
        from loadlens.report.write.terminal.external_summary import print_driven

        print_driven(made.result, made.plan, record=made.done.record, quiet=given.quiet)
    else:
        from loadlens.report.write.terminal.hit_summary import Screen, print_hit

        screen = Screen(
            objectives=made.objectives,
            redirect=made.redirect,
            calibrated=made.calibrated,
            record=made.done.record,
            quiet=given.quiet,
            verbose=given.verbose,
            width=terminal.width(),
        )
        print_hit(made.result, made.plan, screen)
    if (lost := made.done.lost) is not None:
        sys.stderr.write(f"loadlens: the record is incomplete: {lost.message}\n  at {lost.where}\n")
    made.outputs.write(made.as_json, made.as_result)
    sys.exit(int(made.exit_code))


@dataclass(frozen=True, slots=True)
class Load:
    """A load that was made, as every medium shows it: without the values that are hidden."""

    plan: Plan
    done: HitDone
    content: dict[str, Any]  # the result as the engine wrote it
    result: EngineResult
    objectives: tuple[ObjectiveRow, ...]
    calibrated: Calibration | None
    redirect: str
    outputs: Outputs

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command."""
        from loadlens.run import trial_faults

        if self.done.lost is not None:
            return ExitCode.RECORD
        if self.done.exit_code is not ExitCode.OK:
            return self.done.exit_code
        if trial_faults.is_all_failed(self.result):
            return ExitCode.TESTBED
        is_missed = any(row.state == "bad" for row in self.objectives)
        return ExitCode.OBJECTIVE if is_missed else ExitCode.OK

    def as_json(self) -> str:
        """Return what --json prints."""
        from loadlens.report.write.json import hit_as_json

        return hit_as_json(self.content, self.plan, self.calibrated, self.objectives)

    def as_result(self) -> Result:
        """Return the result of our own engine for files and for Python."""
        from loadlens.report.write import result_of
        from loadlens.report.write.terminal.hit_summary import Screen, summary
        from loadlens.run import trial_faults

        is_invalid = self.done.exit_code is ExitCode.INVALID
        is_failed = not is_invalid and trial_faults.is_all_failed(self.result)
        return result_of.of_load(
            f"{self.plan.streams[0].target.origin}: {load_in_words(self.plan)}",
            self.result,
            summary(self.result, self.plan, Screen(redirect=self.redirect, quiet=True, width=sys.maxsize)),
            self.objectives,
            failure="no request succeeded" if is_failed else "",
            error="; ".join(trial_faults.faults_of(self.result)) if is_invalid else "",
        )


def load(given: HitOptions) -> Load:
    """Make a load; only the live view on a terminal is shown, and nothing with --quiet or --json.

    Raises:
        UsageError: Flags that cannot be read, or do not go together; nothing was sent.
        TestbedError: Nothing accepts connections there.
        EngineError: The engine fails to run the plan.
    """
    _refuse_unsupported(given)
    target, scenarios = requests_of(given)
    target = _secured(target, given)
    if given.resolve is not None:
        target = _resolved(target, given.resolve)
    objectives = _objectives(given)
    outputs = outputs_of(given.out)
    if given.driver is not None and (outputs.sent or set(outputs.files) - {"json"}):
        raise UsageError("results of other tools are written as JSON only", where="--out", hint="json=FILE")
    warmup_ns = quantity(units.duration_ns, given.warmup, "--warmup")
    feeds = feeds_of(given.feeds, [step for scenario in scenarios for step in scenario.steps])
    samples = _samples(given, outputs)
    shape = load_of(given, warmup_ns, feed_ends=any(feed.end == "stop" for feed in feeds))
    if given.save_study is not None:
        _save_study(given, target, scenarios, shape, feeds, samples)
    plan = Plan(
        seed=secrets.randbits(48) if given.seed is None else given.seed,
        streams=(
            Stream(
                name="load",
                role="load",
                target=target,
                scenarios=scenarios,
                workload=shape.workload,
                connection=_connection(given.connection),
                timeout_ns=quantity(units.duration_ns, given.timeout, "--timeout"),
                cookies=_cookies(given.cookies, shape.workload),
            ),
        ),
        threads=given.threads,
        feeds=feeds,
        warmup_ns=warmup_ns,
        duration_ns=shape.duration_ns,
    )
    return _made(plan, given, objectives, outputs, samples)


def _save_study(
    given: HitOptions,
    target: Target,
    scenarios: Sequence[Scenario],
    load: HitLoad,
    feeds: Sequence[Feed],
    samples: int | None,
) -> None:
    """Write the load as a study, and say what it needs.

    Raises:
        UsageError: A study cannot hold it, or the file is there.
    """
    from loadlens.cli.init import save
    from loadlens.draft import from_load

    for value, flag in ((given.resolve, "--resolve"), (given.threads, "--threads")):
        if value is not None:
            raise UsageError(f"a study has no {flag}", where="--save-study", hint="the same without it")
    body = given.body or ""
    file = body[1:] if body.startswith("@") else given.body_file
    if file is not None and not Path(file).is_file():
        raise UsageError("a study needs the body in a file", where="--save-study", hint="-f FILE")
    if load.duration_ns is None and any(feed.end == "stop" for feed in feeds) and given.requests is None:
        raise UsageError("a study needs another end than that of a feed", where="--save-study", hint="-d 1m")
    text, variables = from_load.text_of(
        target,
        scenarios,
        load_keys(given, load),
        expect=given.expect,
        feeds=feeds,
        objectives=given.objectives,
        seed=given.seed,
        samples=samples,
        hide=hiding_of(given.hide).names,
    )
    save(text, str(given.save_study), force=False)
    for name, what in variables.items():
        sys.stderr.write(f"loadlens: export {name} before the study runs: {what}\n")


def _samples(given: HitOptions, outputs: Outputs) -> int | None:
    """Return how many rows of requests the record keeps; None: all.

    Raises:
        UsageError: There is no record, or its rows are those of another tool.
    """
    if given.samples is None:
        return KEPT_ROWS
    if given.driver is not None:
        raise UsageError(
            f"a record keeps every request that {given.driver} reports", where="--samples", hint="without it"
        )
    if outputs.record is None and given.save_study is None and not given.ui:
        raise UsageError("without a record no rows are kept", where="--samples", hint="a record: -o DIR")
    return quantity(units.kept_rows, given.samples, "--samples")


def _made(
    plan: Plan,
    given: HitOptions,
    objectives: tuple[Objective, ...],
    outputs: Outputs,
    samples: int | None,
) -> Load:
    driver = None if given.driver is None else _driver(given.driver)
    if driver is not None and given.fleet is not None:
        raise UsageError(
            f"a fleet cannot divide a load of {driver.name}", where="--fleet", hint="without --driver"
        )
    is_carried_here = driver is None and given.fleet is None
    if is_carried_here:
        try:
            engine.refuse_too_large(plan)
        except PlanError as fault:
            raise plan_faults.error_of(fault) from None
    from loadlens.live.hit_view import HitView  # what a refusal does not need
    from loadlens.run.single_load import run_hit

    hiding = hiding_of(given.hide)
    shown = shown_plan(plan, hiding)
    is_silent = given.quiet or given.as_json or driver is not None
    is_shown = terminal.can_draw(sys.stderr) and not is_silent
    wanted = Wanted(given.fleet, given.insecure_fleet)
    with ExitStack() as stack:
        nodes = stack.enter_context(
            nodes_of(wanted, [plan.streams[0].target.host], peak_per_s=peak_of(plan.streams[0].workload))
        )
        out = outputs.folder("hit", stack) if given.ui and not outputs.sent else outputs.record_of("hit")
        stack.enter_context(page_of(out or Path(), is_wanted=given.ui))
        stack.enter_context(outputs.exporting(out))
        view = stack.enter_context(HitView(load_in_words(shown), shown=is_shown, has_lines=not is_silent))
        caution = None if is_silent else view.caution
        try:
            done = run_hit(
                plan,
                out=out,
                driver=driver,
                hide=hiding.names,
                samples=samples,
                on_ready=lambda: None if nodes is not None and nodes.away else preflight.connect_once(plan),
                on_progress=view.update,
                on_caution=caution,
                make_load=None if nodes is None else nodes.make_load,
                is_accepted=is_carried_here,
            )
        except PlanError as fault:
            raise plan_faults.error_of(fault) from None
    done = replace(done, record=outputs.record)  # a temporary one is gone
    from loadlens.machine import calibration
    from loadlens.model.result import EngineResult
    from loadlens.report.write.hit_figures import objective_rows
    from loadlens.report.write.terminal.hit_summary import is_all_redirects

    content = hiding.knowing(hiding.values_in(json.loads(plan.to_json()))).content(done.result)
    result = EngineResult.from_json(content)
    is_redirect = driver is None and is_all_redirects(result.streams[0])
    return Load(
        plan=shown,
        done=done,
        content=content,
        result=result,
        objectives=objective_rows(result, objectives),
        calibrated=None if driver is not None or nodes is not None else calibration.of_this_machine(),
        redirect=hiding.text(_redirect_of(plan)) if is_redirect else "",
        outputs=outputs,
    )


def _redirect_of(plan: Plan) -> str:
    """Ask once where a redirect leads to; empty if that cannot be asked without side effects."""
    import http.client
    from urllib.parse import urljoin

    from loadlens import http_client

    stream = plan.streams[0]
    if len(stream.scenarios) > 1:
        return ""
    target, step = stream.target, stream.scenarios[0].steps[0]
    texts = (step.path, *(value for _, value in step.headers))
    if step.method not in ("GET", "HEAD") or step.auth is not None or any("{{" in text for text in texts):
        return ""
    headers = (("Host", target.authority), *step.headers)
    method: Literal["GET", "HEAD"] = "GET" if step.method == "GET" else "HEAD"
    try:
        location = http_client.redirect_of(
            target.host, target.port, method, step.path, headers, target.tls, within_s=preflight.WITHIN_S
        )
    except (OSError, http.client.HTTPException):
        return ""
    return urljoin(f"{target.origin}{step.path}", location) if location else ""


def _refuse_unsupported(given: HitOptions) -> None:
    """Refuse what other tools have by name, with what to do instead."""
    refusals = (
        (given.follow, "--follow", "redirects are not followed", "the URL that it leads to: curl -sIL URL"),
        (given.proxy, "--proxy", "HTTP proxies are not supported", "the proxy's own URL, or the service's"),
        (
            given.unix,
            "--unix",
            "UNIX sockets are not supported",
            "socat TCP-LISTEN:8080,fork,reuseaddr UNIX-CONNECT:PATH, which costs throughput",
        ),
        (
            given.compressed or None,
            "--compressed",
            "responses are not decompressed, so checks would see compressed bytes",
            "-H 'Accept-Encoding: gzip' to receive them compressed",
        ),
    )
    for value, flag, message, hint in refusals:
        if value is not None:
            raise UsageError(message, where=flag, hint=hint)


def _resolved(target: Target, text: str) -> Target:
    """Connect to the address of --resolve; Host header, TLS name and verification stay those of the URL."""
    host, _, rest = text.partition(":")
    port, _, address = rest.partition(":")
    address = address.strip("[]")
    if not host or not address or not port.isdecimal():
        raise UsageError(f"not HOST:PORT:ADDRESS: {text!r}", where="--resolve", hint="api.test:443:127.0.0.1")
    if (host.lower(), int(port)) != (target.host.lower(), target.port):
        raise UsageError(
            f"the URL goes to {target.host}:{target.port}, not to {host}:{port}",
            where="--resolve",
            hint=f"{target.host}:{target.port}:{address}",
        )
    tls = target.tls
    if tls is not None and tls.server_name is None:
        tls = replace(tls, server_name=target.host)
    return replace(target, host=address, tls=tls)


def _objectives(given: HitOptions) -> tuple[Objective, ...]:
    if given.driver is not None and (len(given.urls) > 1 or given.targets is not None):
        raise UsageError("other tools take one URL", where="--driver", hint="one URL, or our own engine")
    if not given.objectives:
        return ()
    if given.driver is not None:
        raise UsageError(
            "figures of other tools have no intervals to judge by",
            where="--objective and --driver",
            hint="one of the two",
        )
    from loadlens.study.objectives import objective

    objectives = tuple(quantity(objective, text, "--objective") for text in given.objectives)
    from loadlens.report.write.hit_figures import is_known_metric

    for each in objectives:
        if not is_known_metric(each.metric):
            raise UsageError(
                f"`hit` has no figure for {each.metric}", where="--objective", hint="a study with objectives"
            )
    return objectives


def _driver(name: str) -> Driver:
    from loadlens.run.external import DRIVERS

    return DRIVERS[choice(name, tuple(DRIVERS), "--driver", "driver")]


def pem_of(file: Path | None, flag: str, what: str) -> PemFile | None:
    """Read a flag's PEM file and check its kind of block; `None` without the flag."""
    if file is None:
        return None
    import hashlib

    refuse_stream(str(file), flag)  # the engine reads it again
    content = read_file(str(file), flag, MOST_PEM_BYTES)
    if b"-----BEGIN " not in content or f"{what}-----".encode() not in content:
        raise UsageError(
            f"no {what.lower()} in PEM form in {str(file)!r}",
            where=flag,
            hint=f"a file with a line '-----BEGIN {what}-----'",
        )
    return PemFile(str(file.resolve()), hashlib.sha256(content).hexdigest())


def _secured(target: Target, given: HitOptions) -> Target:
    """Add the TLS options to the target; the engine checks the content of the files."""
    tls = Tls(
        server_name=given.servername,
        ca=pem_of(given.cacert, "--cacert", "CERTIFICATE"),
        certificate=pem_of(given.cert, "--cert", "CERTIFICATE"),
        key=pem_of(given.key, "--key", "PRIVATE KEY"),
        insecure=given.insecure,
        resume=not given.no_resume,
    )
    if tls.key is not None and tls.certificate is None:
        raise UsageError("--key without its certificate", where="--key", hint="--cert FILE")
    if target.tls is None:
        if tls not in (Tls(), Tls(insecure=True)):
            raise UsageError(
                "http URLs have no TLS",
                where="--cacert, --cert, --key, --servername, --no-resume",
                hint="an https:// URL",
            )
        return target
    return replace(target, tls=tls)


def _cookies(keep: bool, workload: Closed | Open) -> Cookies:
    if keep and isinstance(workload, Open):
        message = "cookies need users: --rate sends each request as a new user"
        raise UsageError(message, where="--cookies", hint="-c N without a rate or replay")
    return "keep" if keep else "iteration"


def _connection(policy: str) -> Connection:
    if policy == "keep":
        return Connection()
    if policy == "new":
        return Connection("new")
    if policy.isdecimal() and int(policy) > 0:
        return Connection("requests", requests=int(policy))
    near = nearest(policy, ("keep", "new"))
    hint = "keep, new or a number of requests" if near is None else f"did you mean {near}?"
    raise UsageError(f"no connection policy {policy!r}", where="--connection", hint=hint)


def load_in_words(plan: Plan) -> str:
    """Describe the load in one line: method, path, loop, size."""
    from loadlens.present import load_text

    stream = plan.streams[0]
    workload = stream.workload
    loop = "closed" if isinstance(workload, Closed) else "open"
    noun = "connection" if isinstance(workload, Closed) and workload.profile is None else "user"
    return f"{load_text.requests(stream.scenarios)} · {loop} · {load_text.size(workload, noun=noun)}"
