"""The parts of a request's time (C8): CPU, waiting that a finding explains, calls by their spans, the rest.

What a request takes longer under load than at the lightest level of its curve is waiting. A finding on that
curve says for what, so the waiting is named by it; without one its cause is not found. With a single level a
finding names the time before the handler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import CurveCases
from loadlens.measure.metrics import inside
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.model.report import Chart
from loadlens.present import numbers
from loadlens.present.tokens import DEMAND_PARTS
from loadlens.report.build import span_table

MS = 1000.0
LEAST = 0.001  # of the mean: less is not drawn
OUTSIDE, UNEXPLAINED, UNKNOWN = "outside the handler", "unexplained", "waiting, cause not found"
OTHER = "other waiting"
# The rule of a finding -> what requests wait for where it holds.
WAITS_FOR: Mapping[str, str] = {
    "eventloop.blocked": "the event loop",
    "eventloop.waits": "the event loop",
    "cpu.saturated": "a core",
    "cpu.one-core": "its turn to compute",
    "cgroup.throttled": "the CPU quota",
    "threads.pool-limit": "a thread",
    "db.pool": "a connection",
    "db.lock": "a lock",
    "db.lock-timeouts": "a database lock",
    "db.pool-timeouts": "a database connection",
    "calls.at-once": "its turn to call",
    "calls.wait-before": "a connection to what it calls",
    "downstream.full": "what it calls",
    "downstream.slow": "what it calls",
    "downstream.serialised": "a service behind",
    "disk.bound": "storage",
    "memory.pressure": "memory",
    "gc.stops": "the garbage collector",
    "network.bound": "the network",
    "accept.drops": "a connection",
    "outside.handler-wait": "a handler",
    "ratelimit.active": "the rate limiter",
    "hol.correlation": "requests ahead",
    "saturation.plateau": "requests ahead",
}


@dataclass(frozen=True, slots=True)
class Split:
    """The mean time of a request in one case, by part."""

    case: CaseMeasures
    mean: Estimate
    parts: Mapping[str, float]  # seconds


def chart(experiment: str, curves: Sequence[CurveCases], findings: Sequence[Finding]) -> Chart | None:
    """Split the time of a request at the lightest and the heaviest level of each curve of an experiment."""
    splits = [
        split
        for curve in curves
        for case in dict.fromkeys((curve.cases[0], curve.cases[-1]))
        if (split := _split(case, curve, findings)) is not None
    ]
    if not splits:
        return None
    trials = min(len(split.case.usable) for split in splits)
    drawn = within_room(
        [
            {part: seconds for part, seconds in split.parts.items() if seconds >= LEAST * split.mean.point}
            for split in splits
        ]
    )
    longest = max(splits, key=lambda split: split.mean.point)
    intervals = "1 trial" if trials == 1 else f"{trials} trials a case"
    return Chart(
        kind="demand",
        anchor=f"chart-demand-{experiment}",
        headline=_headline(longest),
        datasets={
            "parts": tuple(
                {"case": split.case.name, "part": part, "ms": seconds * MS}
                for split, parts in zip(splits, drawn, strict=True)
                for part, seconds in parts.items()
            ),
            "totals": tuple(
                {
                    "case": split.case.name,
                    "ms": split.mean.point * MS,
                    "lo": None if split.mean.low is None else split.mean.low * MS,
                    "hi": None if split.mean.high is None else split.mean.high * MS,
                }
                for split in splits
            ),
        },
        options={"trials": trials},
        caption="mean of all requests, CPU of the services divided by them; waiting: beyond the mean at the "
        f"lightest load; {intervals}, 95 % intervals",
    )


def within_room(splits: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Sum the shortest waits as one if curves wait for more things than the chart has colours."""
    named: Counter[str] = Counter()
    for split in splits:
        named.update({part: seconds for part, seconds in split.items() if part not in DEMAND_PARTS})
    room = DEMAND_PARTS.count("")
    if len(named) <= room:
        return list(splits)
    summed = {part for part, _ in named.most_common()[room - 1 :]}
    merged: list[Mapping[str, float]] = []
    for split in splits:
        other = sum(seconds for part, seconds in split.items() if part in summed)
        kept = {part: seconds for part, seconds in split.items() if part not in summed}
        merged.append({**kept, OTHER: other} if other > 0 else kept)
    return merged


def _headline(longest: Split) -> str:
    part, seconds = max(longest.parts.items(), key=lambda item: item[1])
    on = numbers.scale("s", [longest.mean.point])
    total, name = numbers.short(longest.mean), longest.case.name
    if part == UNEXPLAINED:
        explained = sum(longest.parts.values()) - seconds
        return f"A request takes {total}, of which {numbers.with_unit(explained, 's')} are explained ({name})"
    return f"{part[:1].upper()}{part[1:]}: {numbers.with_unit(seconds, 's', on=on)} of {total} ({name})"


def _split(case: CaseMeasures, curve: CurveCases, findings: Sequence[Finding]) -> Split | None:
    """Return the parts of a case's mean; none when the services were not watched."""
    splits = [split for trial in case.usable if (split := _of_trial(trial)) is not None]
    mean, lightest = case.mean(), curve.cases[0].mean()
    if not splits or not isinstance(mean, Estimate):
        return None
    parts = {name: float(np.mean([split[name] for split in splits])) for name in splits[0]}
    computed = sum(parts.values())
    if computed > mean.point:  # CPU that runs outside the requests: it cannot be a part of their time
        parts = {name: value * mean.point / computed for name, value in parts.items()}
    rest = max(0.0, mean.point - sum(parts.values()))
    outside = min(rest, _outside(case, mean) or 0.0)
    cause = _cause(curve, findings)
    if isinstance(lightest, Estimate) and (cause is not None or len(curve.cases) > 1):
        longer = mean.point - lightest.point if len(curve.cases) > 1 else outside
        name = UNKNOWN if cause is None else f"waiting for {WAITS_FOR[cause.rule]}"
        parts[name] = waiting = min(rest, max(0.0, longer))
        rest -= waiting
        outside = max(0.0, outside - waiting)
    parts[OUTSIDE] = min(outside, rest)
    rest -= parts[OUTSIDE]
    for name, seconds in span_table.calls(case).items():
        parts[f"in {name}"] = of_call = min(seconds, rest)
        rest -= of_call
    parts[UNEXPLAINED] = rest
    return Split(case, mean, parts)


def _cause(curve: CurveCases, findings: Sequence[Finding]) -> Finding | None:
    """Return the weightiest finding on a curve that says what requests wait for."""
    on_curve = (f for f in findings if curve.label in f.curves and f.grade >= Grade.PROBABLE)
    return next((f for f in on_curve if f.explained_by is None and f.rule in WAITS_FOR), None)


def _of_trial(trial: TrialMeasures) -> dict[str, float] | None:
    load = trial.load
    services = [p for p in trial.resources.services if isinstance(p.cpu, Interval)]
    if load is None or not services:
        return None
    rate = float((load.ok + load.not_ok).sum()) / load.grid.seconds
    if rate <= 0:
        return None
    cpu = sum(p.cpu.point for p in services if isinstance(p.cpu, Interval))
    system = sum(p.system or 0.0 for p in services)
    waiting = sum(p.waiting.point for p in services if isinstance(p.waiting, Interval))
    return {
        "CPU, user": max(0.0, cpu - system) / rate,
        "CPU, system": system / rate,
        "wait for CPU": waiting / rate,
    }


def _outside(case: CaseMeasures, mean: Estimate) -> float | None:
    """Mean time between what the client saw and what the handler took; none without the server's times."""
    load = case.reference
    assert load is not None
    total, weight = 0.0, 0.0
    for step in load.plan.steps:
        handler = inside(case, step.path)
        count = sum(float(x.steps[step.index].ok.sum()) for x in case.loads)
        if not isinstance(handler, Estimate) or not count:
            return None
        total += handler.point * count
        weight += count
    return max(0.0, mean.point - total / weight)
