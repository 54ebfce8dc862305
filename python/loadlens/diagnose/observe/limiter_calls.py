"""Requests that wait in a library's function which limits a rate, for the rule `ratelimit.active`.

Stacks show it directly: the function is there for nothing else. It is the limit where throughput has stopped
growing, most of what is at work waits there, and the service has CPU time left.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Words, on_curve
from loadlens.diagnose.observe import delays, waits
from loadlens.model.facts import Crowd, Curve, Facts, Step
from loadlens.model.finding import Estimate, Grade, Setting
from loadlens.present import numbers


@dataclass(frozen=True, slots=True)
class LimiterCall:
    """A plateau at whose highest level most of what is at work waits in a limiter."""

    curve: Curve
    top: Step
    rate: Estimate
    crowd: Crowd


def observe(facts: Facts) -> list[LimiterCall]:
    """Return the curves on which a limiter of a library delays requests."""
    return [call for curve in facts.curves if (call := _call(curve)) is not None]


def _call(curve: Curve) -> LimiterCall | None:
    plateau = waits.saturated(curve)
    if plateau is None:
        return None
    top, rate = plateau
    return LimiterCall(curve, top, rate, top.crowd) if top.crowd is not None and top.crowd.limiter else None


def claim(facts: Facts, call: LimiterCall) -> Claim:
    """Check that the service is idle meanwhile."""
    rate, crowd, top = numbers.short(call.rate), call.crowd, call.top
    who = waits.who_waits(crowd)
    signals = [
        delays.rate_signal(call.rate, top),
        grading.stated(
            "limiter.code",
            True,
            text=f"{who} at work wait in {crowd.limiter}, at {crowd.line}",
            chip=f"waits at {crowd.line}",
        ),
        waits.cpu_signal(facts, call.curve, top),
    ]
    rivals = [grading.generator_rival(top), grading.interference_rival(top, facts.cores)]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"A rate limiter lets {rate} through: {who} wait for it at {crowd.line}",
            explanation=f"They wait in {crowd.limiter}, which delays what exceeds a rate.",
            advice=f"Ask at most {rate}, or raise the limit; one that refuses instead makes clients pause.",
            confirm=f"twice the limit at {crowd.line}: twice {rate}",
            impact=crowd.waiting / crowd.at_work,
            setting=Setting.rate(call.rate.point),
        )

    return on_curve(call.curve, signals, rivals, words, cap=Grade.PROBABLE)
