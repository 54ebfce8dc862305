"""What fault proxies did to the requests of a case, by their own books over whole trials.

The books are counters that were scraped (docs/reference/fault-proxy.md). A count here is what a counter rose
by from the first scrape of a trial to the last, both while nothing was asked: warm-up and probes are in it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadlens.estimate.reconciliation import Part, reconcile
from loadlens.measure.case import CaseMeasures
from loadlens.measure.external_report import AT_THE_END
from loadlens.measure.figures import exact
from loadlens.measure.source import Json
from loadlens.measure.trial import TrialMeasures
from loadlens.model.report import AccountingRow, Cell, Column, Table
from loadlens.model.topology import PROXY_PREFIX
from loadlens.present import words

# What became of requests: each that ended has exactly one of these.
OUTCOMES: Mapping[str, str] = {
    "passed": "answered by the service",
    "queue_full": "refused: the queue was full",
    "waited": "refused: waited as long as it may",
    "error": "answered with an injected error",
    "dropped": "dropped: never answered",
    "reset": "reset",
    "failed": "failed at the service",
    "gone": "the client went away first",
    "malformed": "could not be read",
}
ANSWERED = ("passed", "queue_full", "waited", "error", "malformed")  # the client gets a whole answer
FAILURES: Mapping[str, str] = {  # how the service failed
    "refused": "the service refused the connection",
    "connect": "the service could not be connected to",
    "reset": "the service reset the connection",
    "closed": "the service closed before an answer",
    "truncated": "the service broke off its answer",
    "malformed": "what the service said is no answer",
    "timeout": "the service said nothing for too long",
}


@dataclass(slots=True)
class Books:
    """The books of one proxy over trials, by `outcomes_total passed`, `delayed_seconds_total` ..."""

    counts: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # rises of counters
    most: dict[str, float] = field(default_factory=dict)  # the highest reading of each gauge
    trials: int = 0

    def add(self, other: Books) -> None:
        """Take in the books of another trial."""
        for name, rise in other.counts.items():
            self.counts[name] += rise
        for name, value in other.most.items():
            self.most[name] = max(value, self.most.get(name, value))
        self.trials += other.trials

    def count(self, name: str, *labels: str) -> int:
        """The sum over these labels of a counter, or the counter itself."""
        wanted = [f"{name} {label}" for label in labels] or [name]
        return round(sum(self.counts.get(one, 0.0) for one in wanted))


def names(plan: Json) -> tuple[str, ...]:
    """The fault proxies of a case."""
    return tuple(str(s["name"]) for s in plan.get("services") or () if s.get("use") == "fault-proxy")


def before(plan: Json, service: str) -> str | None:
    """The fault proxy through which alone requests come to a service; none when there is no such."""
    fronts = [str(s["name"]) for s in plan.get("services") or () if service in (s.get("over") or ())]
    is_entry = service == str((plan.get("entry") or {}).get("service") or "")
    return fronts[0] if len(fronts) == 1 and not is_entry and fronts[0] in names(plan) else None


def read(trial: TrialMeasures, proxy: str) -> Books | None:
    """The books of a proxy over a whole trial; none when they were not scraped."""
    import polars as pl

    rows = trial.source.readings().filter(
        (pl.col("source") == "scrape")
        & pl.col("metric").str.starts_with(PROXY_PREFIX)
        & pl.col("value").is_not_null()
    )
    books = Books(trials=1)
    for (metric, text), series in rows.sort("time_ns").group_by(["metric", "labels"], maintain_order=True):
        labels = json.loads(str(text))
        if labels.pop("service", None) != proxy:
            continue
        labels.pop("replica", None)
        name = " ".join((str(metric).removeprefix(PROXY_PREFIX), *map(str, labels.values())))
        values = series["value"].to_list()
        if name.partition(" ")[0].endswith(("_total", "_sum", "_count")):
            books.counts[name] += values[-1] - values[0]
        elif not name.startswith("wait_seconds_bucket"):
            books.most[name] = max(values)
    return books if "requests_total" in books.counts else None


# --- the table of a case ----------------------------------------------------------------------------------


def table(case: CaseMeasures) -> Table | None:
    """What each proxy did over the usable trials: counts, shares of its requests, times."""
    rows: list[tuple[Cell, ...]] = []
    trials = 0
    for name in names(case.plan):
        books = _of_all(case.usable, name)
        if books.trials:
            rows += _rows(name, books)
            trials = max(trials, books.trials)
    if not rows:
        return None
    columns = (
        Column("proxy", align="left"),
        Column("what", align="left"),
        Column("how much", is_mixed=True),
        Column("of its requests", is_mixed=True),
    )
    note = f"the proxy's own books of {words.plural(trials, 'whole trial')}, warm-up and probes included"
    return Table(columns, tuple(rows), note)


def _of_all(trials: Sequence[TrialMeasures], name: str) -> Books:
    total = Books()
    for trial in trials:
        books = read(trial, name)
        if books is not None:
            total.add(books)
    return total


def _rows(proxy: str, books: Books) -> Iterator[tuple[Cell, ...]]:
    """What is told of every proxy, then whatever it did; what it never did has no row."""
    requests = books.count("requests_total")

    def counted(what: str, count: int, unit: str = "requests") -> tuple[Cell, ...]:
        share = exact("share", "share", count / requests, requests) if requests and unit == "requests" else ""
        return (proxy, what, exact(what, unit, count, 0), share)

    def told(what: str, unit: str, value: float, samples: int = 0) -> tuple[Cell, ...]:
        return (proxy, what, exact(what, unit, value, samples), "")

    yield counted("came in", requests)
    yield counted("handed to the service", books.count("forwarded_total"))
    for name, what in OUTCOMES.items():
        count = books.count("outcomes_total", name)
        if count or name == "passed":
            yield counted(what, count)
    waits = books.count("wait_seconds_count")
    if waits:
        yield counted("waited for a place", waits)
        yield told("waiting, mean of these", "s", books.counts["wait_seconds_sum"] / waits, waits)
        yield told("waiting at once, most", "requests", books.most.get("queue_length_most", 0.0))
    yield told("at the service at once, most", "requests", books.most.get("in_flight_most", 0.0))
    delays = [books.count("injected_total", each) for each in ("delay_request", "delay_response")]
    for what, count in zip(("delayed before the service", "delayed before the answer"), delays, strict=True):
        if count:
            yield counted(what, count)
    if any(delays):
        seconds = books.counts["delayed_seconds_total"]
        yield told("time added, all together", "s", seconds)
        if requests:
            yield told("time added, mean of a request", "s", seconds / requests, requests)
    refused = books.count("injected_total", "connection")
    if refused:
        yield counted("connections beyond the bound, reset", refused, "connections")
    for kind, what in FAILURES.items():
        count = books.count("upstream_errors_total", kind)
        if count:
            yield counted(what, count)
    yield counted("connections of clients", books.count("connections_total"), "connections")
    yield counted("connections to the service", books.count("upstream_connections_total"), "connections")


# --- the proxy's books against those of the others --------------------------------------------------------


def accounting(cases: Sequence[CaseMeasures]) -> list[AccountingRow]:
    """Of each proxy that is the entry: what it read and answered against what the client sent and got."""
    seen: dict[str, list[tuple[TrialMeasures, Books]]] = {}
    for case in cases:
        entry = str((case.plan.get("entry") or {}).get("service") or "")
        if entry in names(case.plan):
            known = [(trial, books) for trial in case.usable if (books := read(trial, entry)) is not None]
            seen.setdefault(entry, []).extend(known)
    found = []
    for proxy, trials in seen.items():
        if trials:
            found += [_read_row(proxy, trials), _answered_row(proxy, trials)]
    return found


def _read_row(proxy: str, trials: Sequence[tuple[TrialMeasures, Books]]) -> AccountingRow:
    parts: list[Part] = []
    for trial, _ in trials:
        for stream in trial.streams:
            if stream.teller is not None:
                parts += stream.teller.sent()
                continue
            if stream.result is not None:
                sent = stream.result.requests
                least = max(0, sent.issued - sent.failed - sent.in_flight)
                parts.append(Part("probes" if stream.plan.is_probe else "load", least, sent.issued))
    observed = sum(books.count("requests_total") for _, books in trials)
    why = "what failed may not have come to it"
    return _row(f"{proxy}, requests read", parts, observed, why, is_sent=True)


def _answered_row(proxy: str, trials: Sequence[tuple[TrialMeasures, Books]]) -> AccountingRow:
    parts: list[Part] = []
    for trial, books in trials:
        failed = books.count("outcomes_total", "failed")  # passed on as it was, or answered with 502 or 504
        parts.append(Part("failures of the service", -failed, 0))
        for stream in trial.streams:
            if stream.teller is not None:
                parts += stream.teller.sent()
                continue
            if stream.result is not None:
                sent = stream.result.requests
                most = sent.answered + sent.failed + sent.in_flight
                parts.append(Part("probes" if stream.plan.is_probe else "load", sent.answered, most))
    observed = sum(books.count("outcomes_total", *ANSWERED) for _, books in trials)
    why = "what failed may have been answered too late"
    return _row(f"{proxy}, answers given", parts, observed, why, is_sent=False)


def _row(source: str, parts: Sequence[Part], observed: int, why: str, *, is_sent: bool) -> AccountingRow:
    found = reconcile(observed, tuple(parts))
    exact = found.expected_low == found.expected_high
    sums: defaultdict[str, int] = defaultdict(int)
    for part in (part for part in parts if part.source != AT_THE_END):
        sums[part.source] += max(0, part.high if is_sent else part.low)
    explained = " + ".join(f"{name} {count:,}" for name, count in sums.items() if count)
    sent = sum(sums.values())
    return AccountingRow(
        source=source,
        sent=sent,
        expected_low=found.expected_low,
        expected_high=found.expected_high,
        observed=observed,
        difference=observed - sent,
        explained_by=(explained or "nothing was sent there")
        + ("" if exact else f"; {why}")
        + (f"; {found.unexplained:+d} not explained" if found.unexplained else ""),
        state="ok" if found.unexplained == 0 else "bad",
    )


def handed_on(trial: TrialMeasures, proxy: str) -> Part | None:
    """Requests that came through a proxy to what stands behind it; none when its books are not there."""
    books = read(trial, proxy)
    if books is None:
        return None
    forwarded = books.count("forwarded_total")
    lost = books.count("upstream_errors_total", *FAILURES)
    # the service may still be at work for clients that have gone when its counter is read for the last time
    gone = books.count("outcomes_total", "gone")
    return Part(f"handed on by {proxy}", max(0, forwarded - lost - gone), forwarded)


def held_back(trial: TrialMeasures, proxy: str) -> int | None:
    """Requests that a proxy read and did not hand on, or whose way ended there; none when not known."""
    books = read(trial, proxy)
    if books is None:
        return None
    lost = books.count("upstream_errors_total", *FAILURES) + books.count("outcomes_total", "gone")
    return books.count("requests_total") - books.count("forwarded_total") + lost
