"""Limiters of a rate that stand in the service's code or files, for the rule `ratelimit.active`.

Stacks show a library's function that delays: it is there for nothing else. It is the limit where throughput
has stopped growing, most of what is at work waits there, and the service has CPU time left. Where it is not
seen, a line that sets a rate is compared with the rate that comes out at every level of the plateau.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.diagnose import grading, limit_settings
from loadlens.diagnose.driver import Claim, Words, on_curve
from loadlens.diagnose.observe import clocks, delays, waits
from loadlens.model.facts import Crowd, Curve, Facts, Step
from loadlens.model.finding import Estimate, Grade, Setting
from loadlens.model.stacks import SettingPlace
from loadlens.present import numbers

LEVELS = 2  # of the plateau
SAME = 0.01  # of a rate: its levels, and the number in the line


@dataclass(frozen=True, slots=True)
class LimiterCall:
    """A plateau at whose highest level most of what is at work waits in a limiter."""

    curve: Curve
    top: Step
    rate: Estimate
    crowd: Crowd


@dataclass(frozen=True, slots=True)
class LimiterLine:
    """A plateau that gives, at every level, the rate that a line of the service's files sets."""

    full: waits.Full
    rates: tuple[float, ...]  # of its levels, per second
    rate: Estimate  # of the highest
    line: SettingPlace


def observe(facts: Facts) -> list[LimiterCall | LimiterLine]:
    """Return the curves on which a limiter of a library delays requests, or one that a line sets."""
    seen = (_call(curve) or _line(curve) for curve in facts.curves)
    return [each for each in seen if each is not None]


def _call(curve: Curve) -> LimiterCall | None:
    plateau = waits.saturated(curve)
    if plateau is None:
        return None
    top, rate = plateau
    return LimiterCall(curve, top, rate, top.crowd) if top.crowd is not None and top.crowd.limiter else None


def _line(curve: Curve) -> LimiterLine | None:
    full = waits.full(curve)
    if not isinstance(full, waits.Full) or not isinstance(full.top.throughput, Estimate):
        return None
    rates = tuple(s.throughput.point for s in full.steps if isinstance(s.throughput, Estimate))
    if len(rates) < LEVELS or clocks.spread(rates) > SAME:
        return None
    setting = Setting("pace", (1 - SAME) * max(rates), (1 + SAME) * min(rates))
    lines = limit_settings.lines_of(curve.settings, setting)
    return LimiterLine(full, rates, full.top.throughput, lines[0]) if len(lines) == 1 else None


def claim(facts: Facts, call: LimiterCall | LimiterLine) -> Claim:
    """Check that the service is idle meanwhile."""
    if isinstance(call, LimiterLine):
        return _claim_of_line(facts, call)
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


def _claim_of_line(facts: Facts, seen: LimiterLine) -> Claim:
    """Check that the service is idle meanwhile; a lock that lets as many through by chance stays open."""
    rate, place, full = numbers.short(seen.rate), seen.line, seen.full
    signals = [
        delays.rate_signal(seen.rate, full.top),
        clocks.same_rate(seen.rates, limit=SAME),
        grading.stated(
            "limiter.line",
            True,
            text=f"{place.text}: {place.source}",
            chip=f"{place.number} is set",
            value=seen.rate,
        ),
        waits.cpu_signal(facts, full.curve, full.top),
    ]
    rivals = [
        grading.rival("a lock that lets as many through", "not seen from outside", None),
        grading.generator_rival(full.top),
        grading.interference_rival(full.top, facts.cores),
    ]

    def words(_: Grade) -> Words:
        where = place.text.partition(" set ")[2]
        return Words(
            statement=f"A rate limiter lets {rate} through: {place.number} is set {where}",
            explanation=f"As many come out at {len(seen.rates)} levels of load, within 1 %, while the "
            "service has processor time left.",
            advice=f"Ask at most {rate}, or raise the limit; an answer with 429 would make clients pause.",
            confirm=f"twice the limit {where}: twice {rate}",
            impact=full.waiting_share,
            unknown=("whether a lock lets just as many through",),
            setting=Setting.rate(seen.rate.point, "pace"),
        )

    return on_curve(full.curve, signals, rivals, words, cap=Grade.PROBABLE)
