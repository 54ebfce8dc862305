"""Accounting: who sent and who counted how many requests over whole trials, what explains a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadlens.estimate.reconciliation import Part, reconcile
from loadlens.measure.case import CaseMeasures
from loadlens.measure.external_report import AT_THE_END, ExternalReport, driver_of
from loadlens.measure.services import proxy_counts
from loadlens.measure.services import request_counters as counted
from loadlens.measure.trial import TrialMeasures
from loadlens.model.quality import Count, Counted
from loadlens.model.recorded import PlannedCase
from loadlens.model.report import AccountingRow
from loadlens.model.result import RequestCounts, StreamResult

NEVER_REACHED = (
    "resolve",
    "refused",
    "connect_timeout",
    "tls_timeout",
    "connect_failed",
    "own_descriptors",
    "own_ports",
)
UNSURE = (
    "reset",
    "closed_before_response",
    "closed_on_reuse",
    "timeout",
    "truncated",
    "malformed",
    "limit",
    "tls",
)


def rows(cases: Sequence[CaseMeasures]) -> tuple[AccountingRow, ...]:
    """Return the rows of the client, of proxies, of logged paths and of service counters."""
    trials = [trial for case in cases for trial in case.trials if trial.source.result]
    if not trials:
        return ()
    usable = [trial for trial in trials if trial.is_usable]
    return (
        *_client([trial for trial in trials if driver_of(trial.source.result) is None]),
        *_reported(usable),
        *proxy_counts.accounting(cases),
        *_paths(usable, cases),
        *_counters(cases),
    )


def _client(trials: Sequence[TrialMeasures]) -> tuple[AccountingRow, ...]:
    """The law of counting, summed over streams and trials."""
    rows = []
    for role in ("load", "probe"):
        streams = [
            stream
            for trial in trials
            for stream in (trial.source.result.streams if trial.source.result is not None else ())
            if stream.role == role
        ]
        if not streams:
            continue
        issued = sum(stream.requests.issued for stream in streams)
        ended = sum(stream.requests.ended + stream.requests.in_flight for stream in streams)
        broken = sum(not stream.law_holds for stream in streams)
        failed = sum(stream.requests.failed for stream in streams)
        rows.append(
            AccountingRow(
                source=f"client, {role}",
                sent=issued,
                expected_low=issued,
                expected_high=issued,
                observed=ended,
                difference=ended - issued,
                explained_by=f"issued = answered {ended - failed:,} + failed {failed:,}, in flight included"
                + (f"; the law is broken in {broken} streams" if broken else ""),
                state="bad" if broken or ended != issued else "ok",
            )
        )
    return tuple(rows)


def _reported(trials: Sequence[TrialMeasures]) -> list[AccountingRow]:
    """Return the unchecked counts that external load generators report."""
    by_name: dict[str, list[ExternalReport]] = {}
    for trial in trials:
        if trial.external is not None:
            by_name.setdefault(trial.external.name, []).append(trial.external)
    return [
        AccountingRow(
            source=f"client, load by {name}",
            sent=sum(report.ended for report in reports),
            expected_low=None,
            expected_high=None,
            observed=None,
            difference=None,
            explained_by=f"{name} says: answered {sum(t.counts.answered for t in reports):,}, failed "
            f"{sum(t.counts.failed for t in reports):,}; what was due it does not say",
            state="unknown",
        )
        for name, reports in by_name.items()
    ]


def _paths(trials: Sequence[TrialMeasures], cases: Sequence[CaseMeasures]) -> list[AccountingRow]:
    """Return the lines that the services logged, path by path, against the requests sent there."""
    counted = [trial for trial in trials if trial.served.total]
    if not counted:
        return []
    ready = {service.ready.path for case in cases for service in case.plan.services if service.ready}
    paths: dict[str, None] = {}
    for trial in counted:
        for stream in trial.streams:
            paths |= {
                step.path.partition("?")[0]: None for step in stream.plan.steps if "{{" not in step.path
            }
    proxies = {case.slug: proxy_counts.names(case.plan) for case in cases}
    path_rows = [_path_row(path, counted, proxies, is_ready_path=path in ready) for path in paths]
    others = sum(
        part.values.size for t in counted for (path, _), part in t.served.paths.items() if path not in paths
    )
    if others:
        explained = "paths with a template, or requests of other clients"
        path_rows.append(
            AccountingRow("service, other paths", None, None, None, others, None, explained, "unknown")
        )
    return path_rows


def counts(cases: Sequence[CaseMeasures]) -> tuple[Count, ...]:
    """Return the rise of each counter of a service in each trial, and the requests sent meanwhile."""
    by_counter = []
    for (service, metric), rises in _rises(cases).items():
        steady = [rise for rise in rises if not rise.restarts]
        trials = tuple(
            Counted(
                seconds=rise.seconds,
                sent_low=sum(part.low for part in rise.sent()),
                sent_high=sum(part.high for part in rise.sent()),
                scrapes=max(0, counted.scrapes(rise.trial, service) - 1),
                counted=rise.rise,
                failed=rise.failed,
            )
            for rise in steady
        )
        by_counter.append(Count(f"{service}, {metric}", trials, len(rises) - len(steady)))
    return tuple(by_counter)


def _counters(cases: Sequence[CaseMeasures]) -> list[AccountingRow]:
    """Return the rises of the services' counters against the requests sent to them."""
    return [_counter_row(service, metric, rises) for (service, metric), rises in _rises(cases).items()]


def _rises(cases: Sequence[CaseMeasures]) -> dict[tuple[str, str], list[_Counted]]:
    """Return the rises by service and metric, one per trial that has the counter."""
    rises: dict[tuple[str, str], list[_Counted]] = {}
    for case in cases:
        for service, scrape in counted.scraped(case.plan).items():
            proxy, metric = proxy_counts.before(case.plan, service), scrape.requests
            if metric is None or (proxy is None and not _is_reached(service, case.plan)):
                continue
            for trial in case.usable:
                counter = counted.read(trial, service, metric)
                # Without a read before the load and one after it, what lies between is not what was sent.
                if counter is None or counter.seconds_between <= 0:
                    continue
                if not counted.is_bracketed(trial, service):
                    continue
                failed = counted.read_failed(trial, service, metric)
                rise = _Counted(
                    trial,
                    counter.rise,
                    None if failed is None else failed.rise,
                    proxy,
                    counter.seconds_between,
                    counter.restarts,
                )
                rises.setdefault((service, metric), []).append(rise)
    return rises


@dataclass(frozen=True, slots=True)
class _Counted:
    """Count of a service in a trial, and the way of the requests to it."""

    trial: TrialMeasures
    rise: float
    failed: float | None  # of it, answers that were none; none: it does not say
    proxy: str | None  # the fault proxy before it
    seconds: float  # between its first and last reading
    restarts: int

    def sent(self) -> list[Part]:
        """Return the possible senders of the requests that it counted."""
        through = None if self.proxy is None else proxy_counts.handed_on(self.trial, self.proxy)
        if through is not None:
            return [through]
        parts: list[Part] = []
        for stream in self.trial.streams:
            if stream.external is not None:
                parts += stream.external.sent()
            elif stream.result is not None:
                parts.append(_sent(stream.result, stream.result.requests))
        return parts


def _is_reached(service: str, plan: PlannedCase) -> bool:
    """True if every request comes to the service: it is the entry, or the entry hands on to it alone."""
    if plan.outside is not None and plan.outside.name == service:
        return True  # what is at the entry's own address
    over = next((each.over for each in plan.services if each.name == plan.entry_service), ())
    return service == plan.entry_service or over == (service,)


def _counter_row(service: str, metric: str, rises: Sequence[_Counted]) -> AccountingRow:
    parts: list[Part] = []
    for rise in rises:
        parts += rise.sent()
        between = max(0, counted.scrapes(rise.trial, service) - 1)
        # Some servers count their metrics' page and some do not, whatever port it is on.
        parts.append(Part("scrapes", 0, between))
    return _row(f"{service}, {metric}", round(sum(rise.rise for rise in rises)), parts, faulty=0)


def _path_row(
    path: str,
    trials: Sequence[TrialMeasures],
    proxies: Mapping[str, tuple[str, ...]],  # of each case
    *,
    is_ready_path: bool,
) -> AccountingRow:
    parts: list[Part] = []
    for trial in trials:
        for stream in trial.streams:
            if stream.external is not None and stream.plan.steps[0].path.partition("?")[0] == path:
                parts += stream.external.sent()
            if stream.result is not None:
                parts += [
                    _sent(stream.result, step.requests)
                    for plan, step in zip(stream.plan.steps, stream.result.steps, strict=False)
                    if plan.path.partition("?")[0] == path
                ]
        for proxy in proxies.get(trial.source.case.slug, ()):
            if (held := proxy_counts.held_back(trial, proxy)) is not None:
                parts.append(Part(f"held back by {proxy}", -held, 0))
        if is_ready_path:
            checks = trial.source.idle.readiness_requests
            least, most = (0, 1_000) if checks is None else (sum(checks.values()),) * 2
            parts.append(Part("readiness", least, most))
    observed = sum(trial.served.count(path) for trial in trials)
    return _row(f"service, {path}", observed, parts, faulty=sum(t.served.faulty for t in trials))


def _row(source: str, observed: int, parts: Sequence[Part], *, faulty: int) -> AccountingRow:
    """Return the count of a service next to its senders; the lab's own requests are no load."""
    sent = sum(part.high for part in parts if part.source not in ("scrapes", "readiness", AT_THE_END))
    reconciled = reconcile(observed, tuple(parts))
    return AccountingRow(
        source=source,
        sent=sent,
        expected_low=reconciled.expected_low,
        expected_high=reconciled.expected_high,
        observed=observed,
        difference=observed - sent,
        explained_by=_explained(parts, reconciled.unexplained, faulty),
        state="ok" if reconciled.unexplained == 0 else "bad",
    )


def _sent(stream: StreamResult, requests: RequestCounts) -> Part:
    """Requests of a step that reached the service: all issued, less those that certainly or maybe did not."""
    never = stream.errors_of(NEVER_REACHED)
    least = max(0, requests.issued - never - stream.errors_of(UNSURE) - requests.in_flight)
    source = "probes" if stream.role == "probe" else "load"
    if len(stream.steps) > 1:  # errors are counted by stream: any of them may be of this step
        return Part(source, least, requests.issued)
    return Part(source, least, requests.issued - never)


def _explained(parts: Sequence[Part], unexplained: int, faulty: int) -> str:
    sums: dict[str, tuple[int, int]] = {}
    for part in parts:
        low, high = sums.get(part.source, (0, 0))
        sums[part.source] = (low + part.low, high + part.high)
    words = [
        f"{source} {high:,}" if low == high else f"{source} {low:,}–{high:,}"
        for source, (low, high) in sums.items()
        if high
    ]
    text = " + ".join(words) or "nothing was sent there"
    kept = [f"{source}: up to {-low:,}" for source, (low, high) in sums.items() if low < 0 <= high]
    text = "; ".join([text, *kept])
    if faulty:
        text += f"; {faulty} lines could not be read"
    if unexplained:
        text += f"; {unexplained:+d} not explained"
    return text
