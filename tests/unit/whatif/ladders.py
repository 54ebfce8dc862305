"""Ladders of closed forms, findings that claim their cause, and their predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from loadlens.diagnose import Verdict
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Estimate, Evidence, Finding, Grade, Prediction, Undecided
from loadlens.whatif import remedies
from tests.oracles import closed_forms as queues
from tests.unit.diagnose import build

LADDER = (1, 2, 4, 8, 16, 32, 64)
Served = Callable[[int], tuple[float, float]]  # users -> throughput, mean response time


def curve_of(served: Served, *, users: Sequence[int] = LADDER, think: float = 0.0, **more: object) -> Curve:
    """A ladder with the figures of a formula, three trials a level, each figure within 2 %."""
    steps = tuple(build.step(n, *served(n)) for n in users)
    return build.curve(*steps, think=think, label="ladder", shares_cores=False, **more)  # type: ignore[arg-type]


def dropped(curve: Curve, share: float = 0.5) -> Curve:
    """The same, of which clients waited to ask for connections again for a share of the response time."""

    def seen(step: Step) -> Step:
        mean = step.response.mean
        assert isinstance(mean, Estimate)
        again = round(share * mean.point * 10_000)  # 1 s each
        watch = build.connections(10_000, 10_000, connects=10_000, resent=again)
        return replace(step, connections=watch)

    return replace(curve, steps=tuple(seen(step) for step in curve.steps))


def caused_by(rule: str, **claims: float) -> Finding:
    """A finding of a rule, with numbers that it claims under their signals."""
    evidence = tuple(
        Evidence(name.replace("__", "."), "", "", value, None, None, None, True)
        for name, value in claims.items()
    )
    return Finding(
        rule, Grade.PROBABLE, 0.9, "all", "it limits", "", evidence, (), "", "", curves=("ladder",)
    )  # fmt: skip


def claiming(cause: Finding, signal: str, value: float, low: float, high: float) -> Finding:
    """The same with one more number that it claims, and its interval."""
    piece = Evidence(signal, "", "", value, low, high, None, True)
    return replace(cause, evidence=(*cause.evidence, piece))


def predictions_of(
    curve: Curve, cause: Finding, *others: Finding, cores: int = 4, dense: Sequence[Step] = ()
) -> tuple[Prediction, ...]:
    """Predictions of a cause, next to other findings."""
    verdict = Verdict((cause, *others), (), ())
    return (
        remedies.with_predictions(Facts(cores, (curve,), dense=tuple(dense)), verdict).findings[0].predictions
    )


def after(predictions: Sequence[Prediction], remedy: str, what: str) -> Estimate:
    estimate = next(p.after for p in predictions if remedy in p.remedy and p.what.startswith(what))
    assert isinstance(estimate, Estimate), estimate
    return estimate


def why_not(predictions: Sequence[Prediction]) -> str:
    (only,) = predictions
    assert isinstance(only.after, Undecided), only
    return only.after.reason


def assert_holds(figure: Estimate, true: float, *, within: float = 0.10) -> None:
    """Close to the truth, which lies within the interval."""
    assert figure.low is not None
    assert figure.high is not None
    assert figure.point == pytest.approx(true, rel=within)
    assert figure.low <= true <= figure.high


def repaired(service: float, think: float, servers: int) -> Served:
    def served(users: int) -> tuple[float, float]:
        queue = queues.repairman(users, think, service, servers)
        return queue.throughput, queue.response

    return served


def locked(base: float, hold: float, think: float) -> Served:
    def served(users: int) -> tuple[float, float]:
        queue = queues.mva([hold], think + base, users)
        return queue.throughput, base + queue.response

    return served
