"""Turns the flags of `explain` into an aim: URLs of one service, what to watch, and the bounds."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import units
from loadlens.cli import answers, preflight
from loadlens.cli.fleet.nodes import FLEET, INSECURE_FLEET
from loadlens.cli.hit_load import quantity
from loadlens.cli.hit_requests import header_of, method_of, target_of
from loadlens.cli.options import (
    EXPECTED,
    HEADERS,
    HIDE,
    INSECURE,
    METHOD,
    SEED,
    TRACEPARENT,
    argument,
    hiding_of,
    option,
)
from loadlens.cli.outputs import OUTPUTS
from loadlens.cli.ui.page import UI
from loadlens.errors import UsageError
from loadlens.model.workload import Body, Step, Target

if TYPE_CHECKING:
    from loadlens.model.search import Aim
    from loadlens.model.topology import Otlp, Outside, Scrape, Service

SERVICE: Final = "service"  # what is at the URL is called so
SHORTEST_BUDGET_S: Final = 15
RATE_CAP, REMOTE_RATE_CAP = 20_000.0, 200.0  # requests per second, here and elsewhere
MOST_USERS: Final = 1024
START_WITHIN_S: Final = 60.0
ASK_WITHIN_S: Final = 5.0
NAME_LENGTH: Final = 40
NEARLY: Final = 0.92  # of two names that are as alike, one is a slip

# Groups of the help, in their order.
WATCHED: Final = "What is watched"
SEARCH: Final = "Search"
REQUEST: Final = "Request"
OUTPUT: Final = "Output"


@dataclass(frozen=True, slots=True)
class ExplainFlags:
    """The text of each option; `None` if absent and without a default."""

    targets: tuple[str, ...] = argument(
        "URL...",
        "URLs of one service to load; one far cheaper than the others is the probe. Or a study (its quick "
        "profile is run), or a record.",
    )
    start: str | None = option(
        "--start CMD",
        "Start the service with CMD (no shell). It is ready when the first URL answers, watched as with "
        "--pid, and stopped at the end. Example: --start 'node app.js'",
        group=WATCHED,
    )
    variables: tuple[str, ...] = option(
        "--env NAME,...",
        "Pass these variables of your environment to --start, which otherwise gets PATH, HOME, the locale "
        "and a few more. Example: --env DATABASE_URL",
        default=(),
        group=WATCHED,
    )
    pids: tuple[int, ...] = option(
        "--pid PID",
        "Watch this process, its threads and its children; repeatable. Default: on this machine, the process "
        "that listens on the URL's port. Example: --pid 4711",
        default=(),
        group=WATCHED,
        min=1,
    )
    no_pid: bool = option("--no-pid", "Watch no process and do not look for one.", group=WATCHED)
    metrics: str | None = option(
        "--metrics URL",
        "Scrape the service's metrics in the Prometheus text format once a second. Default: on this machine, "
        "/metrics of the service if it is in that format. Example: --metrics http://127.0.0.1:8081/metrics",
        group=WATCHED,
    )
    no_metrics: bool = option("--no-metrics", "Scrape no metrics and do not look for them.", group=WATCHED)
    otlp: str | None = option(
        "--otlp PORT",
        "Receive the service's OpenTelemetry spans and logs on this port of 127.0.0.1 (OTLP over HTTP). A "
        "service of --start gets the address in its environment. Example: --otlp 4318",
        group=WATCHED,
    )
    no_stacks: bool = option(
        "--no-stacks",
        "Do not sample the stacks of the service's threads, which name the line of code.",
        group=WATCHED,
    )
    no_peers: bool = option(
        "--no-peers",
        "Do not watch processes of this machine that the service calls, such as its database.",
        group=WATCHED,
    )
    requests: str | None = option(
        "--requests METRIC",
        "Compare the counter METRIC of --metrics, summed over its labels, with the requests sent. Example: "
        "--requests http_requests_total",
        group=WATCHED,
    )
    probe: str | None = option(
        "--probe URL",
        "Request this cheap URL alongside every load level, at most 20/s. Default: the cheapest of several "
        "URLs if it takes at most half as long as the costliest; else, on this machine, a health check, a "
        "path without a page, or HEAD of the URL.",
        group=WATCHED,
    )
    no_probe: bool = option(
        "--no-probe", "Look for no cheap request: the probe sends the load's own request.", group=WATCHED
    )
    budget: str = option(
        "--budget TIME",
        "Finish within TIME, start-up included; at least 15s. Default: 90s.",
        default="90s",
        group=SEARCH,
    )
    max_users: str | None = option(
        "--max-users N", "Never run more than N users, one request each. Default: 1024.", group=SEARCH
    )
    rate_cap: str | None = option(
        "--rate-cap RATE",
        "Never send more than RATE requests/s, failures and probes included. Default: 20k/s; beyond "
        "loopback 200/s.",
        group=SEARCH,
    )
    remote: bool = option(
        "--remote",
        "Allow a target that is not on this machine. Only with permission of its operator.",
        group=SEARCH,
    )
    seed: int | None = option(*SEED, group=SEARCH)
    fleet: str | None = option(*FLEET, group=SEARCH)
    insecure_fleet: bool = option(*INSECURE_FLEET, group=SEARCH)
    method: str | None = option(*METHOD, group=REQUEST)
    headers: tuple[str, ...] = option(*HEADERS, group=REQUEST)
    traceparent: bool = option(*TRACEPARENT, group=REQUEST)
    body: str | None = option(
        "-b --body TEXT",
        "Send TEXT as the body; {{...}} is filled in per request. Probes have no body.",
        group=REQUEST,
    )
    expect: str | None = option(*EXPECTED, group=REQUEST)
    timeout: str = option(
        "--timeout TIME",
        "Fail a request after TIME, connecting included. Default: 10s.",
        default="10s",
        group=REQUEST,
    )
    insecure: bool = option(*INSECURE, group=REQUEST)
    objectives: tuple[str, ...] = option(
        "--objective METRIC<BOUND",
        "Exit 99 if METRIC misses BOUND with its whole interval; repeatable. rate is the capacity; p50 to "
        "p999, mean and failed are those at the knee. Example: --objective 'p99<200ms' --objective "
        "'rate>500/s'",
        default=(),
        group=OUTPUT,
    )
    out: tuple[str, ...] = option(*OUTPUTS, group=OUTPUT)
    as_json: bool = option(
        "--json", "Print the answer as JSON (docs/reference/explain-json.md).", group=OUTPUT
    )
    ui: bool = option(*UI, group=OUTPUT)
    quiet: bool = option("-q --quiet", "Print only the limit.", group=OUTPUT)
    hide: tuple[str, ...] = option(*HIDE, group=OUTPUT)


def aim_of(urls: Sequence[str], flags: ExplainFlags) -> Aim:
    """Return the aim of the search.

    Raises:
        UsageError: A flag that cannot be read or used as given; nothing was started.
    """
    from loadlens.model.search import Aim, Bounds, Find
    from loadlens.study.objectives import objective

    targets = [target_of(url) for url in urls]
    target = targets[0][0]
    probe = None if flags.probe is None else _probe_of(flags.probe, target)
    _refuse_several_services([other for other, _ in targets], urls)
    is_here = _is_here(target)
    if not is_here and not flags.remote:
        raise UsageError(
            f"{target.authority} is not on this machine, and a search drives a service to its limit",
            where=urls[0],
            hint="--remote, if you may load it; --rate-cap limits the rate",
        )
    bounds = Bounds(
        budget_s=quantity(units.duration_ns, flags.budget, "--budget") / 1e9,
        rate_cap_per_s=_rate_cap(flags.rate_cap, is_here=is_here),
        most_users=MOST_USERS
        if flags.max_users is None
        else quantity(lambda text: units.count(text, at_least=1), flags.max_users, "--max-users"),
    )
    if bounds.budget_s < SHORTEST_BUDGET_S:
        raise UsageError(
            f"a budget of {bounds.budget_s:g} s is too short for a search",
            where="--budget",
            hint=f"at least {SHORTEST_BUDGET_S}s; the default is 90s",
        )
    for flag in ("pid", "metrics", "probe"):
        if getattr(flags, f"no_{flag}") and getattr(flags, "pids" if flag == "pid" else flag):
            raise UsageError(
                f"--{flag} and --no-{flag} exclude each other", where=f"--no-{flag}", hint="one of the two"
            )
    target = _trusting(target, flags)
    steps = _steps([path for _, path in targets], flags)
    notes: list[str] = []
    return Aim(
        origin=target.origin,
        tls=target.tls,
        steps=steps,
        probe=None if probe is None else _probe_step(probe, steps, flags),
        outside=_outside(target, flags, is_here=is_here, notes=notes),
        services=() if flags.start is None else (_started(target, targets[0][1], flags, is_here=is_here),),
        timeout_ns=quantity(lambda text: units.duration_ns(text, at_least_ns=1), flags.timeout, "--timeout"),
        bounds=bounds,
        seed=secrets.randbits(48) if flags.seed is None else flags.seed,
        cautions=tuple(notes),
        objectives=tuple(quantity(objective, text, "--objective") for text in flags.objectives),
        hide=hiding_of(flags.hide).names,
        find=Find(
            processes=not (flags.no_pid or flags.pids or flags.start),
            metrics=not (flags.no_metrics or flags.metrics),
            probe=not flags.no_probe and probe is None,
            peers=not (flags.no_peers or flags.no_pid),
        ),
        stacks=not flags.no_stacks,
    )


def _trusting(target: Target, flags: ExplainFlags) -> Target:
    if target.tls is None:
        return target
    return replace(target, tls=replace(target.tls, insecure=flags.insecure))


def _refuse_several_services(targets: Sequence[Target], urls: Sequence[str]) -> None:
    for target, url in zip(targets, urls, strict=True):
        if target.origin != targets[0].origin:
            raise UsageError(
                f"{url} is not on the same service as {urls[0]}",
                where="URL",
                hint="URLs of one scheme, host and port; one search per service",
            )


def _probe_of(url: str, target: Target) -> str:
    other, path = target_of(url)
    if other.origin != target.origin:
        raise UsageError(
            f"{url} is not on the same service as {target.origin}",
            where="--probe",
            hint="a cheap URL of the same service",
        )
    return path


def _is_here(target: Target) -> bool:
    """True if all addresses of a host are of this machine, containers included."""
    import ipaddress

    from loadlens.machine.listening_sockets import is_on_this_machine

    try:
        addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as fault:
        raise preflight.unknown_host(target.host, fault) from None
    distinct = {ipaddress.ip_address(str(address[4][0]).partition("%")[0]) for address in addresses}
    return all(address.is_loopback or is_on_this_machine(address) for address in distinct)


def _rate_cap(text: str | None, *, is_here: bool) -> float:
    if text is None:
        return RATE_CAP if is_here else REMOTE_RATE_CAP
    return quantity(units.rate_per_s, text, "--rate-cap")


# --- requests --------------------------------------------------------------------------------------------


def _steps(paths: Sequence[str], flags: ExplainFlags) -> tuple[Step, ...]:
    body = Body() if flags.body is None else Body(kind="text", text=flags.body)
    if len(set(paths)) < len(paths):
        raise UsageError(
            "the same URL given twice", where="URL", hint="each URL once; a mix has equal shares"
        )
    names: list[str] = []
    for path in paths:
        names.append(_name_of(path, names))
    steps = (
        Step(
            name=name,
            method=method_of(flags.method, body),
            path=path,
            headers=tuple(header_of(text) for text in flags.headers),
            body=body,
            expect=answers.expected(flags.expect),
        )
        for name, path in zip(names, paths, strict=True)
    )
    return tuple(step.traced() if flags.traceparent else step for step in steps)


def _probe_step(path: str, steps: Sequence[Step], flags: ExplainFlags) -> Step:
    """Build the probe request: always GET, with the same headers."""
    name = _name_of(path, [step.name for step in steps])
    headers = tuple(header_of(text) for text in flags.headers)
    step = Step(name=name, method="GET", path=path, headers=headers)
    return step.traced() if flags.traceparent else step


def _name_of(path: str, taken: Sequence[str]) -> str:
    """Name a step by its path without query, numbered if the name is taken."""
    plain = path.partition("?")[0]
    short = plain if len(plain) <= NAME_LENGTH else f"{plain[: NAME_LENGTH - 2]}.."
    name, number = short, 2
    while name in taken:
        name, number = f"{short} #{number}", number + 1
    return name


# --- what is watched, what is started --------------------------------------------------------------------


def _outside(target: Target, flags: ExplainFlags, *, is_here: bool, notes: list[str]) -> Outside:
    from loadlens.model.topology import Outside

    if flags.variables and flags.start is None:
        raise UsageError(
            "--env is for the service of --start", where="--env", hint="--start CMD, or no --env"
        )
    if flags.pids and flags.start is not None:
        raise UsageError(
            "a service started by --start is watched without --pid",
            where="--pid and --start",
            hint="one of the two",
        )
    for pid in flags.pids:
        if not Path(f"/proc/{pid}/stat").is_file():
            raise UsageError(f"no process {pid}", where="--pid", hint="pgrep -f NAME, or ss -ltnp")
    if flags.pids and not is_here:
        raise UsageError(
            "cannot watch a process on another machine", where="--pid", hint="run loadlens on that machine"
        )
    host, ports = target.host, [("http", target.port)]
    scrape = None
    if flags.metrics is not None:
        source, scrape = _scrape(flags.metrics, flags, notes)
        if source.host != target.host and not (is_here and _is_here(source)):
            raise UsageError(
                f"metrics come from {source.host}, but the load goes to {target.host}",
                where="--metrics",
                hint="the metrics of the same service, under the same host name",
            )
        host, port = source.host, source.port
        if port != target.port:
            ports.append(("metrics", port))
            scrape = replace(scrape, port="metrics")
    elif flags.requests is not None:
        raise UsageError("--requests needs --metrics", where="--requests", hint="add --metrics URL")
    return Outside(
        name=SERVICE,
        host=f"[{host}]" if ":" in host else host,
        is_here=is_here,
        ports=tuple(ports),
        pids=tuple(flags.pids),
        scrape=scrape,
        otlp=_otlp(flags.otlp),
    )


def _otlp(text: str | None) -> Otlp | None:
    """Return the port for spans, which must be free."""
    if text is None:
        return None
    from loadlens.model.topology import Otlp
    from loadlens.testbed import ports

    port = quantity(lambda number: units.count(number, at_least=1), text, "--otlp")
    if not 1024 <= port <= 65_535:
        raise UsageError(f"port {port} is not between 1024 and 65535", where="--otlp", hint="--otlp 4318")
    if not ports.is_free(port):
        raise UsageError(
            f"another process listens on port {port}",
            where="--otlp",
            hint="another port, and the service's OTEL_EXPORTER_OTLP_ENDPOINT with it",
        )
    return Otlp(port)


def _scrape(url: str, flags: ExplainFlags, notes: list[str]) -> tuple[Target, Scrape]:
    """Return the target of --metrics and what to scrape; tried once if the service is already running."""
    from loadlens import http_client
    from loadlens.model.topology import Scrape

    target, path = target_of(url)
    target = _trusting(target, flags)
    if flags.start is None:
        text = _metrics(target, path)
        try:
            names = http_client.metric_names(text)
        except ValueError:
            names = frozenset()
        if not names:
            raise UsageError(f"no metrics in the Prometheus text format at {url}", where="--metrics")
        if flags.requests is not None and flags.requests not in names:
            _refuse_a_slip(flags.requests, names, url, text)
            notes.append(f"{flags.requests} had no sample before the first request: it counts from 0 there")
    return target, Scrape(path=path, requests=flags.requests, tls=target.tls)


def _refuse_a_slip(name: str, names: Iterable[str], url: str, text: str) -> None:
    """A counter may begin with its first request; a name that is nearly another one is a slip."""
    import difflib

    declared = {
        line.split()[2] for line in text.splitlines() if line.startswith("# ") and len(line.split()) > 2
    }
    near = difflib.get_close_matches(name, names, n=1, cutoff=NEARLY)
    if near and not {name, name.removesuffix("_total")} & declared:
        raise UsageError(f"{url} has no metric {name!r}", where="--requests", hint=f"did you mean {near[0]}?")


def _metrics(target: Target, path: str) -> str:
    import http.client

    from loadlens import http_client
    from loadlens.present import failure_text

    try:
        page = http_client.metrics(target.host, target.port, path, target.tls, within_s=ASK_WITHIN_S)
    except (OSError, http.client.HTTPException) as fault:
        reason = failure_text.explained(
            "tls" if http_client.is_of_tls(fault) else "", http_client.words(fault)
        )
        raise UsageError(
            f"no metrics from {target.origin}{path}: {reason.words}",
            where="--metrics",
            hint=reason.for_explain or "the URL of its metrics, or --no-metrics",
        ) from None
    if page.status != 200:
        raise UsageError(f"status {page.status} from {target.origin}{path}", where="--metrics")
    return page.text


def _started(target: Target, path: str, flags: ExplainFlags, *, is_here: bool) -> Service:
    from loadlens.model.topology import Ready, Service

    if not is_here:
        raise UsageError("cannot start a service on another machine", where="--start", hint="a loopback URL")
    if _somebody_listens(target):
        raise UsageError(
            f"another process already listens on {target.authority}",
            where="--start",
            hint="--pid PID to watch it, or stop it first",
        )
    ready = Ready(
        path=path.partition("{{")[0],
        status=None,
        within_s=START_WITHIN_S,
        address=(target.host, target.port),
        tls=target.tls,
    )
    # Dollars in the command are not our placeholders.
    return Service(
        name=SERVICE,
        start=(flags.start or "").replace("$", "$$"),
        ports=(),
        env=tuple((name, f"{{{{env {name}}}}}") for name in _variables(flags.variables)),
        ready=ready,
        otlp=_otlp(flags.otlp),
    )


def _variables(texts: Iterable[str]) -> Iterator[str]:
    """Yield the names of --env, each of which is set."""
    for name in (name.strip() for text in texts for name in text.split(",")):
        if name not in os.environ:
            hint = f"export {name}=..." if name.isidentifier() else "--env NAME, the name alone"
            raise UsageError(f"no variable {name!r} in the environment", where="--env", hint=hint)
        yield name


def _somebody_listens(target: Target) -> bool:
    try:
        socket.create_connection((target.host, target.port), timeout=1.0).close()
    except OSError:
        return False
    return True
