"""Words that every medium shares: states, grades, forms, names cut to length, and the glossary.

Words carry pass and fail; a glyph only repeats them. Text that comes from outside (names of cases, log lines,
answers of a server) is data: `plain` takes out what could steer a terminal or reorder a line.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from loadlens.model.finding import Grade
from loadlens.model.report import State
from loadlens.model.trial import Outcome
from loadlens.model.workload import MISSING_PAGE
from loadlens.present import numbers
from loadlens.units import duration_text

NAME_LENGTH = 28  # characters of a name in a chart; the whole name stands in the table
CHIP_LENGTH = 32
NO_BREAK = "\u00a0"

GLYPHS: Mapping[State, str] = {"ok": "●", "caution": "▲", "bad": "■", "unknown": "○"}
CAUTION = GLYPHS["caution"]
ASCII_GLYPHS: Mapping[State, str] = {"ok": "ok", "caution": "!", "bad": "X", "unknown": "?"}
BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = ".:-=+*#@"

GLYPH_LEGEND = (
    "● holds · ▲ with a caveat · ■ does not hold · ○ not known · △ predicted · ▨ not run · "
    "dashed edge: not judged"
)

GRADE_MEANINGS: Mapping[Grade, str] = {
    Grade.CONFIRMED: "the knob was changed and the predicted change was seen",
    Grade.STRONG: "every signal passes with its interval, every rival was looked at and excluded",
    Grade.PROBABLE: "every signal passes; a rival could not be excluded, or an interval touches a limit",
    Grade.SUSPECTED: "a necessary signal is missing",
}
GRADE_STATES: Mapping[Grade, State] = {
    Grade.CONFIRMED: "ok",
    Grade.STRONG: "ok",
    Grade.PROBABLE: "caution",
    Grade.SUSPECTED: "unknown",
}


OUTCOMES: Mapping[Outcome, str] = {
    Outcome.OK: "ok",
    Outcome.UNEXPECTED_STATUS: "unexpected status",
    Outcome.CHECK_FAILED: "check failed",
    Outcome.RESOLVE: "name not resolved",
    Outcome.REFUSED: "connection refused",
    Outcome.CONNECT_TIMEOUT: "connect timed out",
    Outcome.CONNECT_FAILED: "connect failed",
    Outcome.RESET: "connection reset",
    Outcome.CLOSED_BEFORE_RESPONSE: "closed before the response",
    Outcome.CLOSED_ON_REUSE: "closed on reuse",
    Outcome.TRUNCATED: "truncated",
    Outcome.MALFORMED: "malformed",
    Outcome.TIMEOUT: "timed out",
    Outcome.LIMIT: "over a limit of the generator",
    Outcome.TLS: "TLS failed",
    Outcome.TLS_TIMEOUT: "TLS timed out",
    Outcome.OWN_DESCRIPTORS: "no descriptor left (ours)",
    Outcome.OWN_PORTS: "no port left (ours)",
    Outcome.OWN_MEMORY: "no memory left (ours)",
    Outcome.UNCLASSED: "failed, not classed",
    Outcome.IN_FLIGHT: "in flight at the end",
    Outcome.WAITING: "waiting at the end",
    Outcome.DROPPED: "dropped",
}

# The parts of a request, in their order.
PHASES: Mapping[str, str] = {
    "resolve": "name lookup",
    "connect": "connect",
    "tls": "TLS handshake",
    "first_byte": "first byte",
    "last_byte": "last byte",
}

METRICS: Mapping[str, str] = {
    "throughput": "requests/s",
    "response_time.mean": "mean response time",
    "response_time.p50": "p50 of response time",
    "response_time.p75": "p75 of response time",
    "response_time.p90": "p90 of response time",
    "response_time.p95": "p95 of response time",
    "response_time.p99": "p99 of response time",
    "response_time.p999": "p99.9 of response time",
    "response_time.max": "largest response time",
    "service_time.mean": "mean service time",
    "cpu_time": "CPU time per request",
    "memory": "service memory",
    "failed.share": "share failed",
    "unsuccessful.share": "share of requests without success",
    "ab_failed.share": "share failed as ab counts",
    "body_bytes.mean": "mean size of the body",
    "body_bytes.max": "largest body",
    "load.elapsed": "time of the whole load",
    "load.answers": "answers in all",
    "load.time_per_answer": "time of the load by its answers",
    "load.received_bytes": "bytes received",
    "load.received_rate": "bytes received a second",
}


@dataclass(frozen=True, slots=True)
class Term:
    """A word that a report uses, with its one meaning."""

    word: str
    meaning: str


GLOSSARY = (
    Term("answered", "requests whose whole answer came; ok, unexpected status and check failed together"),
    Term("at work", "of a thread: in code of the service where it is not without load"),
    Term("case", "one combination of factor levels, run in one or more trials"),
    Term(
        "censored", "known only to have lasted longer than a time: timed out, in flight or waiting at the end"
    ),
    Term("closed loop", "each user waits for the answer, thinks, and asks again"),
    Term("demand", "time of one resource that one request needs, without waiting"),
    Term("dropped", "due, but never issued, because the limit of requests in flight was reached"),
    Term("due", "when the workload wanted a request sent, and the requests that it wanted"),
    Term("factor, level", "what a study varies, and a value that it takes"),
    Term("failed", "issued, but no whole answer came: refused, reset, timed out, truncated"),
    Term("generator", "the part of Loadlens that sends the load; it is measured like the service"),
    Term("held-out case", "a case that was predicted before it was run"),
    Term("in flight", "issued and not yet answered or failed; counted exactly, not sampled"),
    Term(
        "independent requests", "as many unrelated requests as carry the same information as the related ones"
    ),
    Term("interval", "where the true value lies in 95 of 100 such studies; the trial is the unit"),
    Term("issued", "requests that took a connection or began to open one"),
    Term("knee", "the load from which more load brings waiting and no throughput"),
    Term("lag", "sent minus due: how late the generator was"),
    Term("Little's law", "mean in flight = throughput x mean response time; it holds for every true record"),
    Term("not judged", "shown, measured or predicted, but this machine cannot decide it"),
    Term("not measured", "no measurement was made; the reason is given next to it"),
    Term("open loop", "requests are due at their times, whatever the server does"),
    Term("p99", "the time within which 99 of 100 requests were answered; p50 is the median"),
    Term("plateau", "the throughput that more load no longer raises"),
    Term(
        "prediction", "result of a model for a held-out case before it ran; its interval is for a measurement"
    ),
    Term("probe", "a thin stream of cheap requests alongside the load, on its own connections"),
    Term("record", "the folder of a run; every number of a report can be computed again from it"),
    Term("response time", "from due to done: what a user waited"),
    Term("service time", "from sent to done, as the client saw it"),
    Term("trial", "one run of one case; the unit of evidence"),
    Term("undecided", "measured, but not enough to print a number; the reason says what would decide it"),
    Term(
        "valid, invalid", "whether the trial passed its gates; an invalid trial is shown and enters no figure"
    ),
    Term("warm-up", "the part at the beginning that is sent and recorded but not used"),
    Term("within one trial", "the interval says nothing about the variation between runs"),
)


def plain(text: str) -> str:
    """Text without what could steer a terminal or reorder a line; each such character becomes U+FFFD.

    Line breaks and tabs become spaces. Everything that has a shape stays.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(" " if c in "\n\r\t\v\f\x85\u2028\u2029" else "\ufffd" if _steers(c) else c for c in text)


def plain_lines(text: str) -> str:
    """Like `plain`, for text of several lines such as the end of a log."""
    return "\n".join(plain(line.expandtabs(4)) for line in text.splitlines())


def _steers(character: str) -> bool:
    """Control, format (bidirectional marks, zero width) and lone surrogate characters.

    The zero width joiner stays: without it names in several scripts read wrong.
    """
    return unicodedata.category(character) in ("Cc", "Cf", "Cs") and character != "\u200d"


def unbroken(text: str) -> str:
    """Return a text that is not broken where lines are wrapped; writers print its blanks as such."""
    return text.replace(" ", NO_BREAK)


def cut(name: str, length: int = NAME_LENGTH) -> str:
    """Cut a name to a number of characters; the middle goes, because the ends distinguish names."""
    if len(name) <= length:
        return name
    front = (length - 2) // 2
    return f"{name[:front]}..{name[len(name) - (length - 2 - front) :]}"


def cut_names(names: Iterable[str], length: int = NAME_LENGTH) -> dict[str, str]:
    """Shorten names to a length and keep them distinct.

    Where one is too long, the words that all share go first, because the others distinguish them; then names
    are cut, and those that would look alike get a number.
    """
    whole = {name: plain(name) for name in dict.fromkeys(names)}
    if len(whole) > 1 and any(len(name) > length for name in whole.values()):
        whole = _unshared(whole)
    taken: dict[str, str] = {}
    for name, clean in whole.items():
        short, number = cut(clean, length), 2
        while short in taken.values():
            mark = f" ({number})"
            short, number = cut(clean, length - len(mark)) + mark, number + 1
        taken[name] = short
    return taken


def _unshared(names: Mapping[str, str]) -> dict[str, str]:
    """Return names without the words that all of them have; as they are if one would be left without any."""
    split = {name: clean.replace(", ", " ").split() for name, clean in names.items()}
    shared = set.intersection(*(set(parts) for parts in split.values()))
    kept = {name: " ".join(p for p in parts if p not in shared) for name, parts in split.items()}
    return kept if shared and all(kept.values()) else dict(names)


def plural(number: int, noun: str, many: str | None = None) -> str:
    """`1 trial`, `3 trials`, `2 classes`."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def probe(name: str, request: str) -> str:
    """Return a probe as a reader knows it: its request, unless the lab made up the path."""
    return f"{MISSING_PAGE} (404)" if name == MISSING_PAGE else request


def users(number: float, *, exactly: bool = False) -> str:
    """`1 user`, `1.7 users`, `120 users`: two digits below 100, unless it is a load that was planned."""
    text = f"{number:g}" if exactly else numbers.about(number)
    return f"{text} user" if text == "1" else f"{text} users"


def listed(parts: Iterable[str], last: str = "and") -> str:
    """`a, b and c`."""
    items = list(parts)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def grade_counts(grades: Iterable[Grade], ruled_out: int, not_assessed: int) -> str:
    """The line over the findings: `strong 2 · probable 1 · ruled out 37 · not assessed 3`."""
    ordered = list(grades)
    parts = [f"{g.word} {ordered.count(g)}" for g in sorted(Grade, reverse=True) if g in ordered]
    parts += [f"ruled out {ruled_out}"] if ruled_out else []
    parts += [f"not assessed {not_assessed}"] if not_assessed else []
    return " · ".join(parts)


def outcome(name: str) -> str:
    """A class of errors in words; one without words keeps its name."""
    outcome = Outcome.__members__.get(name.upper())
    return name.replace("_", " ") if outcome is None else OUTCOMES[outcome]


def rounding(steps_s: Mapping[str, float]) -> str:
    """Describe the rounding in a tool's report: `quantiles to 1 µs; mean to 1 ms`; empty if none."""
    names = {"stdev": "deviation", "min": "least", "max": "largest"}
    by_step: dict[float, list[str]] = {}
    for what, step in steps_s.items():
        by_step.setdefault(step, []).append(names.get(what, what))
    return "; ".join(f"{', '.join(whats)} to {duration_text(step)}" for step, whats in by_step.items())


def metric(name: str) -> str:
    """A metric in words, with what stands behind it such as ` (server)`; one without words keeps its name."""
    first, space, rest = name.partition(" ")
    return f"{METRICS.get(first, first.replace('_', ' '))}{space}{rest}"
