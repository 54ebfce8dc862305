"""The keys of what is under test: services, how they become ready, how data are put back."""

from __future__ import annotations

import re
from typing import Final, get_args

from loadlens.model.topology import (
    BALANCER_SETTINGS,
    BALANCERS,
    BALANCING_POLICIES,
    PASSING,
    Calibrate,
    Inside,
    Limits,
    Otlp,
    Ready,
    Reset,
    Scrape,
    Stop,
    Use,
)
from loadlens.study.parse import make_services
from loadlens.study.parse.keys_faults import FAULTS
from loadlens.study.parse.schema import PLAIN, At, Block, Form, Key, Many, Named
from loadlens.study.parse.values import (
    COMMAND,
    CORES,
    CPUS,
    FIXED_NAME,
    LINE,
    PACKAGE,
    PATH,
    SECONDS,
    SECONDS_ABOVE_0,
    SIZE,
    STATUS,
    TESTBED_TEXT,
    TEXT,
    TRUTH,
    choices,
    counts,
)
from loadlens.study.tree import Tree

SIGNALS: Final = ("TERM", "INT", "QUIT", "HUP", "KILL", "USR1", "USR2")
_OTHER_USES: Final = ("haproxy", "compose")


def _one_build(node: Tree, at: At) -> None:
    kinds = [key for key in node.items if key != "debian"]
    if len(kinds) != 1:
        at.fault(node.line, f"a build is one thing, got {len(kinds)}", "python: requirements.txt")
    if "debian" in node.items and kinds != ["mix"]:
        at.fault_of(node, "debian", "debian goes with mix", "mix: mix.exs")


def _reset_does_something(node: Tree, at: At) -> None:
    if not {"run", "files", "verify", "sql", "verify_sql"} & set(node.items):
        at.fault(node.line, "a reset that does nothing", "run: a command, or files: [what to remove]")


def _period_of_a_share(node: Tree, at: At) -> None:
    if "period" in node.items and "cpu" not in node.items:
        at.fault_of(node, "period", "a period without a share of CPU time", "cpu: 0.5")


BUILD: Final = Block(
    "build",
    make_services.build,
    {
        "python": Key(
            LINE, "a requirements file; installed into an environment of its own, cached by digest"
        ),
        "node": Key(
            LINE, "`package.json`: installed by npm in a copy of the folder, where the service then runs"
        ),
        "maven": Key(LINE, "`pom.xml`: packaged in a copy of the folder, where the service then runs"),
        "mix": Key(LINE, "`mix.exs`: compiled in a copy of the folder, where the service then runs"),
        "debian": Key(
            Many(PACKAGE, or_one=True),
            "mix: packages of the distribution, unpacked and not installed; DEBIAN_ROOT says where",
        ),
        "run": Key(COMMAND, "a command, run each time in the service's folder"),
    },
    "How the service's environment is made: isolated, and cached by digest.",
    check=_one_build,
)

CALIBRATE: Final = Block(
    "calibration",
    Calibrate,
    {
        "run": Key(COMMAND, "a command; the last line that it prints is the value", required=True),
        "gives": Key(FIXED_NAME, "the name that stands for it: `work` for `$work`", required=True),
    },
    "A value that depends on the machine, such as how many rounds take 20 ms of CPU time. The command is run "
    "once a run (with factors in it, once for each of its texts), after the build and before the first "
    "trial, in the service's folder and environment and within its `limits`, while nothing else runs; "
    "`--resume` keeps the value. `$NAME` can then stand in what the testbed runs: start, setup, env and "
    "reset of any service.",
)

READY: Final = Block(
    "readiness",
    Ready,
    {
        "get": Key(PATH, "a path that answers once the service can serve", required=True, field="path"),
        "port": Key(LINE, "the named port that is asked", "the first"),
        "status": Key(STATUS, "the only status that counts as ready", "200"),
        "within": Key(SECONDS_ABOVE_0, "after this time the start has failed", "30s", field="within_s"),
    },
    "When the service counts as started. Requests for this are never counted as load.",
)

STOP: Final = Block(
    "stop",
    Stop,
    {
        "signal": Key(choices(*SIGNALS), "what asks the service to end", "TERM"),
        "within": Key(SECONDS, "after this time it is killed", "10s", field="within_s"),
    },
    "How the service is asked to end.",
)

LIMITS: Final = Block(
    "limits",
    Limits,
    {
        "cpu": Key(CORES, "cores' worth of CPU time for each replica: `0.3`", "all"),
        "period": Key(
            SECONDS_ABOVE_0,
            "over which `cpu` is counted; a long one shows as steps of latency",
            "10ms",
            field="period_s",
        ),
        "memory": Key(
            SIZE, "memory of each replica: `256MiB`; above it the kernel kills", "all", field="memory_bytes"
        ),
        "cpus": Key(CPUS, "the CPUs that a replica may run on: `0`, `[0, 1]` or `0-3`", "all"),
    },
    "Bounds of each replica and of all that it starts.",
    check=_period_of_a_share,
)

INSIDE: Final = Block(
    "model",
    Inside,
    {
        "workers": Key(
            counts(1, 1000), "processes of each replica that take requests, each for itself: `$workers`", "1"
        ),
        "threads": Key(
            counts(0, 100_000),
            "threads of each worker that process requests, besides the one that accepts them; 0: the work is "
            "done where the measured cases do it",
            "0",
        ),
    },
    "Facts about a service that a prediction needs and that cannot be seen from outside before it runs. A "
    "held-out case whose `start` or `env` differs from the measured ones is predicted only if this says what "
    "that changes; see docs/explain/predictions.md.",
)

TIMES_KEYS: Final = Block(
    "server times keys",
    dict,
    {
        "path": Key(LINE, "key of the request path", required=True),
        "status": Key(LINE, "key of the status", required=True),
        "seconds": Key(LINE, "key of the response time in seconds", required=True),
    },
    "Which keys of each JSON object hold what.",
)

SERVER_TIMES: Final = Block(
    "server times",
    make_services.server_times,
    {
        "file": Key(
            TESTBED_TEXT, "the file that the service appends to: `$scratch/times.jsonl`", required=True
        ),
        "json": Key(TIMES_KEYS, "the keys of each line", required=True),
    },
    "Response times as the service logs them: one JSON object a request, one a line.",
)

SCRAPE: Final = Block(
    "scrape",
    Scrape,
    {
        "get": Key(PATH, "path of the metrics", "/metrics", field="path"),
        "port": Key(LINE, "the named port", "the first"),
        "every": Key(SECONDS_ABOVE_0, "time between two scrapes", "1s", field="every_s"),
        "requests": Key(
            LINE,
            "the counter of its answers, summed over labels: it is held against the client's books",
            "none",
        ),
        "time": Key(
            LINE, "the counter of the time that they took: `server_time.mean` of all requests", "none"
        ),
        "time_in": Key(choices("s", "ms"), "the unit of that time", "s"),
    },
    "Metrics of the service in the Prometheus text format.",
)

OTLP: Final = Block(
    "otlp",
    Otlp,
    {"port": Key(counts(1024, 65_535), "the port on which we receive, on this machine", "a free one")},
    "Spans and logs that the service sends by OpenTelemetry (OTLP over HTTP): `otlp: {}`. It gets "
    "`OTEL_EXPORTER_OTLP_ENDPOINT` and what else makes a usual SDK send them, unless `env` says where to.",
)

_ENVIRONMENT_NAME: Final = Form(re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}"), "letters, digits and _")
_SETTING_NAME: Final = Form(re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}"), "letters, digits, _ and .")
_LATER: Final = dict.fromkeys(
    (
        "counts",
        "backend",
    ),
    "use, variants, needs, build, setup, start, env, dir, after, replicas, ports, ready, stop, limits, over, "
    "calibrate, when, policy, settings, faults, server_times, scrape, otlp, runtime",
)

_SERVICE_KEYS: Final = {
    "start": Key(COMMAND, "the command that runs the service in the foreground; not of other uses"),
    "dir": Key(LINE, "folder of the service, seen from the study file", "the study's folder"),
    "build": Key(BUILD, "how its environment is made"),
    "calibrate": Key(CALIBRATE, "a command that finds out a value of this machine once a run"),
    "setup": Key(COMMAND, "a command run to its end before each start"),
    "env": Key(Named(TESTBED_TEXT, "variable", _ENVIRONMENT_NAME), "environment variables"),
    "after": Key(Many(LINE, or_one=True), "services that are ready before this one starts"),
    "replicas": Key(counts(1, 64), "how many run side by side; `$replica` counts them from 1", "1"),
    "ports": Key(Many(LINE, at_least=1), "names of its ports: `$port.NAME`, the first is `$port`", "[http]"),
    "ready": Key(READY, "when it counts as started"),
    "stop": Key(STOP, "how it is ended"),
    "limits": Key(LIMITS, "bounds of each replica: CPU time, memory, CPUs", "none"),
    "model": Key(INSIDE, "facts about its inside that a prediction needs"),
    "server_times": Key(SERVER_TIMES, "the file where it logs its response times"),
    "scrape": Key(SCRAPE, "its metrics endpoint"),
    "otlp": Key(OTLP, "its spans and logs, sent to us"),
    "runtime": Key(
        choices("node", "beam"),
        "its runtime: processes are then sampled from inside once per second, without changing them; a "
        "JVM needs none: the monitor `jvm` reads it",
    ),
    "needs": Key(Many(LINE, or_one=True), "programs that must be on the machine: `[elixir, mix]`"),
    "settings": Key(
        Named(TEXT, "setting", _SETTING_NAME),
        "postgres: any of its parameters; "
        + "; ".join(f"{use}: {', '.join(names)}" for use, names in BALANCER_SETTINGS.items()),
    ),
    "faults": Key(FAULTS, "fault-proxy: what it does wrong"),
}

VARIANT: Final = Block(
    "variant",
    make_services.service,
    _SERVICE_KEYS,
    "One way to build and run a service; its keys replace the service's.",
    is_of_case=True,
)

SERVICE: Final = Block(
    "service",
    make_services.service,
    {
        "use": Key(
            choices(*get_args(Use), later=_OTHER_USES),
            "what kind of part it is",
            "process",
        ),
        **_SERVICE_KEYS,
        "variants": Key(
            Named(VARIANT, "variant", PLAIN),
            "ways to run it; the first whose `needs` the machine has, or the one of `--variant`",
        ),
        "when": Key(TRUTH, "whether the case has this service at all: `$balanced`", "true"),
        "over": Key(
            Many(LINE, or_one=True),
            f"{', '.join(PASSING)}: the services whose replicas it stands before; prometheus: those that it "
            "scrapes, if not all with a `scrape`",
        ),
        "policy": Key(
            choices(*BALANCING_POLICIES),
            f"{', '.join(BALANCERS)}: who gets a request",
            BALANCING_POLICIES[0],
        ),
    },
    "One part of the testbed: a process, or several replicas of it.",
    refused=_LATER,
    is_of_case=True,
)

TLS: Final = Block(
    "tls",
    make_services.tls,
    {
        "ca": Key(LINE, "file of CAs (PEM) that are trusted, seen from the study file", "the system's"),
        "cert": Key(
            LINE, "file of the client's certificate (PEM), its chain behind it", "none", field="certificate"
        ),
        "key": Key(LINE, "file of its private key (PEM, not encrypted)", "the file of `cert`"),
        "servername": Key(
            LINE, "the name that is asked for (SNI) and verified", "the entry's host", field="server_name"
        ),
        "insecure": Key(TRUTH, "take any certificate; every result says so", "false"),
        "resume": Key(TRUTH, "new connections take up earlier sessions", "true"),
    },
    "TLS to the entry, version 1.2 or 1.3; `tls: {}` turns it on for a service. One that is started here is "
    "reached as 127.0.0.1: its certificate is for that, or `servername` says what it is for. `ready` and "
    "`scrape` of that service are asked by the same rules where they name the entry's port (both are the "
    "first unless they say otherwise); every other port is asked over plain HTTP.",
    is_of_case=True,
)

RESET: Final = Block(
    "reset",
    Reset,
    {
        "before": Key(choices("trial", "block"), "when the data are put back", "trial"),
        "run": Key(COMMAND, "a command that puts them back"),
        "sql": Key(TEXT, "statements for a service that is a database"),
        "files": Key(Many(TESTBED_TEXT, or_one=True), "files that are removed"),
        "verify": Key(COMMAND, "a command that ends with 0 when the data are as they should be"),
        "verify_sql": Key(TEXT, "a query that answers true then: `select count(*) = 0 from items`"),
        "service": Key(
            LINE, "whose folder and environment all this runs in", "the first; with SQL the database"
        ),
    },
    "How the data are put back before a trial; a failed reset invalidates the trial.",
    check=_reset_does_something,
)
