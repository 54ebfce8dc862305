"""The bars for our own performance, and a verdict on each from the data at hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benches import laws, truth
from benches.cost import Row
from benches.estimates import Middle, middle
from benches.results import Claim, Results
from benches.works import WORKS, title

OURS = "loadlens"
ROUNDS = 8  # fewer are shown and not judged as met


@dataclass(frozen=True, slots=True)
class Verdict:
    """One line of the table of bars, as text."""

    name: str
    bar: str
    measured: str
    verdict: str


@dataclass(frozen=True, slots=True)
class CostBar:
    """CPU per request of one piece of work, at most so many times another generator's."""

    work: str
    to: str
    at_most: float


@dataclass(frozen=True, slots=True)
class LimitBar:
    """One of `limits`, at most so much."""

    name: str  # in the data
    words: str
    at_most: float  # in the unit shown
    unit: str
    per: float  # units shown for one in the data
    less: float = 0.0  # the value is judged by how far it is from this


COST = [
    *(CostBar(f"get-{count}", "floor", 1.12) for count in (12, 100, 1000)),
    CostBar("get-1", "wrk", 1.0),
    CostBar("get-12", "wrk", 0.75),
    CostBar("get-100", "wrk", 0.75),
    CostBar("get-1000", "wrk", 0.80),
    CostBar("post-100", "wrk", 0.75),
    CostBar("tls-100", "wrk", 0.90),
    CostBar("fresh-100", "wrk", 0.95),
    CostBar("flow-100", "k6", 0.10),
]
LIMITS = [
    LimitBar("hit_0_cpu_s", "CPU of `hit -d 0`", 0.25, "s", 1.0),
    LimitBar("idle_connection_bytes", "user memory of an idle kept connection, of 10,000", 512.0, "B", 1.0),
    LimitBar("hit_resident_bytes", "the whole `hit` with 10,000 idle connections", 64 + 4.88, "MiB", 2**-20),
    LimitBar("open_rate_error", "departure from 10,000/s over 10 s", 0.1, "%", 100.0),
    LimitBar("gaps_constant_cv", "coefficient of variation of the gaps at a constant 1,000/s", 0.05, "", 1.0),
    LimitBar("gaps_poisson_cv", "the same of a Poisson process, less 1", 0.02, "", 1.0, less=1.0),
    LimitBar("open_late_p50_s", "lateness at 10,000/s, p50", 1.0, "µs", 1e6),
    LimitBar("open_late_p90_s", "lateness at 10,000/s, p90", 5.0, "µs", 1e6),
    *(
        LimitBar(
            f"law_{law}_above", f"p50 to p99.9 above the server's own, {law}", 1.0, "× max(50 µs, 1 %)", 1.0
        )
        for law in laws.LAWS
    ),
    *(
        LimitBar(f"law_{law}_below", f"p50 to p99.9 below the server's own, {law}", 0.1, "%", 100.0)
        for law in laws.LAWS
    ),
]


def verdicts(results: Results, rows: Sequence[Row]) -> list[Verdict]:
    """Every bar with what was measured."""
    return [*_cost(rows), *_limits(results), *_accuracy(results)]


def judged(value: Middle, at_most: float) -> str:
    """`met` or `missed` by the median; an interval that reaches across the bar says so."""
    word = "met" if value.value <= at_most else "**missed**"
    if value.low is None or value.high is None:
        return f"{word}, no interval"
    return f"{word}, the interval reaches across" if value.low <= at_most < value.high else word


def _cost(rows: Sequence[Row]) -> Iterator[Verdict]:
    works = {work.name: work for work in WORKS}
    for bar in COST:
        name, limit = f"CPU per request: {title(works[bar.work])}", f"≤ {bar.at_most:.2f} × {bar.to}"
        row = next((row for row in rows if row.work == bar.work and row.generator == OURS), None)
        assert bar.to in ("floor", works[bar.work].peer)
        ratio = None
        if row is not None:
            ratio = row.to_floor if bar.to == "floor" else row.to_peer
        if ratio is None:
            yield Verdict(name, limit, "not measured", "")
            continue
        enough = "" if ratio.rounds >= ROUNDS else f" ({ratio.rounds} rounds)"
        yield Verdict(name, limit, _shown(ratio), judged(ratio, bar.at_most) + enough)


def _limits(results: Results) -> Iterator[Verdict]:
    for bar in LIMITS:
        values = [
            abs(limit_row.value - bar.less) * bar.per
            for limit_row in results.limits
            if limit_row.name == bar.name and not limit_row.left_out
        ]
        measured = middle(values)
        limit = f"≤ {bar.at_most:.3g} {bar.unit}"
        if measured is None:
            yield Verdict(bar.words, limit, "not measured", "")
            continue
        spread = f"{measured.value:.3g} {bar.unit} ({min(values):.3g}–{max(values):.3g} in {len(values)})"
        yield Verdict(bar.words, limit, spread, "met" if measured.value <= bar.at_most else "**missed**")


def _accuracy(results: Results) -> Iterator[Verdict]:
    """Ours against the analytic truth of a freeze, and against the server's own log of a mixture."""
    for case in truth.CASES:
        is_freeze = case.work.name.startswith("freeze")
        if is_freeze and case.work.rate is None:
            continue  # nothing that steady users would see
        fields = ("p99_s",) if is_freeze else ("p50_s", "p99_s", "p999_s")
        at_most = 2.0 if is_freeze else 1.0
        against = "the analytic truth" if is_freeze else "the server's log"
        labels = {"p50_s": "p50", "p99_s": "p99", "p999_s": "p99.9"}
        name = f"{', '.join(labels[field] for field in fields)}, {case.work.name}"
        limit = f"within {at_most:g} % of {against}"
        ours = [claim for claim in results.claims if claim.case == case.work.name and claim.generator == OURS]
        if not ours:
            yield Verdict(name, limit, "not measured", "")
            continue
        unsaid = [labels[field] for field in fields if any(getattr(claim, field) is None for claim in ours)]
        if unsaid:
            yield Verdict(name, limit, f"{', '.join(unsaid)} undecided", "**missed**")
            continue
        logs = [log for log in results.claims if log.case == case.work.name and log.generator == truth.SERVER]
        worst = max(_error(case, claim, logs[i], field) for i, claim in enumerate(ours) for field in fields)
        measured = f"{worst * 100:.2f} % at most"
        yield Verdict(name, limit, measured, "met" if worst * 100 <= at_most else "**missed**")


def _error(case: truth.Case, claim: Claim, log: Claim, field: str) -> float:
    """Relative error of a claim; at a jump, every value that the jump spans counts as true."""
    analytic: float | None = getattr(case.truth, field)
    claimed: float = getattr(claim, field)
    if case.work.name.startswith("freeze"):
        low = high = analytic
    elif analytic is None:
        low, high = log.p50_s, log.p999_s
    else:
        low = high = getattr(log, field)
    assert low is not None
    assert high is not None
    return max(0.0, 1 - claimed / low, claimed / high - 1)


def _shown(ratio: Middle) -> str:
    interval = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f}–{ratio.high:.2f})"
    return f"{ratio.value:.2f} ×{interval}"
