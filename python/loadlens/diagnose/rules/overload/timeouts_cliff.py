"""A time-out cuts the response times off.

**Means.** Requests that would have taken longer end in an error after a set time, at the client or within
the service. The times of successes stop there, and how long the rest would have taken is not known: every
high quantile is a lower bound.

**Needs.** At least 0.1 % of the requests of a level given up by the client, or answered with an error at
one time: half of these errors or more within 10 % of their median, and the median within 2 % of a time that
people set (0.5, 1, 2, 3, 5, 10, 15, 20, 30 or 60 s).

**Ruled out by.** Errors that come faster than successes, by more than a tenth and the time of a request at
the lightest load: refusals. (Where requests queue, a success that waited as long as the errors did takes its
own work on top.) A slow path that ends well is no
time-out: only errors count. That errors take just so long by themselves is ruled out where nine of ten lie
within 10 %. Errors that take as long as successes (within 10 %) and another time at another level: they come
at the end of whole requests.

**Thresholds.** 0.1 %: single faults are as likely below. Half within 10 %: queued requests spread by far
more. 2 %: what a request does beside waiting comes on top of the time that was set; with ten such times
chance hits one in twelve times at most, and has to pile up there as well. The time that was set is claimed
from the errors' time down to a request's time at the lightest load below it: so much a request does besides.

**Do.** Read quantiles above the share of these errors as lower bounds; set deadlines of inner calls below
the patience of callers, and refuse early instead of late.

**Confirm.** Twice the time-out: the errors come after twice the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.model.facts import Curve, Facts, FailureMode, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "timeouts.cliff"
TITLE = "a time-out cuts response times off"
EXPLAINS: tuple[str, ...] = ()

USUAL_S = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0)
NEAR = 0.02
LEAST_SHARE = 0.001
FEWEST = 3
ALIKE = 0.10  # of a time: closer ones are the same
PILED, SURELY_PILED = 0.5, 0.9
ERROR = 400  # and above
GIVEN_UP = ("timeout", "connect_timeout", "tls_timeout")  # by the client


@dataclass(frozen=True, slots=True)
class Look:
    """Requests of one level that a time-out may have ended."""

    curve: Curve
    step: Step
    mode: FailureMode
    share: float  # of the requests

    @property
    def at(self) -> str:
        """The load there, in words."""
        return load_text.load_of(self.curve, self.step)

    @property
    def by_client(self) -> bool:
        """Whether the client gave up."""
        return self.mode.outcome in GIVEN_UP


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every kind of failure on every level; the most frequent that fits speaks."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    if not steps:
        return NotAssessed(ID, TITLE, "no valid trial")
    if all(step.issued is None for _, step in steps):
        return NotAssessed(ID, TITLE, "needs what became of each request: what made the load does not say")
    looks = [
        Look(curve, step, mode, mode.count / step.issued)
        for curve, step in steps
        for mode in step.failures
        if step.issued and (mode.outcome in GIVEN_UP or mode.status >= ERROR)
    ]
    looks.sort(key=lambda look: look.share, reverse=True)
    found = [(look, finding) for look in looks if (finding := _finding(look)) is not None]
    if not found:
        return Absent(ID, TITLE, _silence(facts, looks))
    best = max(found, key=lambda pair: (pair[1].grade, pair[0].share))[1]
    curves = tuple(dict.fromkeys(look.curve.label for look, _ in found))
    return replace(best, curves=curves)


def _finding(look: Look) -> Finding | None:
    signals = _signals(look)
    rivals = [
        _fast_rival(look),
        _alike_rival(look),
        _chance_rival(look),
        grading.generator_rival(look.step),
    ]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, look.share),
        scope=f"{look.mode.label} · {look.curve.label}",
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm=_confirm(look),
        unknown=("how long these requests would have taken",),
        curves=(look.curve.label,),
    )


def _ends(look: Look) -> str:
    return "are given up by the client" if look.by_client else f"end with {look.mode.status}"


def _signals(look: Look) -> list[grading.Signal]:
    mode = look.mode
    share = grading.stated(
        "errors.share",
        look.share >= LEAST_SHARE and mode.count >= FEWEST,
        text=f"{mode.count:,} of {look.step.issued:,} requests ({numbers.percent(look.share)}) {_ends(look)} "
        f"at {look.at} (limit {numbers.percent(LEAST_SHARE)} and {FEWEST})",
        chip=f"{numbers.percent(look.share)} {'given up' if look.by_client else 'end late'}",
    )
    if mode.median_s is None or mode.pile is None:
        lack = "the times of these requests were not kept"
        # That the client gave up is a time-out by itself, whenever it was.
        missing = True if look.by_client else None
        return [share, grading.stated("errors.time", missing, text=lack)]
    return [share, _time(look, mode.median_s), _pile(look, mode.pile)]


def _time(look: Look, median_s: float) -> grading.Signal:
    usual = usual_near(median_s)
    told = numbers.with_unit(median_s, "s")
    if look.by_client:
        passed, text = True, f"half of them after {told} or more"
    elif usual is None:
        passed, text = False, f"half of them after {told}: no time that people set is within {NEAR:.0%}"
    else:
        passed, text = True, f"half of them after {told}, and {usual:g} s is a time that people set"
    found = grading.stated("errors.time", passed, text=text, chip=f"after {told}")
    alone = _lightest(look)
    low = None if alone is None else max(0.0, median_s - alone)
    return grading.Signal(replace(found.evidence, value=median_s, low=low, high=median_s), found.is_clear)


def _lightest(look: Look) -> float | None:
    """Mean time of a request at a lighter load, the lightest there was: what one does beside waiting."""
    first = look.curve.steps[0]
    mean = first.response.mean
    return mean.point if isinstance(mean, Estimate) and first.load < look.step.load else None


def _pile(look: Look, pile: float) -> grading.Signal:
    text = f"{numbers.percent(pile)} of them lie within 10 % of that (limit {numbers.percent(PILED)})"
    passed = pile >= PILED or look.by_client
    return grading.stated("errors.pile", passed, text=text, chip=f"{numbers.percent(pile)} at one time")


def usual_near(seconds: float) -> float | None:
    """The time that people set which this one is hardly above or below."""
    return next((usual for usual in USUAL_S if abs(seconds - usual) <= NEAR * usual), None)


def _fast_rival(look: Look) -> Counter:
    name, took, usual = "refusals", look.mode.median_s, look.mode.success_median_s
    if look.by_client:
        return grading.rival(name, "the client gave up, nobody refused", True)
    if took is None or usual is None:
        return grading.rival(name, "how long successes take is not known", None)
    text = f"half of the successes within {numbers.with_unit(usual, 's')}"
    # Who waited just short of the time-out is served then, and takes the time of its work on top.
    return grading.rival(name, text, took > (1 - ALIKE) * usual - (_lightest(look) or 0.0))


def _alike_rival(look: Look) -> Counter:
    """Errors at the end of whole requests: they take as long as successes, whatever that is at a level."""
    name, took, usual = "errors at the end of whole requests", look.mode.median_s, look.mode.success_median_s
    if look.by_client:
        return grading.rival(name, "the client gave up, nothing ended", True)
    if took is None or not usual:
        return grading.rival(name, "how long successes take is not known", None)
    text = f"they take {took / usual:.2f} times as long as successes"
    if abs(took / usual - 1) > ALIKE:
        return grading.rival(name, text, True)
    others = [
        mode.median_s
        for step in look.curve.steps
        for mode in step.failures
        if step is not look.step
        and (mode.label, mode.outcome, mode.status) == (look.mode.label, look.mode.outcome, look.mode.status)
        and mode.median_s is not None
        and mode.count >= FEWEST
    ]
    if not others:
        return grading.rival(name, f"{text}, and come at no other level", None)
    off, farthest = max((abs(other / took - 1), other) for other in others)
    text = f"{text}, and {numbers.with_unit(farthest, 's')} at another level"
    return grading.rival(name, text, off <= ALIKE)


def _chance_rival(look: Look) -> Counter:
    name, pile = "errors that take so long by themselves", look.mode.pile
    if look.by_client:
        return grading.rival(name, "the client's own time-out ended them", True)
    if pile is None:
        return grading.rival(name, "their times were not kept", None)
    text = f"{numbers.percent(pile)} lie within 10 % (limit {numbers.percent(SURELY_PILED)})"
    return grading.rival(name, text, True if pile >= SURELY_PILED else None)


def _statement(look: Look) -> str:
    share = numbers.percent(look.share)
    after = "" if look.mode.median_s is None else f" after {numbers.with_unit(look.mode.median_s, 's')}"
    return f"{share} of the requests {_ends(look)}{after} at {look.at}: a time-out"


def _explanation(look: Look) -> str:
    usual = look.mode.success_median_s
    told = "" if usual is None else f" Half of the successes take {numbers.with_unit(usual, 's')} or less."
    return f"Quantiles above p{100 * (1 - look.share):.4g} are lower bounds.{told}"


def _advice(look: Look) -> str:
    after = "" if look.mode.median_s is None else f" than {numbers.with_unit(look.mode.median_s, 's')}"
    return (
        f"Read quantiles above p{100 * (1 - look.share):.4g} as lower bounds; let inner calls end earlier"
        f"{after}, and refuse early what cannot be served in time."
    )


def _confirm(look: Look) -> str:
    if look.mode.median_s is None:
        return "twice the time-out: these requests end later by as much"
    after = numbers.with_unit(2 * look.mode.median_s, "s")
    return f"twice the time-out: these requests end after {after}, or well before"


def _silence(facts: Facts, looks: list[Look]) -> str:
    if looks:
        worst = looks[0]
        return f"{numbers.percent(worst.share)} {_ends(worst)}; {_why(worst)}"
    known = [step for curve in facts.curves for step in curve.steps if step.issued is not None]
    issued = sum(step.issued or 0 for step in known)
    means = [s.response.mean.point for s in known if isinstance(s.response.mean, Estimate)]
    longest = f"; on no level longer than {numbers.with_unit(max(means), 's')} on average" if means else ""
    return f"none of {issued:,} requests was given up or ended in an error{longest}"


def _why(look: Look) -> str:
    fast = _fast_rival(look)
    against = grading.against((fast, _alike_rival(look))) or fast
    return grading.unclear(_signals(look)) or against.text
