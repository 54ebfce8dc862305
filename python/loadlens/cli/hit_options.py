"""The options of `hit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.cli.completion import drivers
from loadlens.cli.fleet.nodes import FLEET, INSECURE_FLEET
from loadlens.cli.options import (
    EXPECTED,
    HEADERS,
    HIDE,
    INSECURE,
    METHOD,
    SAMPLES,
    SEED,
    TRACEPARENT,
    argument,
    option,
)
from loadlens.cli.outputs import OUTPUTS
from loadlens.cli.ui.page import UI

# Groups of the help, in their order.
LOAD: Final = "Load"
SHAPE: Final = "Shape"
REQUEST: Final = "Request"
DATA: Final = "Data"
TLS: Final = "TLS"
OUTPUT: Final = "Output"
ADVANCED: Final = "Advanced"


@dataclass(frozen=True, slots=True)
class HitOptions:
    """The text of each option; `None` if absent and without a default."""

    urls: tuple[str, ...] = argument(
        "URL...", "URL to load: http://host[:port]/path?query. Several of one service share the load.", ()
    )
    connections: str | None = option(
        "-c --connections N",
        "Run N concurrent users, one connection each. With --rate: at most N requests in flight. Default: "
        "10, or 1000 with --rate. Example: -c 100",
        group=LOAD,
    )
    requests: str | None = option(
        "-n --requests N", "Stop after exactly N requests in total. Example: -n 20k", group=LOAD
    )
    duration: str | None = option(
        "-d --duration TIME",
        "Measure for TIME; with --requests, until the first of the two is reached. Default: 10s, or the "
        "length of --stages or --steps; no limit with --requests, --replay or a unique --feed. Example: -d "
        "30s",
        group=LOAD,
    )
    rate: str | None = option(
        "-r --rate RATE",
        "Send RATE requests per second in total, regardless of replies (open loop). Response time then "
        "runs from the moment each request was due. Example: -r 500, -r 3000/m",
        group=LOAD,
    )
    think: str | None = option(
        "--think TIME",
        "Pause each user for TIME between requests: fixed, uniform:LOW,HIGH or exponential:MEAN. Default: "
        "none. Example: --think exponential:1s",
        group=LOAD,
    )
    pace: str | None = option(
        "--pace TIME",
        "Make each user's requests due every TIME (same forms as --think), however long answers take; a "
        "late request counts from when it was due. Default: none. Example: --pace 1s",
        group=LOAD,
    )
    warmup: str = option(
        "--warmup TIME",
        "Run the load for TIME before measuring; --ramp and --stages start with it. Default: 0s.",
        default="0s",
        group=LOAD,
    )
    ramp: str | None = option(
        "--ramp TIME",
        "Rise evenly from 0 to --connections or --rate within TIME, then hold. The ramp is measured unless "
        "--warmup covers it. Default: 0s. Example: --ramp 10s --warmup 10s",
        group=SHAPE,
    )
    stages: str | None = option(
        "--stages TIME:LEVEL,...",
        "Ramp to each LEVEL within its TIME, starting from --connections, --rate or 0. A level is a number "
        "of users, or a rate with /s. Example: --stages 30s:100/s,1m:100/s,30s:0",
        group=SHAPE,
    )
    steps: str | None = option(
        "--steps TIME:LEVEL,...",
        "Hold each LEVEL for its TIME, one after the other. Example: --steps 30s:10,30s:20,30s:40",
        group=SHAPE,
    )
    bursts: str | None = option(
        "--bursts TIME:LEVEL,...",
        "Hold each LEVEL for its TIME in turn, and repeat. Without a level: no requests. Example: --bursts "
        "1s:500/s,9s",
        group=SHAPE,
    )
    replay: str | None = option(
        "--replay FILE,...",
        "Send one request at each due time in FILE: one time per line, ascending, in seconds or with a "
        "unit; or column=NAME of a CSV file. speed=2 halves the times; from=first starts at the first one. "
        "Example: --replay access.csv,column=time,from=first",
        group=SHAPE,
    )
    arrivals: str | None = option(
        "--arrivals LAW",
        "Space the requests of --rate by LAW: constant or poisson. Default: constant.",
        group=SHAPE,
    )
    overflow: str | None = option(
        "--overflow WHAT",
        "With --rate, when all connections are busy: queue due requests (the wait counts as response time) "
        "or drop them (counted). Default: queue.",
        group=SHAPE,
    )
    method: str | None = option(*METHOD, group=REQUEST)
    headers: tuple[str, ...] = option(*HEADERS, group=REQUEST)
    traceparent: bool = option(*TRACEPARENT, group=REQUEST)
    body: str | None = option(
        "-b --body --data TEXT",
        "Send TEXT as the body; {{...}} is filled in. @FILE sends the bytes of FILE unchanged, @- those of "
        "standard input. Example: -b '{\"a\": {{int 1 100}}}'",
        group=REQUEST,
    )
    body_file: Path | None = option(
        "-f --body-file FILE", "Send the bytes of FILE unchanged; - is standard input.", group=REQUEST
    )
    auth: str | None = option(
        "--auth KIND:...",
        "Send credentials; the secret is read from the environment variable NAME: basic:USER:NAME or "
        "bearer:NAME. Example: --auth bearer:TOKEN",
        group=REQUEST,
    )
    targets: str | None = option(
        "--targets FILE",
        "Load the requests in FILE, as vegeta has them: METHOD URL or a URL per line, then its headers, then "
        "@FILE for a body; - is standard input. Example: --targets urls.txt",
        group=REQUEST,
    )
    cookies: bool = option(
        "--cookies", "Keep cookies per user and send them with that user's later requests.", group=REQUEST
    )
    timeout: str = option(
        "--timeout TIME",
        "Fail a request after TIME, connecting included. Default: 30s.",
        default="30s",
        group=REQUEST,
    )
    expect: str | None = option(*EXPECTED, group=REQUEST)
    checks: tuple[str, ...] = option(
        "--check KIND:WHAT",
        "Check each answer; repeatable, and each check is counted on its own. Kinds: contains:TEXT, "
        "regex:PATTERN, json:PATH=VALUE, exists:PATH, header:NAME=VALUE, size:<N (>N, N), latency:TIME "
        "(response time below TIME). Example: --check json:status=OK --check latency:200ms",
        default=(),
        group=REQUEST,
    )
    resolve: str | None = option(
        "--resolve HOST:PORT:ADDRESS",
        "Connect to ADDRESS for the URL's HOST and PORT; Host header and TLS name stay. Example: --resolve "
        "api.test:443:127.0.0.1",
        group=REQUEST,
    )
    feeds: tuple[str, ...] = option(
        "--feed NAME=FILE[,PICK]",
        "Take values from the records of FILE (.csv, .tsv or .jsonl), as {{NAME.column}} in URL, headers "
        "and body; repeatable. PICK is shared (in turn, starting over at the end), unique (each once, then "
        "the load ends), random or user (one per user). Default: shared. Example: --feed "
        "users=users.csv,unique",
        default=(),
        group=DATA,
    )
    insecure: bool = option(*INSECURE, group=TLS)
    cacert: Path | None = option(
        "--cacert FILE",
        "Trust the CAs in FILE (PEM) instead of the system's. Example: --cacert ca.pem",
        group=TLS,
    )
    cert: Path | None = option(
        "-E --cert FILE", "Present the client certificate in FILE (PEM, followed by its chain).", group=TLS
    )
    key: Path | None = option(
        "--key FILE",
        "Read the private key of --cert from FILE (PEM, unencrypted). Default: the file of --cert.",
        group=TLS,
    )
    servername: str | None = option(
        "--servername NAME",
        "Send NAME as TLS server name and verify the certificate for it. Default: the URL's host.",
        group=TLS,
    )
    no_resume: bool = option(
        "--no-resume",
        "Do a full TLS handshake on every connection. Default: resume earlier sessions.",
        group=TLS,
    )
    objectives: tuple[str, ...] = option(
        "--objective METRIC<BOUND",
        "Require a bound; repeatable. Met, missed or undecided by the whole 95 % interval; exit 99 if one is "
        "missed. Metrics: p50, p75, p90, p95, p99, p99.9 and mean of the response time, rate, failed (any "
        "request without success), and those of studies. Example: --objective 'p99<200ms' --objective "
        "'failed<1%'",
        default=(),
        group=OUTPUT,
    )
    out: tuple[str, ...] = option(*OUTPUTS, group=OUTPUT)
    samples: str | None = option(*SAMPLES, group=OUTPUT)
    as_json: bool = option("--json", "Print the result as JSON (docs/reference/hit-json.md).", group=OUTPUT)
    ui: bool = option(*UI, group=OUTPUT)
    quiet: bool = option("-q --quiet", "Print only the headline and the verdicts.", group=OUTPUT)
    verbose: bool = option("-v --verbose", "Print every percentile, and samples of the errors.", group=OUTPUT)
    connection: str = option(
        "--connection POLICY",
        "Reuse connections (keep), open one per request (new), or close each after K requests (K). "
        "Default: keep.",
        default="keep",
        group=ADVANCED,
    )
    threads: int | None = option(
        "-t --threads N",
        "Use N engine threads. Default: up to one per core, as many as the load needs.",
        group=ADVANCED,
    )
    seed: int | None = option(*SEED, group=ADVANCED)
    hide: tuple[str, ...] = option(*HIDE, group=OUTPUT)
    save_study: str | None = option(
        "--save-study FILE",
        "Also write the load as a study to FILE, to repeat it, vary it or start the service with it. "
        "Example: --save-study study.yaml",
        group=OUTPUT,
    )
    driver: str | None = option(
        "--driver NAME",
        "Generate the load with another installed tool: wrk, ab, hey, oha, k6 or locust. What it does not "
        "report is null in --json and in the record. Default: our own engine. Example: --driver wrk",
        group=ADVANCED,
        shell_complete=drivers,
    )
    fleet: str | None = option(*FLEET, group=ADVANCED)
    insecure_fleet: bool = option(*INSECURE_FLEET, group=ADVANCED)
    follow: str | None = option("--follow --location N", "Not supported.", hidden=True)
    proxy: str | None = option("-x --proxy URL", "Not supported.", hidden=True)
    unix: str | None = option("--unix --unix-socket PATH", "Not supported.", hidden=True)
    compressed: bool = option("--compressed", "Not supported.", hidden=True)
