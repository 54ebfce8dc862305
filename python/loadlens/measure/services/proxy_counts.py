"""Effects of fault proxies on the requests of a case, by their own counters over whole trials.

The counters were scraped (docs/reference/fault-proxy.md). A count here is what a counter rose
by from the first scrape of a trial to the last, both while nothing was asked: warm-up and probes are in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loadlens.estimate.reconciliation import Part, reconcile
from loadlens.measure.case import CaseMeasures
from loadlens.measure.external_report import AT_THE_END
from loadlens.measure.figures import exact
from loadlens.measure.trial import TrialMeasures
from loadlens.model.recorded import PlannedCase
from loadlens.model.report import AccountingRow, Cell, Column, Table
from loadlens.model.topology import PROXY_PREFIX
from loadlens.present import words
from loadlens.signals.read.trial_series import SCRAPE, Readings

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
class ProxyCounts:
    """Counts of one proxy over trials, by `outcomes_total passed`, `delayed_seconds_total` ..."""

    rises: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))  # rises of counters
    most: dict[str, float] = field(default_factory=dict)  # the highest reading of each gauge
    trials: int = 0

    def add(self, other: ProxyCounts) -> None:
        """Add the counts of another trial."""
        for name, rise in other.rises.items():
            self.rises[name] += rise
        for name, value in other.most.items():
            self.most[name] = max(value, self.most.get(name, value))
        self.trials += other.trials

    def count(self, name: str, *labels: str) -> int:
        """Return the sum of a counter over these labels, or the counter itself."""
        wanted = [f"{name} {label}" for label in labels] or [name]
        return round(sum(self.rises.get(key, 0.0) for key in wanted))

    def seconds(self, name: str) -> float:
        """Return the rise of a counter of seconds."""
        return self.rises[name]

    def highest(self, name: str) -> float:
        """Return the highest reading of a gauge; 0 where it was not read."""
        return self.most.get(name, 0.0)


def names(plan: PlannedCase) -> tuple[str, ...]:
    """Return the names of the fault proxies of a case."""
    return tuple(service.name for service in plan.services if service.use == "fault-proxy")


def before(plan: PlannedCase, service: str) -> str | None:
    """Return the fault proxy that all requests to a service pass; none if there is none."""
    fronts = [each.name for each in plan.services if service in each.over]
    is_entry = service == plan.entry_service
    return fronts[0] if len(fronts) == 1 and not is_entry and fronts[0] in names(plan) else None


def read(trial: TrialMeasures, proxy: str) -> ProxyCounts | None:
    """Return the counts of a proxy over a whole trial; none if they were not scraped."""
    counts = ProxyCounts(trials=1)
    for metric, series in Readings(trial.source.readings()).monitored(SCRAPE):
        if not metric.startswith(PROXY_PREFIX) or series.labels.service != proxy:
            continue
        labels = [value for name, value in series.labels.items() if name not in ("service", "replica")]
        name = " ".join((metric.removeprefix(PROXY_PREFIX), *labels))
        if name.partition(" ")[0].endswith(("_total", "_sum", "_count")):
            counts.rises[name] += float(series.values[-1] - series.values[0])
        else:
            counts.most[name] = float(series.values.max())
    return counts if "requests_total" in counts.rises else None


# --- the table of a case ----------------------------------------------------------------------------------


def table(case: CaseMeasures) -> Table | None:
    """Return the work of each proxy over the usable trials: counts, shares of its requests, times."""
    rows: list[tuple[Cell, ...]] = []
    trials = 0
    for name in names(case.plan):
        counts = _of_all(case.usable, name)
        if counts.trials:
            rows += _rows(name, counts)
            trials = max(trials, counts.trials)
    if not rows:
        return None
    columns = (
        Column("proxy", align="left"),
        Column("what", align="left"),
        Column("how much", is_mixed=True),
        Column("of its requests", is_mixed=True),
    )
    note = f"the proxy's own counts over {words.plural(trials, 'whole trial')}, warm-up and probes included"
    return Table(columns, tuple(rows), note)


def _of_all(trials: Sequence[TrialMeasures], name: str) -> ProxyCounts:
    total = ProxyCounts()
    for trial in trials:
        counts = read(trial, name)
        if counts is not None:
            total.add(counts)
    return total


def _rows(proxy: str, counts: ProxyCounts) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one proxy: requests first, then each effect that occurred."""
    requests = counts.count("requests_total")

    def counted(what: str, count: int, unit: str = "requests") -> tuple[Cell, ...]:
        share = exact("share", "share", count / requests, requests) if requests and unit == "requests" else ""
        return (proxy, what, exact(what, unit, count, 0), share)

    def value_row(what: str, unit: str, value: float, samples: int = 0) -> tuple[Cell, ...]:
        return (proxy, what, exact(what, unit, value, samples), "")

    yield counted("came in", requests)
    yield counted("handed to the service", counts.count("forwarded_total"))
    for name, what in OUTCOMES.items():
        count = counts.count("outcomes_total", name)
        if count or name == "passed":
            yield counted(what, count)
    waits = counts.count("wait_seconds_count")
    if waits:
        yield counted("waited for a place", waits)
        yield value_row("waiting, mean of these", "s", counts.seconds("wait_seconds_sum") / waits, waits)
        yield value_row("waiting at once, most", "requests", counts.highest("queue_length_most"))
    yield value_row("at the service at once, most", "requests", counts.highest("in_flight_most"))
    delays = [counts.count("injected_total", each) for each in ("delay_request", "delay_response")]
    for what, count in zip(("delayed before the service", "delayed before the answer"), delays, strict=True):
        if count:
            yield counted(what, count)
    if any(delays):
        seconds = counts.seconds("delayed_seconds_total")
        yield value_row("time added, all together", "s", seconds)
        if requests:
            yield value_row("time added, mean of a request", "s", seconds / requests, requests)
    refused = counts.count("injected_total", "connection")
    if refused:
        yield counted("connections beyond the bound, reset", refused, "connections")
    for kind, what in FAILURES.items():
        count = counts.count("upstream_errors_total", kind)
        if count:
            yield counted(what, count)
    yield counted("connections of clients", counts.count("connections_total"), "connections")
    yield counted("connections to the service", counts.count("upstream_connections_total"), "connections")


# --- the proxy's counts against the client's counts --------------------------------------------------------


def accounting(cases: Sequence[CaseMeasures]) -> list[AccountingRow]:
    """Return, for each proxy that is the entry, its requests and answers against those of the client."""
    seen: dict[str, list[tuple[TrialMeasures, ProxyCounts]]] = {}
    for case in cases:
        entry = case.plan.entry_service
        if entry in names(case.plan):
            by_trial = [
                (trial, counts) for trial in case.usable if (counts := read(trial, entry)) is not None
            ]
            seen.setdefault(entry, []).extend(by_trial)
    rows = []
    for proxy, trials in seen.items():
        if trials:
            rows += [_read_row(proxy, trials), _answered_row(proxy, trials)]
    return rows


def _read_row(proxy: str, trials: Sequence[tuple[TrialMeasures, ProxyCounts]]) -> AccountingRow:
    parts: list[Part] = []
    for trial, _ in trials:
        for stream in trial.streams:
            if stream.external is not None:
                parts += stream.external.sent()
                continue
            if stream.result is not None:
                sent = stream.result.requests
                least = max(0, sent.issued - sent.failed - sent.in_flight)
                parts.append(Part("probes" if stream.plan.is_probe else "load", least, sent.issued))
    observed = sum(counts.count("requests_total") for _, counts in trials)
    why = "what failed may not have come to it"
    return _row(f"{proxy}, requests read", parts, observed, why, is_sent=True)


def _answered_row(proxy: str, trials: Sequence[tuple[TrialMeasures, ProxyCounts]]) -> AccountingRow:
    parts: list[Part] = []
    for trial, counts in trials:
        failed = counts.count("outcomes_total", "failed")  # passed on as it was, or answered with 502 or 504
        parts.append(Part("failures of the service", -failed, 0))
        for stream in trial.streams:
            if stream.external is not None:
                parts += stream.external.sent()
                continue
            if stream.result is not None:
                sent = stream.result.requests
                most = sent.answered + sent.failed + sent.in_flight
                parts.append(Part("probes" if stream.plan.is_probe else "load", sent.answered, most))
    observed = sum(counts.count("outcomes_total", *ANSWERED) for _, counts in trials)
    why = "what failed may have been answered too late"
    return _row(f"{proxy}, answers given", parts, observed, why, is_sent=False)


def _row(source: str, parts: Sequence[Part], observed: int, why: str, *, is_sent: bool) -> AccountingRow:
    match = reconcile(observed, tuple(parts))
    exact = match.expected_low == match.expected_high
    sums: defaultdict[str, int] = defaultdict(int)
    for part in (part for part in parts if part.source != AT_THE_END):
        sums[part.source] += max(0, part.high if is_sent else part.low)
    explained = " + ".join(f"{name} {count:,}" for name, count in sums.items() if count)
    sent = sum(sums.values())
    return AccountingRow(
        source=source,
        sent=sent,
        expected_low=match.expected_low,
        expected_high=match.expected_high,
        observed=observed,
        difference=observed - sent,
        explained_by=(explained or "nothing was sent there")
        + ("" if exact else f"; {why}")
        + (f"; {match.unexplained:+d} not explained" if match.unexplained else ""),
        state="ok" if match.unexplained == 0 else "bad",
    )


def handed_on(trial: TrialMeasures, proxy: str) -> Part | None:
    """Return the requests that a proxy passed on; none if the proxy was not scraped."""
    counts = read(trial, proxy)
    if counts is None:
        return None
    forwarded = counts.count("forwarded_total")
    lost = counts.count("upstream_errors_total", *FAILURES)
    # the service may still be at work for clients that have gone when its counter is read for the last time
    gone = counts.count("outcomes_total", "gone")
    return Part(f"handed on by {proxy}", max(0, forwarded - lost - gone), forwarded)


def held_back(trial: TrialMeasures, proxy: str) -> int | None:
    """Return the number of requests that a proxy read and did not pass on; none if unknown."""
    counts = read(trial, proxy)
    if counts is None:
        return None
    lost = counts.count("upstream_errors_total", *FAILURES) + counts.count("outcomes_total", "gone")
    return counts.count("requests_total") - counts.count("forwarded_total") + lost
