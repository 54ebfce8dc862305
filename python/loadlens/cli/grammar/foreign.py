"""Flags, verbs and files of other tools, and what they are here.

The keys of their studies are in `study.parse.unknown_keys`.

A hint reads `TOOL calls it FLAG; here: ...`, which errors print without `try`. It is shown for verbs that
have every option named after `here:`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from loadlens.errors import UsageError, nearest

# The option that a hint repeats often.
_FORM: Final = "-b 'name=value' -H 'Content-Type: application/x-www-form-urlencoded'"
_LEVELS: Final = "percentiles are shown, all of them with -v"
_NO_REDIRECTS: Final = "redirects are never followed"
_HTTP_1: Final = "HTTP/1.1 only"

# Flag, tools, and what to write here; braces hold what the typed value takes the place of.
FLAGS: Final = (
    # Length and size of the load.
    ("-z", "hey and oha", "-d {10s}"),
    ("--run-time", "Locust", "-d {1m}"),
    ("--time", "siege", "-d {10s}"),
    ("--timelimit", "ab", "-d {10s}"),
    ("--vus", "k6", "-c {50}"),
    ("--users", "Locust", "-c {50}"),
    ("--concurrency", "ab and siege", "-c {50}"),
    ("--clients", "others", "-c {50}"),
    ("--max-workers", "vegeta", "-c {50}"),
    ("--workers", "vegeta and autocannon", "-c {50} for users, -t 2 for threads"),
    ("--iterations", "k6", "-n {1000}"),
    ("--amount", "autocannon", "-n {1000}"),
    ("-R", "wrk2 and autocannon", "-r {500}"),
    ("--rps", "k6", "-r {500}"),
    ("--qps", "others", "-r {500}"),
    ("--query-per-second", "oha", "-r {500}"),
    ("--overall-rate", "autocannon", "-r {500}"),
    ("--script", "wrk", "--feed for data; loadlens wrk -s FILE for its scripts"),
    ("--stage", "k6", "--stages {30s:50,10s:0}"),
    ("--spawn-rate", "Locust", "--ramp 10s"),
    ("--burst-rate", "oha", "--bursts 1s:500/s,9s"),
    ("--burst-delay", "oha", "--bursts 1s:500/s,9s"),
    # Requests.
    ("--request", "curl", "-X {POST}"),
    ("--user-agent", "curl and k6", "-H 'User-Agent: {...}'"),
    ("--host", "Locust", "the URL, with --resolve HOST:PORT:ADDRESS for another address"),
    ("--content-type", "others", "-H 'Content-Type: {...}'"),
    ("--accept", "others", "-H 'Accept: {...}'"),
    ("--referer", "curl", "-H 'Referer: {...}'"),
    ("--cookie", "curl", "-H 'Cookie: NAME=VALUE', or --cookies to keep those of the service"),
    ("-C", "ab", "-H 'Cookie: NAME=VALUE'"),
    ("--user", "curl", "--auth basic:USER:NAME, with the password in the variable NAME"),
    ("-D", "hey and oha", "-f {FILE}"),
    ("-p", "ab", "-f {FILE}"),
    ("-F", "curl", _FORM),
    ("--form", "curl", _FORM),
    ("--data-raw", "curl", "-b {TEXT}"),
    ("--data-binary", "curl", "-f {FILE}"),
    ("--data-urlencode", "curl", "-b TEXT, already encoded"),
    ("-I", "curl", "-X HEAD"),
    ("--head", "curl", "-X HEAD"),
    # Connections and TLS.
    ("--disable-keepalive", "hey and oha", "--connection new"),
    ("--no-connection-reuse", "k6", "--connection new"),
    ("--keepalive", "vegeta", "connections are kept; --connection new for new ones"),
    ("--insecure-skip-tls-verify", "k6", "-k"),
    ("--connect-to", "curl and oha", "--resolve HOST:PORT:ADDRESS"),
    ("--connect-timeout", "curl", "--timeout 10s, which includes connecting"),
    ("--max-time", "curl", "--timeout 10s for a request, -d 10s for the load"),
    ("--disable-compression", "hey and oha", "nothing is compressed without -H 'Accept-Encoding: gzip'"),
    ("--http2", "curl and oha", _HTTP_1),
    ("--http-version", "oha", _HTTP_1),
    ("--h2", "hey", _HTTP_1),
    ("--pipelining", "autocannon", "one request at a time on a connection"),
    ("--disable-redirects", "hey", _NO_REDIRECTS),
    ("--redirects", "vegeta", _NO_REDIRECTS),
    ("--max-redirects", "k6", _NO_REDIRECTS),
    # Output.
    ("-l", "bombardier and autocannon", _LEVELS),
    ("--latency", "wrk", _LEVELS),
    ("--latencies", "bombardier", _LEVELS),
    ("--latency-correction", "oha", "-r 500, where times run from when a request was due"),
    ("--csv", "Locust", "--out csv={FILE}"),
    ("--html", "Locust", "--out md=FILE"),
    ("--summary-export", "k6", "--out json={FILE}"),
    ("--output", "others", "--out json={FILE}"),
    ("--output-format", "oha", "--out json=FILE"),
    ("--format", "others", "--out json=FILE"),
    ("--no-tui", "oha", "-q"),
    ("--silent", "curl", "-q"),
    ("--headless", "Locust", "there is no web page to switch off"),
    ("--threshold", "k6", "--objective 'p99<200ms'"),
    ("--thresholds", "k6", "--objective 'p99<200ms'"),
    ("--fail", "curl", "--objective 'failed<1%'"),
    ("--urls-from-file", "oha", "--targets {FILE}"),
    ("--file", "siege", "--targets {FILE}"),
)
# Letters with several meanings, as sentences.
LETTERS: Final = {
    "-u": "k6 and Locust set users with -u, curl credentials; here: -c {50}, or --auth basic:USER:NAME",
    "-w": "autocannon sets threads with -w, curl a format; here: -t {2} for threads, -c {50} for users",
    "-i": "k6 sets iterations with -i, curl shows headers; here: -n {1000}",
    "-a": "autocannon sets requests with -a, hey credentials; here: -n {1000}, or --auth basic:USER:NAME",
    "-s": "k6 sets stages with -s, wrk a script; here: --stages 30s:50,10s:0, or loadlens wrk -s FILE",
    "-T": "hey and ab set the content type with -T; here: -H 'Content-Type: {...}'",
    "-A": "curl sets the user agent with -A, hey Accept; here: -H 'User-Agent: ...', -H 'Accept: ...'",
    "-L": "wrk shows percentiles with -L, curl follows redirects; here: percentiles are shown, redirects not"
    " followed",
    "-e": "ab writes CSV with -e, k6 sets variables; here: --out csv=FILE",
    "-P": "ab sets credentials of a proxy with -P; here: --auth basic:USER:NAME for those of the service",
}
# What a verb that chooses the load itself has instead.
_CHOSEN: Final = "`explain` chooses the load itself; here: {}"
SEARCHING: Final = {
    flag: _CHOSEN.format(here)
    for here, flags in (
        ("--budget 60s", "-d --duration -z --run-time --time -n --iterations"),
        ("--max-users 50", "-c --connections -u --vus --users --concurrency"),
        ("--rate-cap 500", "-r --rate -R --rps --qps --stages --ramp"),
    )
    for flag in flags.split()
}
# A study holds its own load: what verbs that read one have instead.
IN_STUDY: Final = {
    flag: f"a study holds its load; here: `{key}` below `load` of the study"
    for key, flags in (
        ("users: {50}", "-c --connections -u --vus --users --concurrency -t --threads"),
        ("rate: {500/s}", "-r --rate -R --rps --qps"),
        ("duration: {30s}", "-d --duration -z --run-time --time"),
        ("requests: {1000}", "-n --requests --iterations"),
        ("stages: [30s:50, 10s:0]", "--stages --stage --ramp"),
    )
    for flag in flags.split()
}
VERBS: Final = (
    ("attack", "vegeta", "loadlens hit URL"),
    ("bench", "others", "loadlens hit URL"),
    ("load", "others", "loadlens hit URL"),
    ("test", "others", "loadlens hit URL, or loadlens run STUDY"),
    ("new", "k6", "loadlens init URL"),
    ("inspect", "k6", "loadlens check STUDY"),
    ("validate", "others", "loadlens check STUDY"),
    ("diagnose", "others", "loadlens explain URL"),
    ("profile", "others", "loadlens explain URL"),
)
# Verbs that other programs have, and what does it here.
ELSEWHERE: Final = (
    {
        "diff": "loadlens compare A B: records, URLs, or levels of a factor",
        "ui": "loadlens report RUN, whose report.html opens in a browser",
        "serve": "loadlens report RUN, whose report.html opens in a browser",
        "list": "ls runs, then loadlens show runs/NAME",
        "update": "pip install --upgrade WHEEL",
    }
    | {
        tool: f"loadlens hit URL, or loadlens hit URL --driver {tool} to send its load"
        for tool in ("k6", "locust", "oha")
    }
    | dict.fromkeys(
        ("vegeta", "wrk2", "siege", "bombardier", "autocannon", "artillery", "jmeter"), "loadlens hit URL"
    )
)
# Files of other tools by their ending: what they are, and what takes them.
FILES: Final = {
    ".har": ("requests that a browser recorded", "loadlens init --from har {file}, which writes a study"),
    ".lua": ("a script of wrk", "loadlens wrk -s {file} URL, or loadlens init URL --from wrk.lua {file}"),
    ".js": ("a script", "loadlens init URL, which writes a study: scripts of k6 and Artillery are not read"),
    ".ts": ("a script", "loadlens init URL, which writes a study: scripts of k6 are not read"),
    ".py": ("a program", "loadlens init URL, which writes a study: files of Locust are not read"),
    ".jmx": ("a plan of JMeter", "loadlens init URL, which writes a study: JMeter's are not read"),
    ".scala": ("a simulation of Gatling", "loadlens init URL, which writes a study: Gatling's are not read"),
    ".jtl": ("a result of JMeter", "loadlens run STUDY, which makes a record of its own"),
}
_BRACES: Final = re.compile(r"\{([^{}]+)\}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9.][\w./:@%+,;=-]*")
_OPTION: Final = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def _sentence(name: str, tools: str, here: str) -> str:
    calls = "call" if " and " in tools or tools == "others" else "calls"
    return f"{tools} {calls} it {name}; here: {here}"


HINTS: Final = {flag: _sentence(flag, tools, here) for flag, tools, here in FLAGS} | LETTERS
_VERB_HINTS: Final = {verb: _sentence(verb, tools, here) for verb, tools, here in VERBS}


def hint_of(flag: str, options: list[str], value: str = "") -> str | None:
    """Return what a flag of another tool is in a verb with these options; none if it has nothing like it.

    Args:
        flag: As typed.
        options: Those of the verb.
        value: What was typed for it; the hint shows it where it can be meant.
    """
    for table in (HINTS, SEARCHING, *([IN_STUDY] if "--set" in options else [])):
        hint = table.get(flag)
        if hint is not None and all(word in options for word in named(hint)):
            return _BRACES.sub(lambda example: _in_place_of(example[1], value), hint)
    return None


def _in_place_of(example: str, value: str) -> str:
    """Return the typed value where the shell takes it as one plain word, and a number for a number."""
    is_alike = value[:1].isdigit() or not example[:1].isdigit()
    return value if _PLAIN.fullmatch(value) and "://" not in value and is_alike else example


def named(hint: str) -> list[str]:
    """Return the options that a hint names as ours."""
    plain = re.sub(r"'[^']*'|loadlens [^,;]*", "", hint.partition("; here: ")[2])
    return _OPTION.findall(plain)


def verb_hint(word: str, verbs: list[str]) -> str:
    """Return what to type instead of a verb that does not exist."""
    for table in (_VERB_HINTS, ELSEWHERE):
        if word in table:
            return table[word]
    near = nearest(word, verbs)
    return f"did you mean {near}?" if near is not None else "loadlens --help, which lists the verbs"


def refuse_file(file: str) -> None:
    """Refuse a file of another tool where a URL or a study is wanted, with what takes it.

    Raises:
        UsageError: It is there, and its ending is that of such a file.
    """
    path = Path(file)
    if path.suffix in FILES and path.is_file():
        what, hint = FILES[path.suffix]
        raise UsageError(f"{file} is {what}", hint=hint.format(file=file))
