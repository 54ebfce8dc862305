"""Calls are made again when they fail.

**Means.** The service calls another program, and calls again when the call fails or takes too long. Under
load each request makes several calls where a single one is enough otherwise: the program that is called
gets more load the less it keeps up, and requests take the time of all tries.

**Needs.** Calls to a program of this machine, as the kernel saw them there: where no request fails at least
nine for each ten requests; and at a heavier load 1.5 times as many for each request or more, half a call at
least, where at least 1 % of the requests fail. Calls that come at a constant rate do not count. Calls that
are given up take their connections with them and may be missed: connections that programs of the machine
open are calls, too. Where these became more, messages that begin a connection are not taken for calls. Where
other programs use 10 % of the cores without any load, they may be theirs, and the finding is only suspected.

**Ruled out by.** Fewer calls than requests where none fails: a cache, which misses more often under load.
Loads at which nothing fails: answers that grow look the same. A service that names a pool in its log or its
answers: each connection that a full pool opens begins with messages of its own. Whether a request that fails
makes further calls by design is not seen from outside, so the finding is never more than probable.

**Thresholds.** 1.5 times and half a call: a second try of every other request; segments of data are counted,
and a long answer arrives in a few. 1 % failures: single faults do not make so many calls. A level counts from
five requests for each user on: with fewer, those under way at its ends matter. A tenth of a connection more
for each request: from there on some calls are not on connections that stood before.

**Do.** Give retries a budget (a tenth of the requests) and pauses that grow, with jitter; retry in one place
only, and not when the program called says that it is overloaded.

**Confirm.** Retries off: calls for each request stay as where none fails, and more requests succeed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import opened_connections
from loadlens.measure.curve import completed, failed_share, others_without_load, used_by_others
from loadlens.measure.thresholds import OTHERS_MATTER
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Grade
from loadlens.present import load_text, numbers

ID = "retry.calls"
TITLE = "calls are made again when they fail"
EXPLAINS: tuple[str, ...] = (
    "shed.overload",
    "timeouts.cliff",
    "retrograde.throughput",
    "downstream.serialised",
)

OFTEN = 0.9  # of the requests call where none fails: no cache answers
TIMES = 1.5  # as many calls for each request
MORE = 0.5  # calls for each request on top
OPENED = "new connections"
FAILING = 0.01  # of the requests, at the heavier load
ENOUGH = 5.0  # requests that ended for each user
OPENED_MORE = 0.1  # connections for each request: from there on some are not those that stood before

Rates = Mapping[float, tuple[float, float]]  # by load: calls and requests, per second


@dataclass(frozen=True, slots=True)
class Repeated:
    """Calls for each request where none fails, and at the load with the most."""

    curve: Curve
    level: Step
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
        "needs a level at which no request fails, and a heavier one at which some do"
    )


def _on(curve: Curve) -> list[Repeated]:
    well = [step.load for step in curve.steps if not step.failed_count]
    failing = [
        step
        for step in curve.steps
        if step.failed_count and step.load > min(well, default=step.load) and _is_long(step)
    ]
    names = dict.fromkeys(calls.under_way.name for step in curve.steps for calls in step.calls)
    made = {name: _per_request(_calls(curve, name), well) for name in names}
    before = {name: max((of[load] for load in well if load in of), default=0.0) for name, of in made.items()}
    opened = _per_request(_opened(curve), well)
    usual = max((opened[load] for load in well if load in opened), default=0.0)
    ways = [
        (name, of[step.load], before[name], step)
        for name, of in made.items()
        for step in failing
        if step.load in of and opened.get(step.load, usual) <= usual + OPENED_MORE
    ]
    most = max((usual, *before.values()))
    ways += [(OPENED, opened[step.load], most, step) for step in failing if step.load in opened]
    return [
        Repeated(curve, step, name, least, now, failed_share(step))
        for name, now, least, step in ways
        if least > 0
    ]


def _is_long(step: Step) -> bool:
    """True if requests under way at the edges of a level are few next to those that ended."""
    return step.issued is not None and step.issued >= ENOUGH * step.load


def _calls(curve: Curve, name: str) -> Rates:
    return {
        step.load: (calls.per_request * completed(step), completed(step))
        for step in curve.steps
        for calls in step.calls
        if calls.under_way.name == name and completed(step) > 0
    }


def _opened(curve: Curve) -> Rates:
    """Return connections that the machine opened, by load, and requests meanwhile, answered or not."""
    rates = {}
    for step in curve.steps:
        opened, kernel, watch = opened_connections.besides_load(step), step.kernel, step.connections
        if opened is None or kernel is None or kernel.begun_s <= 0 or watch is None or not step.issued:
            continue
        without = sum(mode.count for mode in step.failures if not mode.status)
        if watch.answered and without < step.issued:
            sent = watch.answered * step.issued / (step.issued - without)
            rates[step.load] = opened / kernel.begun_s, sent / kernel.begun_s
    return rates


def _per_request(rates: Rates, well: Sequence[float]) -> dict[float, float]:
    """Return how many there are for each request, by load, without what comes at a constant rate."""
    points = sorted((requests, rate) for load, (rate, requests) in rates.items() if load in well)
    constant = 0.0
    if len(points) > 1 and points[-1][0] > points[0][0]:
        (fewest, least), (most, largest) = points[0], points[-1]
        constant = max(0.0, least - fewest * (largest - least) / (most - fewest))
    return {load: max(0.0, rate - constant) / requests for load, (rate, requests) in rates.items()}


def claim(facts: Facts, repeated: Repeated) -> Claim:
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
        *([_opener(facts, repeated)] if repeated.name == OPENED else []),
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


def _opener(facts: Facts, repeated: Repeated) -> grading.Signal:
    """The whole machine's connections are counted: those of a busy neighbour look like the service's."""
    curve, level = repeated.curve, repeated.level
    first = curve.steps[0]
    if first.other_cores is None or level.other_cores is None:
        return grading.stated("connections.own", None, text="what other programs use was not read")
    idle = others_without_load(curve, first, level)
    used = used_by_others(curve, first) if idle is None else max(0.0, idle)
    limit = OTHERS_MATTER * facts.cores
    return grading.stated(
        "connections.own",
        True if used < limit else None,
        text=f"other programs use {used:.2f} cores whatever the load (limit {limit:g}): connections may be "
        "theirs",
        chip=f"others use {used:.2f} cores",
        value=used,
    )


def _pool_rival(level: Step) -> Counter:
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
