"""Calls are made again when they fail.

**Means.** The service calls another program, and calls again when the call fails or takes too long. Under
load each request makes several calls where a single one is enough otherwise: the program that is called
gets more load the less it keeps up, and requests take the time of all tries.

**Needs.** Calls to a program of this machine, as the kernel saw them there: where no request fails at least
nine for each ten requests; and at a heavier load 1.5 times as many for each request or more, half a call at
least, where at least 1 % of the requests fail. Trials that were ended because requests failed count as well.
Calls that are given up take their connections with them and may be missed: connections that programs of the
machine open, beyond those at the load with the fewest per second, are calls, too.

**Ruled out by.** Fewer calls than requests where none fails: a cache, which misses more often under load.
Loads at which nothing fails: answers that grow look the same. A service that names a pool in its log or its
answers: each connection that a full pool opens begins with messages of its own. Whether a request that fails
makes further calls by design is not seen from outside, so the finding is never more than probable.

**Thresholds.** 1.5 times and half a call: a second try of every other request; segments of data are counted,
and a long answer arrives in a few. 1 % failures: single faults do not make so many calls.

**Do.** Give retries a budget (a tenth of the requests) and pauses that grow, with jitter; retry in one place
only, and not when the program called says that it is overloaded.

**Confirm.** Retries off: calls for each request stay as where none fails, and more requests succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import opened_connections
from loadlens.measure.curve import failed_share
from loadlens.model.facts import Curve, EndedLevel, Facts, Step
from loadlens.model.finding import Counter, Grade
from loadlens.present import load_text, numbers

ID = "retry.calls"
TITLE = "calls are made again when they fail"
EXPLAINS: tuple[str, ...] = ("shed.overload", "timeouts.cliff", "retrograde.throughput")

OFTEN = 0.9  # of the requests call where none fails: no cache answers
TIMES = 1.5  # as many calls for each request
MORE = 0.5  # calls for each request on top
OPENED = "new connections"
FAILING = 0.01  # of the requests, at the heavier load


@dataclass(frozen=True, slots=True)
class Repeated:
    """Calls for each request where none fails, and at the load with the most."""

    curve: Curve
    level: Step | EndedLevel
    name: str  # `calls to api:8081`
    before: float  # for each request, where none fails
    now: float
    failed: float  # share of the requests at that load

    @property
    def times(self) -> float:
        """Calls per request at that load over those where none fails."""
        return self.now / self.before


def observe(facts: Facts) -> Sequence[Repeated] | Lacking | Nothing:
    """Return the calls that became more for each request, those that did most first."""
    if not any(step.calls for curve in facts.curves for step in curve.steps):
        return Lacking("needs calls to programs of this machine, and the kernel's view of them")
    repeated = [each for curve in facts.curves for each in _on(curve)]
    return sorted(repeated, key=lambda each: each.times, reverse=True) or Nothing(
        "at one level of load at least no request has to fail, and another has to be heavier"
    )


def _on(curve: Curve) -> list[Repeated]:
    well = [step for step in curve.steps if not step.failed_count]
    if not well:
        return []
    levels: list[Step | EndedLevel] = [*curve.steps, *curve.ended]
    heavier = [level for level in levels if level.load > well[0].load]
    names = dict.fromkeys(calls.under_way.name for step in well for calls in step.calls)
    before = {name: max(each for step in well if (each := _calls(step, name)) is not None) for name in names}
    ways = [
        (name, now, before[name], level)
        for name in names
        for level in heavier
        if (now := _calls(level, name)) is not None and before[name] > 0
    ]
    opened = _opened(curve)
    most = max((*before.values(), *(opened.get(step.load, 0.0) for step in well)), default=0.0)
    ways += [
        (OPENED, opened[level.load], most, level) for level in heavier if level.load in opened and most > 0
    ]
    return [
        Repeated(curve, level, name, least, now, _failed(level))
        for name, now, least, level in ways
        if level not in well
    ]


def _failed(level: Step | EndedLevel) -> float:
    if isinstance(level, Step):
        return failed_share(level)
    return sum(mode.count for mode in level.failures) / level.issued if level.issued else 0.0


def _calls(level: Step | EndedLevel, name: str) -> float | None:
    return next((calls.per_request for calls in level.calls if calls.under_way.name == name), None)


def _opened(curve: Curve) -> dict[float, float]:
    """Return connections that the machine opened for each answer, by load, but those at a constant rate."""
    seen = [
        (step.load, opened, step.kernel.begun_s, step.connections.answered)
        for step in curve.steps
        if step.kernel is not None and step.kernel.begun_s > 0 and step.connections is not None
        if (opened := opened_connections.besides_load(step)) is not None and step.connections.answered
    ]
    at_least = min((opened / seconds for _, opened, seconds, _ in seen), default=0.0)
    return {load: (opened - at_least * seconds) / answered for load, opened, seconds, answered in seen}


def claim(_: Facts, repeated: Repeated) -> Claim:
    """Require more calls for each request where requests fail, and hold against them what looks the same."""
    at = load_text.load_of(repeated.curve, repeated.level)
    before, now = (f"{each:.2g}" for each in (repeated.before, repeated.now))
    failed = numbers.percent(repeated.failed)
    signals = [
        grading.stated(
            "calls.more",
            repeated.times >= TIMES and repeated.now - repeated.before >= MORE,
            text=f"{repeated.name}: {now} for each request at {at}, {before} where none fails (limit "
            f"{TIMES:g} times, and {MORE:g} more)",
            chip=f"{now} for each request",
            value=repeated.now,
        ),
        grading.stated(
            "errors.share",
            repeated.failed >= FAILING,
            text=f"{failed} of the requests fail at {at} (limit {numbers.percent(FAILING)})",
            chip=f"{failed} fail",
            value=repeated.failed,
        ),
    ]
    rivals = [
        grading.rival(
            "a cache that misses more often",
            f"{before} for each request where none fails (limit {OFTEN:g})",
            repeated.before >= OFTEN,
        ),
        _pool_rival(repeated.level),
        grading.rival("calls that a failed request makes by design", "why it calls is not known", None),
    ]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Retries: {now} {repeated.name} for each request at {at}, {before} where none fails",
            explanation=f"{failed} of the requests fail there. The program that is called gets "
            f"{repeated.times:.2g} times the calls of as many requests that succeed at once.",
            advice="Bound retries (a tenth of the requests), let pauses grow with jitter, retry in one place "
            "only, and not when the other side says that it is overloaded.",
            confirm=f"retries off: {before} for each request at {at} too, and more of them succeed",
            impact=1 - repeated.before / repeated.now,
            unknown=("which calls failed, and why",),
        )

    return on_curve(repeated.curve, signals, rivals, words, cap=Grade.PROBABLE)


def _pool_rival(level: Step | EndedLevel) -> Counter:
    """A pool at its limit opens connections for single calls, and each begins with messages of its own."""
    name, sign = "connections that are opened for single calls", level.sign("pool")
    if sign is None:
        return grading.rival(name, "neither its log nor its answers name a pool", True)
    return grading.rival(name, sign.text, False)


def _silence(_: Facts, repeated: Sequence[Repeated]) -> str:
    most = repeated[0]
    return (
        f"{most.now:.2g} {most.name} for each request, {most.before:.2g} where none fails (limit {TIMES:g} "
        f"times), where {numbers.percent(most.failed)} of the requests fail (limit "
        f"{numbers.percent(FAILING)})"
    )


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
