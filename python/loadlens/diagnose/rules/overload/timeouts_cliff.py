"""A time-out cuts the response times off.

**Means.** Requests that would have taken longer end in an error after a set time, at the client or within
the service. The times of successes stop there, and how long the rest would have taken is not known: every
high quantile is a lower bound.

**Needs.** At least 0.1 % of the requests of a level given up by the client, or answered with an error at one
time: half of these errors or more within 10 % of their median, and the median within 2 % of a time that
people set (0.5, 1, 2, 3, 5, 10, 15, 20, 30 or 60 s), or the service calls it a time-out: by the status 504,
in its log or in answers.

**Ruled out by.** Errors that come faster than successes, by more than a tenth and the time of a request at
the lightest load: refusals. (Where requests queue, a success that waited as long as the errors did takes its
own work on top.) A slow path that ends well is no
time-out: only errors count. That errors take just so long by themselves is ruled out where nine of ten lie
within 10 %. Errors that take as long as successes (within 10 %) and another time at another level: they come
at the end of whole requests.

**Thresholds.** 0.1 %: single faults are as likely below. Half within 10 %: queued requests spread by far
more. 2 %: what a request does besides waiting comes on top of the time that was set; with ten such times
chance hits one in twelve times at most, and has to pile up there as well. The time that was set is claimed
from the errors' time down to a request's time at the lightest load below it: so much a request does besides.

**Do.** Read quantiles above the share of these errors as lower bounds; set deadlines of inner calls below
the patience of callers, and refuse early instead of late.

**Confirm.** Twice the time-out: the errors come after twice the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.model.facts import Curve, Facts, FailureMode, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade, Setting
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
GATEWAY_TIMEOUT = 504
GIVEN_UP = ("timeout", "connect_timeout", "tls_timeout")  # by the client


@dataclass(frozen=True, slots=True)
class CutRequests:
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
        """True if the client gave up."""
        return self.mode.outcome in GIVEN_UP

    @property
    def end(self) -> str:
        """Their end, in words."""
        return "are given up by the client" if self.by_client else f"end with {self.mode.status}"


def observe(facts: Facts) -> Sequence[CutRequests] | Lacking | Nothing:
    """Return every kind of failure on every level, the most frequent first."""
    steps = [(curve, step) for curve in facts.curves for step in curve.steps]
    if not steps:
        return Lacking("no valid trial")
    if all(step.issued is None for _, step in steps):
        return Lacking("needs what became of each request: what made the load does not say")
    cuts = [
        CutRequests(curve, step, mode, mode.count / step.issued)
        for curve, step in steps
        for mode in step.failures
        if step.issued and (mode.outcome in GIVEN_UP or mode.status >= ERROR)
    ]
    cuts.sort(key=lambda cut: cut.share, reverse=True)
    if cuts:
        return cuts
    issued = sum(step.issued or 0 for _, step in steps)
    means = [
        step.response.mean.point
        for _, step in steps
        if step.issued is not None and isinstance(step.response.mean, Estimate)
    ]
    longest = f"; on no level longer than {numbers.with_unit(max(means), 's')} on average" if means else ""
    return Nothing(f"none of {issued:,} requests was given up or ended in an error{longest}")


def claim(facts: Facts, cut: CutRequests) -> Claim:
    """Hold the failures against the time at which they pile up, and against refusals and plain errors."""
    signals = _signals(cut)
    rivals = [_fast_rival(cut), _alike_rival(cut), _chance_rival(cut), grading.generator_rival(cut.step)]

    def words(_: Grade) -> Words:
        usual, median_s = cut.mode.success_median_s, cut.mode.median_s
        served = (
            "" if usual is None else f" Half of the successes take {numbers.with_unit(usual, 's')} or less."
        )
        quantile = f"p{100 * (1 - cut.share):.4g}"
        after, than = "", ""
        confirm = "twice the time-out: these requests end later by as much"
        if median_s is not None:
            took = numbers.with_unit(median_s, "s")
            after, than = f" after {took}", f" than {took}"
            twice = numbers.with_unit(2 * median_s, "s")
            confirm = f"twice the time-out: these requests end after {twice}, or well before"
        return Words(
            statement=f"{numbers.percent(cut.share)} of the requests {cut.end}{after} at {cut.at}: "
            "a time-out",
            explanation=f"Quantiles above {quantile} are lower bounds.{served}",
            advice=f"Read quantiles above {quantile} as lower bounds; let inner calls end earlier{than}, and "
            "refuse early what cannot be served in time.",
            confirm=confirm,
            impact=cut.share,
            unknown=("how long these requests would have taken",),
            scope=f"{cut.mode.label} · {cut.curve.label}",
            setting=_setting(cut),
        )

    return on_curve(cut.curve, signals, rivals, words)


def _setting(cut: CutRequests) -> Setting | None:
    """The time-out of the service: the errors' time, or up to a request's time at the lightest load less."""
    took, alone = cut.mode.median_s, _lightest(cut)
    if cut.by_client or took is None:
        return None
    return Setting.timeout(max(took / 2, took - (alone or 0.0)), took)


def _signals(cut: CutRequests) -> list[grading.Signal]:
    mode = cut.mode
    share = grading.stated(
        "errors.share",
        cut.share >= LEAST_SHARE and mode.count >= FEWEST,
        text=f"{mode.count:,} of {cut.step.issued:,} requests ({numbers.percent(cut.share)}) {cut.end} "
        f"at {cut.at} (limit {numbers.percent(LEAST_SHARE)} and {FEWEST})",
        chip=f"{numbers.percent(cut.share)} {'given up' if cut.by_client else 'end late'}",
    )
    if mode.median_s is None or mode.pile is None:
        lack = "the times of these requests were not kept"
        # That the client gave up is a time-out by itself, whenever it was.
        missing = True if cut.by_client else None
        return [share, grading.stated("errors.time", missing, text=lack)]
    return [share, _time(cut, mode.median_s), _pile(cut, mode.pile)]


def _time(cut: CutRequests, median_s: float) -> grading.Signal:
    usual = usual_near(median_s)
    took = numbers.with_unit(median_s, "s")
    if cut.by_client:
        passed, text = True, f"half of them after {took} or more"
    elif usual is None and _is_called_so(cut):
        passed, text = True, f"half of them after {took}, and the service calls it a time-out"
    elif usual is None:
        passed, text = False, f"half of them after {took}: no time that people set is within {NEAR:.0%}"
    else:
        passed, text = True, f"half of them after {took}, and {usual:g} s is a time that people set"
    signal = grading.stated("errors.time", passed, text=text, chip=f"after {took}")
    alone = _lightest(cut)
    low = None if alone is None else max(0.0, median_s - alone)
    return grading.Signal(replace(signal.evidence, value=median_s, low=low, high=median_s), signal.is_clear)


def _is_called_so(cut: CutRequests) -> bool:
    sign = cut.step.sign("timeout")
    return cut.mode.status == GATEWAY_TIMEOUT or (sign is not None and sign.count >= cut.mode.count)


def _lightest(cut: CutRequests) -> float | None:
    """Mean time of a request at a lighter load, the lightest there was: what one does besides waiting."""
    first = cut.curve.steps[0]
    mean = first.response.mean
    return mean.point if isinstance(mean, Estimate) and first.load < cut.step.load else None


def _pile(cut: CutRequests, pile: float) -> grading.Signal:
    text = f"{numbers.percent(pile)} of them lie within 10 % of that (limit {numbers.percent(PILED)})"
    passed = pile >= PILED or cut.by_client
    return grading.stated("errors.pile", passed, text=text, chip=f"{numbers.percent(pile)} at one time")


def usual_near(seconds: float) -> float | None:
    """Return the time that people set which this one is hardly above or below."""
    return next((usual for usual in USUAL_S if abs(seconds - usual) <= NEAR * usual), None)


def _fast_rival(cut: CutRequests) -> Counter:
    name, took, usual = "refusals", cut.mode.median_s, cut.mode.success_median_s
    if cut.by_client:
        return grading.rival(name, "the client gave up, the service did not refuse", True)
    if took is None or usual is None:
        return grading.rival(name, "how long successes take is not known", None)
    text = f"half of the successes within {numbers.with_unit(usual, 's')}"
    # Who waited just short of the time-out is served then, and takes the time of its work on top.
    return grading.rival(name, text, took > (1 - ALIKE) * usual - (_lightest(cut) or 0.0))


def _alike_rival(cut: CutRequests) -> Counter:
    """Errors at the end of whole requests: they take as long as successes, whatever that is at a level."""
    name, took, usual = "errors at the end of whole requests", cut.mode.median_s, cut.mode.success_median_s
    if cut.by_client:
        return grading.rival(name, "the client gave up, nothing ended", True)
    if took is None or not usual:
        return grading.rival(name, "how long successes take is not known", None)
    text = f"they take {took / usual:.2f} times as long as successes"
    if abs(took / usual - 1) > ALIKE:
        return grading.rival(name, text, True)
    others = [
        mode.median_s
        for step in cut.curve.steps
        for mode in step.failures
        if step is not cut.step
        and (mode.label, mode.outcome, mode.status) == (cut.mode.label, cut.mode.outcome, cut.mode.status)
        and mode.median_s is not None
        and mode.count >= FEWEST
    ]
    if not others:
        return grading.rival(name, f"{text}, and come at no other level", None)
    off, farthest = max((abs(other / took - 1), other) for other in others)
    text = f"{text}, and {numbers.with_unit(farthest, 's')} at another level"
    return grading.rival(name, text, off <= ALIKE)


def _chance_rival(cut: CutRequests) -> Counter:
    name, pile = "errors that take so long by themselves", cut.mode.pile
    if cut.by_client:
        return grading.rival(name, "the client's own time-out ended them", True)
    if pile is None:
        return grading.rival(name, "their times were not kept", None)
    text = f"{numbers.percent(pile)} lie within 10 % (limit {numbers.percent(SURELY_PILED)})"
    return grading.rival(name, text, True if pile >= SURELY_PILED else None)


def _most_frequent(pairs: Sequence[tuple[CutRequests, Finding]]) -> Finding:
    """The finding of the highest grade, and of those the most frequent failure, for the curves of all."""
    best = max(pairs, key=lambda pair: (pair[1].grade, pair[0].share))[1]
    return replace(best, curves=tuple(dict.fromkeys(cut.curve.label for cut, _ in pairs)))


def _silence(facts: Facts, cuts: Sequence[CutRequests]) -> str:
    cut = cuts[0]
    fast = _fast_rival(cut)
    against = grading.against((fast, _alike_rival(cut))) or fast
    return f"{numbers.percent(cut.share)} {cut.end}; {grading.unclear(_signals(cut)) or against.text}"


assess = assessing(ID, TITLE, observe, claim, choose=_most_frequent, silence=_silence)
