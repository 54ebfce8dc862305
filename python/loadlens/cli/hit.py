"""`loadlens hit URL`: one load, a live view, and a summary with its own reliability."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from loadlens import units
from loadlens.cli import answers
from loadlens.cli.hit_feeds import feeds_of
from loadlens.cli.hit_load import LoadFlags, load_of, quantity
from loadlens.cli.options import Expected, Headers, Insecure, Method, Out, Seed
from loadlens.errors import ExitCode, UsageError
from loadlens.model.workload import (
    Auth,
    Body,
    Closed,
    Connection,
    Cookies,
    Open,
    PemFile,
    Plan,
    Scenario,
    Step,
    Stream,
    Target,
    Tls,
)
from loadlens.present import load_text


def hit(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL to load: http://host[:port]/path?query.")],
    connections: Annotated[
        str | None,
        typer.Option(
            "-c",
            "--connections",
            metavar="N",
            help="Run N concurrent users, one connection each. With --rate: at most N requests in flight. "
            "Default: 10, or 1000 with --rate. Example: -c 100",
        ),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "-n", "--requests", metavar="N", help="Stop after exactly N requests in total. Example: -n 20k"
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "-d",
            "--duration",
            metavar="TIME",
            help="Measure for TIME; with --requests, until the first of the two is reached. Default: 10s, "
            "or the length of --stages or --steps; no limit with --requests, --replay "
            "or a unique --feed. Example: -d 30s",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "-r",
            "--rate",
            metavar="RATE",
            help="Send RATE requests per second in total, regardless of replies (open loop). Response time "
            "then runs from the moment each request was due. Example: -r 500, -r 3000/m",
        ),
    ] = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            metavar="LAW", help="Space the requests of --rate by LAW: constant or poisson. Default: constant."
        ),
    ] = None,
    overflow: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="With --rate, when all connections are busy: queue due requests (the wait counts as "
            "response time) or drop them (counted). Default: queue.",
        ),
    ] = None,
    ramp: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Rise evenly from 0 to --connections or --rate within TIME, then hold. The ramp is "
            "measured unless --warmup covers it. Default: 0s. Example: --ramp 10s --warmup 10s",
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            metavar="TIME:LEVEL,...",
            help="Ramp to each LEVEL within its TIME, starting from --connections, --rate or 0. A level is a "
            "number of users, or a rate with /s. Example: --stages 30s:100/s,1m:100/s,30s:0",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option(
            metavar="TIME:LEVEL,...",
            help="Hold each LEVEL for its TIME, one after the other. Example: --steps 30s:10,30s:20,30s:40",
        ),
    ] = None,
    bursts: Annotated[
        str | None,
        typer.Option(
            metavar="TIME:LEVEL,...",
            help="Hold each LEVEL for its TIME in turn, and repeat. Without a level: no requests. "
            "Example: --bursts 1s:500/s,9s",
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="FILE,...",
            help="Send one request at each due time in FILE: one time per line, ascending, in seconds or "
            "with a unit; or column=NAME of a CSV file. speed=2 halves the times; from=first starts at "
            "the first one. Example: --replay access.csv,column=time,from=first",
        ),
    ] = None,
    method: Method = None,
    header: Headers = None,
    body: Annotated[
        str | None,
        typer.Option(
            "-b",
            "--body",
            metavar="TEXT",
            help="Send TEXT as the body; {{...}} is filled in. Example: -b '{\"a\": {{int 1 100}}}'",
        ),
    ] = None,
    body_file: Annotated[
        Path | None,
        typer.Option("-f", "--body-file", metavar="FILE", help="Send the bytes of FILE unchanged."),
    ] = None,
    auth: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:...",
            help="Send credentials; the secret is read from the environment variable NAME: "
            "basic:USER:NAME or bearer:NAME. Example: --auth bearer:TOKEN",
        ),
    ] = None,
    cookies: Annotated[
        bool,
        typer.Option(
            "--cookies",
            help="Keep cookies per user and send them with that user's later requests.",
        ),
    ] = False,
    expect: Expected = None,
    check: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND:WHAT",
            help="Check each answer; repeatable, and each check is counted on its own. Kinds: contains:TEXT, "
            "regex:PATTERN, json:PATH=VALUE, exists:PATH, header:NAME=VALUE, size:<N (>N, N), latency:TIME "
            "(response time below TIME). Example: --check json:status=OK --check latency:200ms",
        ),
    ] = None,
    feed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE[,PICK]",
            help="Take values from the records of FILE (.csv, .tsv or .jsonl), as {{NAME.column}} in URL, "
            "headers and body; repeatable. PICK is shared (in turn, starting over at the end), "
            "unique (each once, then the load ends), random or user (one per user). Default: shared. "
            "Example: --feed users=users.csv,unique",
        ),
    ] = None,
    think: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Pause each user for TIME between requests: fixed, uniform:LOW,HIGH or exponential:MEAN. "
            "Default: none. Example: --think exponential:1s",
        ),
    ] = None,
    pace: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Make each user's requests due every TIME (same forms as --think), however long answers "
            "take; a late request counts from when it was due. Default: none. Example: --pace 1s",
        ),
    ] = None,
    connection: Annotated[
        str,
        typer.Option(
            metavar="POLICY",
            help="Reuse connections (keep), open one per request (new), or close each after K "
            "requests (K). Default: keep.",
        ),
    ] = "keep",
    warmup: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Run the load for TIME before measuring; --ramp and --stages start with it. Default: 0s.",
        ),
    ] = "0s",
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Fail a request after TIME, connecting included. Default: 30s."),
    ] = "30s",
    threads: Annotated[
        int | None,
        typer.Option(
            "-t",
            "--threads",
            metavar="N",
            help="Use N engine threads. Default: up to one per core, as many as the load needs.",
        ),
    ] = None,
    seed: Seed = None,
    insecure: Insecure = False,
    cacert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Trust the CAs in FILE (PEM) instead of the system's. Example: --cacert ca.pem",
        ),
    ] = None,
    cert: Annotated[
        Path | None,
        typer.Option(
            "-E",
            "--cert",
            metavar="FILE",
            help="Present the client certificate in FILE (PEM, followed by its chain).",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Read the private key of --cert from FILE (PEM, unencrypted). Default: the file of --cert.",
        ),
    ] = None,
    servername: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Send NAME as TLS server name and verify the certificate for it. Default: the URL's host.",
        ),
    ] = None,
    no_resume: Annotated[
        bool,
        typer.Option(
            "--no-resume",
            help="Do a full TLS handshake on every connection. Default: resume earlier sessions.",
        ),
    ] = False,
    driver: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Generate the load with another installed tool: wrk, ab, hey, oha, k6 or locust. "
            "What it does not report is null in --json and in the record. Default: our own engine. "
            "Example: --driver wrk",
        ),
    ] = None,
    out: Out = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON (docs/reference/hit-json.md).")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Print only the headline and the verdicts.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Print every percentile, and samples of the errors.")
    ] = False,
) -> None:
    """Load one URL, and report the result and how far to trust it.

    Ctrl-C stops the load and prints the results so far. Failed requests alone exit 0.
    """
    target, path = target_of(url)
    given = Tls(
        server_name=servername,
        ca=pem_of(cacert, "--cacert", "CERTIFICATE"),
        certificate=pem_of(cert, "--cert", "CERTIFICATE"),
        key=pem_of(key, "--key", "PRIVATE KEY"),
        insecure=insecure,
        resume=not no_resume,
    )
    target = _secured(target, given)
    body_part = _body(body, body_file)
    step = Step(
        name="request",
        method=method_of(method, body_part),
        path=path,
        headers=tuple(header_of(text) for text in header or ()),
        auth=_auth(auth, header or ()),
        body=body_part,
        expect=answers.expected(expect),
        checks=answers.checks(check or ()),
    )
    warmup_ns = quantity(units.duration_ns, warmup, "--warmup")
    flags = LoadFlags(
        connections=connections,
        requests=requests,
        duration=duration,
        rate=rate,
        arrivals=arrivals,
        overflow=overflow,
        think=think,
        pace=pace,
        ramp=ramp,
        stages=stages,
        steps=steps,
        bursts=bursts,
        replay=replay,
    )
    feeds = feeds_of(feed or (), step)
    load = load_of(flags, warmup_ns, feed_ends=any(feed.end == "stop" for feed in feeds))
    plan = Plan(
        seed=secrets.randbits(48) if seed is None else seed,
        streams=(
            Stream(
                name="load",
                role="load",
                target=target,
                scenarios=(Scenario("request", 1.0, (step,)),),
                workload=load.workload,
                connection=_connection(connection),
                timeout_ns=quantity(units.duration_ns, timeout, "--timeout"),
                cookies=_cookies(cookies, load.workload),
            ),
        ),
        threads=threads,
        feeds=feeds,
        warmup_ns=warmup_ns,
        duration_ns=load.duration_ns,
    )
    if driver is not None:
        sys.exit(int(_let_drive(driver, plan, out=out, as_json=as_json, quiet=quiet)))
    sys.exit(int(_drive(plan, out=out, as_json=as_json, quiet=quiet, verbose=verbose)))


def _drive(plan: Plan, *, out: Path | None, as_json: bool, quiet: bool, verbose: bool) -> ExitCode:
    from loadlens.live.hit_view import HitView
    from loadlens.machine import calibration
    from loadlens.run.single_load import run_hit

    with HitView(load_in_words(plan), shown=sys.stderr.isatty() and not (quiet or as_json)) as view:
        caution = None if quiet or as_json else view.caution
        done = run_hit(plan, out=out, on_progress=view.update, on_caution=caution)
    made = calibration.of_this_machine()
    if as_json:
        from loadlens.report.write.json import hit_as_json

        print(hit_as_json(done.result, plan, made))
    else:
        from loadlens.model.result import EngineResult
        from loadlens.report.write.terminal.hit_summary import print_hit

        read = EngineResult.from_json(done.result)
        print_hit(read, plan, calibrated=made, record=done.record, quiet=quiet, verbose=verbose)
    return done.exit_code


def _let_drive(name: str, plan: Plan, *, out: Path | None, as_json: bool, quiet: bool) -> ExitCode:
    from loadlens.run.external import DRIVERS
    from loadlens.run.external_load import run_external

    if name not in DRIVERS:
        raise UsageError(f"no driver {name!r}", where="--driver", hint=" or ".join(DRIVERS))
    done = run_external(plan, DRIVERS[name], out=out)
    if as_json:
        from loadlens.report.write.json import hit_as_json

        print(hit_as_json(done.result, plan))
    else:
        from loadlens.model.result import EngineResult
        from loadlens.report.write.terminal.external_summary import print_driven

        print_driven(EngineResult.from_json(done.result), plan, record=done.record, quiet=quiet)
    return done.exit_code


def target_of(url: str) -> tuple[Target, str]:
    """Split a URL into its target and its path with query.

    Raises:
        UsageError: It cannot be read, or carries credentials.
    """
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise UsageError(f"not a URL: {url!r} ({fault})", hint="http://127.0.0.1:8080/path") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"not an http or https URL: {url!r}", hint="http://127.0.0.1:8080/path")
    if parts.username is not None or parts.password is not None:
        raise UsageError("credentials in a URL would end up in records", hint="-H 'Authorization: ...'")
    host = parts.hostname
    literal = f"[{host}]" if ":" in host else host
    authority = literal if port is None else f"{literal}:{port}"
    path = parts.path or "/"
    secured = parts.scheme == "https"
    target = Target(
        host, port if port is not None else 443 if secured else 80, authority, Tls() if secured else None
    )
    return target, path + (f"?{parts.query}" if parts.query else "")


def pem_of(file: Path | None, flag: str, what: str) -> PemFile | None:
    """Read a flag's PEM file and check its kind of block; `None` without the flag."""
    if file is None:
        return None
    import hashlib

    try:
        content = file.read_bytes()
    except OSError as fault:
        raise UsageError(f"cannot read {str(file)!r}: {fault.strerror}", where=flag) from None
    if b"-----BEGIN " not in content or f"{what}-----".encode() not in content:
        raise UsageError(
            f"no {what.lower()} in PEM form in {str(file)!r}",
            where=flag,
            hint=f"a file with a line '-----BEGIN {what}-----'",
        )
    return PemFile(str(file.resolve()), hashlib.sha256(content).hexdigest())


def _secured(target: Target, given: Tls) -> Target:
    """Add the TLS flags to the target; the engine checks the content of the files."""
    if given.key is not None and given.certificate is None:
        raise UsageError("--key without its certificate", where="--key", hint="--cert FILE")
    if target.tls is None:
        if given not in (Tls(), Tls(insecure=True)):
            raise UsageError(
                "http URLs have no TLS",
                where="--cacert, --cert, --key, --servername, --no-resume",
                hint="an https:// URL",
            )
        return target
    return replace(target, tls=given)


def method_of(given: str | None, body: Body) -> str:
    """Return the given method; else GET, or POST with a body."""
    return (given or ("GET" if body.kind == "none" else "POST")).upper()


def header_of(text: str) -> tuple[str, str]:
    """Split `Name: value`."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"not a header: {text!r}", where="--header", hint="-H 'Name: value'")
    return name.strip(), value.strip()


def _auth(text: str | None, headers: list[str] | tuple[()]) -> Auth | None:
    if text is None:
        return None
    if any(header_of(header)[0].lower() == "authorization" for header in headers):
        raise UsageError(
            "credentials given twice", where="--auth and -H Authorization", hint="one of the two"
        )
    kind, _, rest = text.partition(":")
    user, _, name = rest.rpartition(":")
    if kind == "bearer" and rest and ":" not in rest:
        variable, auth = rest, Auth("bearer", token_env=rest)
    elif kind == "basic" and user and name and ":" not in user:
        variable, auth = name, Auth("basic", user=user, password_env=name)
    else:
        # The text itself may be a secret by mistake, so it is not shown.
        raise UsageError(
            "not a form of credentials",
            where="--auth",
            hint="basic:USER:NAME or bearer:NAME, where NAME is an environment variable",
        )
    if variable not in os.environ:
        raise UsageError(
            "the environment variable that --auth names is not set",
            where="--auth",
            hint="export it first; --auth takes the name of the variable, not the secret",
        )
    return auth


def _cookies(keep: bool, workload: Closed | Open) -> Cookies:
    if keep and isinstance(workload, Open):
        message = "cookies need users: --rate sends each request as a new user"
        raise UsageError(message, where="--cookies", hint="-c N without a rate or replay")
    return "keep" if keep else "iteration"


def _body(text: str | None, file: Path | None) -> Body:
    if text is not None and file is not None:
        raise UsageError("body given twice", where="--body and --body-file", hint="one of the two")
    if text is not None and text.startswith("@"):
        file, text = Path(text[1:]), None
    if text is not None:
        return Body(kind="text", text=text)
    if file is None:
        return Body()
    import hashlib

    try:
        content = file.read_bytes()
    except OSError as fault:
        raise UsageError(f"cannot read {str(file)!r}: {fault.strerror}", where="--body-file") from None
    return Body(kind="file", path=str(file.resolve()), digest=hashlib.sha256(content).hexdigest())


def _connection(policy: str) -> Connection:
    if policy == "keep":
        return Connection()
    if policy == "new":
        return Connection("new")
    if policy.isdecimal() and int(policy) > 0:
        return Connection("requests", requests=int(policy))
    raise UsageError(
        f"unknown connection policy {policy!r}", where="--connection", hint="keep, new or a number"
    )


def load_in_words(plan: Plan) -> str:
    """Describe the load in one line: method, path, loop, size."""
    stream = plan.streams[0]
    step, workload = stream.scenarios[0].steps[0], stream.workload
    loop = "closed" if isinstance(workload, Closed) else "open"
    noun = "connection" if isinstance(workload, Closed) and workload.profile is None else "user"
    return f"{step.method} {step.path} · {loop} · {load_text.size(workload, noun=noun)}"
