"""Failed requests: by step, outcome and status, with the times that they took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats
from loadlens.measure.requests.log_rows import ANSWERED, ended, is_thinned, seconds, stands_for, whole
from loadlens.measure.source import StreamPlan, TrialSource
from loadlens.model.facts import FailureMode
from loadlens.model.result import EngineResult, FailingAnswer
from loadlens.model.trial import Outcome
from loadlens.signals.read import spans

COLUMNS = ("stream", "step", "outcome", "status", "due_ns", "sent_ns", "done_ns", "thinned")
OF_AB = ("outcome", "done_ns", "body_bytes", "thinned")
NOT_ENDED = {Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED}
NOT_FAILURES = {Outcome.OK, *NOT_ENDED}


PILE = 0.10  # around the median


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """Requests of one step that ended in one way in the measured part."""

    stream: str
    step: str
    outcome: str
    status: int  # 0: no answer
    count: int  # from a thinned log an estimate
    seconds: Floats | None  # from due to the end, or from sent; none when the sample log was thinned
    rows: int | None  # of a thinned log, which the count is from
    first_s: float  # since t0
    last_s: float


def by_way(failures: Iterable[Failure]) -> dict[tuple[str, str, int], list[Failure]]:
    """Return failures by step, outcome and status, those of several trials together."""
    ways: dict[tuple[str, str, int], list[Failure]] = {}
    for failure in failures:
        ways.setdefault((failure.step, failure.outcome, failure.status), []).append(failure)
    return ways


def texts_of(kept: Sequence[FailingAnswer], counts: Mapping[int, int]) -> Iterator[tuple[str, int]]:
    """Yield texts of failing answers; the few that are kept of a status stand for all of it."""
    alike = Counter(answer.status for answer in kept)
    for answer in kept:
        share = counts.get(answer.status, 0) / alike[answer.status]
        yield f"{answer.head}\n\n{answer.body}", math.ceil(share)


def mode_of(alike: Sequence[Failure], success_s: float | None) -> FailureMode:
    """Return failures of one way as one.

    Args:
        alike: At least one, of any number of trials.
        success_s: Median time of successes of the same step; none: not known.
    """
    kept = [part.seconds for part in alike if part.seconds is not None]
    is_whole = len(kept) == len(alike)
    times = np.concatenate(kept) if is_whole else np.zeros(0)
    median = float(np.median(times)) if times.size else None
    return FailureMode(
        label=alike[0].step,
        outcome=alike[0].outcome,
        status=alike[0].status,
        count=sum(part.count for part in alike),
        median_s=median,
        pile=None if median is None else float((np.abs(times - median) <= PILE * median).mean()),
        success_median_s=success_s,
        rows=None if is_whole else sum(part.rows or part.count for part in alike),
    )


def logs_of(sources: Iterable[TrialSource]) -> Iterator[str]:
    """Yield what the services of trials logged, in files and through OpenTelemetry."""
    for source in sources:
        started = (process.service for process in source.services)
        for name in dict.fromkeys((*started, *source.placement.services)):
            yield source.log(name)
        yield spans.log_text(source.readings())


def read(source: TrialSource, plans: Sequence[StreamPlan], begin: float, end: float) -> tuple[Failure, ...]:
    """Gather the failures of the measured part from the sample log; counts allow for thinning."""
    if not has_any(source.result):
        return ()
    rows = ended(source, COLUMNS, begin, end, outcomes=set(Outcome) - NOT_FAILURES)
    failures = []
    for key, part in rows.group_by(["stream", "step", "outcome", "status"], maintain_order=True):
        stream, step, outcome, status = (int(str(field)) for field in key)
        done, due = whole(part, "done_ns"), whole(part, "due_ns")
        # What made the load may not know when a request was due.
        due = np.where(due < 0, whole(part, "sent_ns"), due)
        failures.append(
            Failure(
                stream=plans[stream].name,
                step=plans[stream].steps[step].name,
                outcome=Outcome(outcome).name.lower(),
                status=status,
                count=int(stands_for(part).sum()),
                seconds=None if is_thinned(part) else (done - due) / 1e9,
                rows=part.height if is_thinned(part) else None,
                first_s=float(done.min()) / 1e9,
                last_s=float(done.max()) / 1e9,
            )
        )
    return tuple(sorted(failures, key=lambda f: -f.count))


@dataclass(frozen=True, slots=True, eq=False)
class AbCounts:
    """ApacheBench's counts by interval, and the lengths of bodies that decide it."""

    failed: Floats
    ended: Floats
    first_bytes: int | None  # of the first answer's body; none: nothing was answered
    least_bytes: int
    most_bytes: int


def as_ab_counts(source: TrialSource, stream: int, step: int | None, edges: Floats) -> AbCounts | None:
    """Count failures as ApacheBench does: not answered whole, or with a body not as long as the first.

    Args:
        stream: Index of the stream in the plan.
        step: Of one step, or of all; then the first answer of all is the measure, as ab has one URL.
        edges: Of the intervals, seconds since t0; shape (intervals + 1,).

    Returns:
        Failed and ended requests by interval, shape (intervals,); none when the sample log was thinned, which
        leaves the first answer out.
    """
    outcomes = set(Outcome) - NOT_ENDED
    rows = ended(source, OF_AB, edges[0], edges[-1], stream=stream, step=step, outcomes=outcomes)
    if is_thinned(rows):
        return None
    rows = rows.sort("done_ns")
    is_answered = np.isin(whole(rows, "outcome"), ANSWERED)
    lengths = whole(rows, "body_bytes")
    first = lengths[is_answered][:1]
    is_failed = ~is_answered | (lengths != (first[0] if first.size else 0))
    done_s = np.clip(seconds(rows, "done_ns"), edges[0], edges[-1])
    totals, _ = np.histogram(done_s, edges)
    hits, _ = np.histogram(done_s[is_failed], edges)
    answered = lengths[is_answered]
    return AbCounts(
        hits.astype(np.float64),
        totals.astype(np.float64),
        int(first[0]) if first.size else None,
        int(answered.min()) if answered.size else 0,
        int(answered.max()) if answered.size else 0,
    )


def has_any(result: EngineResult | None) -> bool:
    """True if any request failed or got an answer that was not expected."""
    if result is None:
        return False
    if result.external is not None:
        return bool(result.external.requests.failed or result.external.requests.unexpected_status)
    return any(stream.requests.bad for stream in result.streams)
