"""Facts in a few words: a curve of steps with the shape of a service, each part to be bent by a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.model.facts import (
    ClosedWatch,
    ConnectionWatch,
    Curve,
    Facts,
    FailureMode,
    Gate,
    GeneratorWatch,
    LogSign,
    ProbeWatch,
    ProcessWatch,
    RequestClass,
    Step,
    Times,
)
from loadlens.model.finding import (
    Absent,
    Estimate,
    Figure,
    Finding,
    NotAssessed,
    NotMeasured,
)

UNWATCHED = NotMeasured("cpu", "not watched")
Answer = Finding | Absent | NotAssessed


def found(answer: object) -> Finding:
    """The finding that a rule must have made."""
    assert isinstance(answer, Finding), answer
    return answer


def after_loops(assess_after: Callable[[Facts, Sequence[Answer]], Answer], built: Curve) -> Answer:
    """Return the answer of a rule that needs that of blocked event loops."""
    given = facts(built)
    return assess_after(given, [eventloop_blocked.assess(given)])


def estimate(point: float, *, unit: str = "s", half: float = 0.02, trials: int = 3) -> Estimate:
    """A figure with a relative half-width."""
    return Estimate("any", unit, point, point * (1 - half), point * (1 + half), trials, 500, "built")


def times(mean: float, **more: Any) -> Times:
    return Times(estimate(mean, **more), estimate(mean, **more), estimate(2 * mean, **more))


def process(cpu: float, *, waiting: float = 0.0, hot: int | None = 1, label: str = "p") -> ProcessWatch:
    return ProcessWatch(
        label,
        estimate(cpu, unit="cores"),
        estimate(waiting, unit="cores") if waiting else Estimate("w", "cores", 0.0, 0.0, 0.0, 3, 0, "built"),
        estimate(cpu + waiting, unit="cores"),
        hot,
        4.0,
        6e7,
        busiest_thread=None if hot is None else 1 / hot if hot else 0.02,
    )


def probe(mean: float, *, idle: float = 0.002, delayed: float = 1.0, late: bool = False) -> ProbeWatch:
    share = Estimate(
        "d", "share", delayed, max(0.0, delayed - 0.02), min(1.0, delayed + 0.02), 3, 400, "built"
    )
    return ProbeWatch("a", "GET /a", times(mean), idle, share, 400, True, late)


def generator(**more: Any) -> GeneratorWatch:
    healthy = {"verdict": "kept_up", "busy": 0.04, "lag_p99_s": 1e-4, "lag_limit_s": 1e-3, "cpu_cores": 0.05}
    return GeneratorWatch(**{**healthy, **more})


def connections(
    opened: int,
    answered: int,
    *,
    limit: int | None = None,
    age: float = 0.5,
    same_requests: float = 1.0,
    same_age: float = 0.4,
    **more: Any,
) -> ConnectionWatch:
    """Connections of a load; with a limit the service closed nearly all of them after so many requests."""
    by_server = 0 if limit is None else round(0.95 * opened)
    closed = None
    if by_server >= 10 and limit is not None:
        closed = ClosedWatch(by_server, limit, same_requests, age, same_age)
    built: dict[str, Any] = {"closed_by_server": by_server, "closed": closed}
    return ConnectionWatch(**{"opened": opened, "answered": answered, **built, **more})


def step(load: float, rate: float, response: float, *, trials: int = 3, **more: Any) -> Step:
    """One level: users, successes per second, mean response time."""
    figure = {"trials": trials}
    took = times(response, **figure)
    request_class = RequestClass(
        "b", "POST /b", estimate(rate, unit="1/s", **figure), took, took, NotMeasured("inside", "no times")
    )
    built: dict[str, Any] = {
        "label": f"n={load:g}",
        "load": load,
        "trials": trials,
        "throughput": estimate(rate, unit="1/s", **figure),
        "throughput_trials": (rate,) * trials,
        "completed_trials": (rate,) * trials,
        "response": times(response, **figure),
        "classes": (request_class,),
        "issued": int(rate * 20 * trials),
        "failed": Estimate("f", "share", 0.0, 0.0, 0.01, trials, 300, "built"),
        "failed_count": 0,
        "failures": (),
        "probes": (),
        "processes": (),
        "in_flight": estimate(rate * response, unit="requests"),
        "host_cpu": UNWATCHED,
        "steal": 0.0,
        "other_cores": 0.02,
        "generator": generator(),
        "little": "holds",
        "steady": "flat",
    }
    return Step(**{**built, **more})


def curve(*steps: Step, work: Figure | None = None, think: float = 0.15, **more: Any) -> Curve:
    cpu = work if work is not None else UNWATCHED
    built: dict[str, Any] = {
        "label": "k=1",
        "anchor": "chart",
        "is_closed": True,
        "think_s": think,
        "steps": steps,
        "work": cpu,
        "work_all": cpu,
        "costliest": "b",
        "cores_allotted": 4.0,
        "shares_cores": True,
    }
    return Curve(**{**built, **more})


def facts(*curves: Curve, cores: int = 4, gates: tuple[Gate, ...] = ()) -> Facts:
    return Facts(cores, curves, gates)


def blocked(
    work_s: float = 0.2,
    *,
    think: float = 0.15,
    k: int = 1,
    passes: float = 1.0,
    trials: int = 3,
    **last: Any,
) -> Curve:
    """A loop that computes `work_s` a request: throughput k / D, and everything waits for it."""
    capacity = k / work_s
    steps = []
    for users in (1, 5, 20):
        rate = min(capacity, users / (work_s + think))
        response = users / rate - think
        waits = max(0.0, response - work_s) / passes
        busy = rate * work_s / k
        steps.append(
            step(
                users,
                rate,
                response,
                trials=trials,
                probes=(probe(0.002 + max(waits, busy * work_s / 2), delayed=busy),),
                processes=tuple(process(busy, label=f"p{i}") for i in range(k)),
            )
        )
    steps[-1] = replace(steps[-1], **last)
    return curve(*steps, work=estimate(work_s, trials=trials), think=think)


def failing(share: float, *, median: float = 5.3, pile: float = 0.9, status: int = 500, **more: Any) -> Step:
    """The highest level of a curve, where a share of the requests ends with a status."""
    built = step(20, 4.5, 4.2, **more)
    assert built.issued is not None
    count = round(share * built.issued)
    outcome = "unexpected_status" if status else "timeout"
    mode = FailureMode("b", outcome, status, count, median, pile, 4.0)
    failed = Estimate("f", "share", share, share / 2, share * 2, 3, built.issued, "built")
    return replace(built, failures=(mode,) if count else (), failed=failed, failed_count=count)


LOCKED = LogSign("lock", 7, "database is locked")
