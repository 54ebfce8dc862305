"""Requests wait for a timer of TCP, not for the application.

**Means.** A part of the requests takes 40 ms, 200 ms, 1, 3 or 7 s longer, which no code of the service asks
for: 40 ms is an acknowledgement that was delayed, so that a second small write had to wait (Nagle), 200 ms a
segment that was lost and sent again, 1, 3 and 7 s a request for a connection that nobody answered.

**Needs.** At least 0.02 % of the requests of a class pile up at the timer, three times as dense as beside it
and not by chance (0.1 %). Then a sign of TCP: for 40 ms that the wait lies between the first and the last
byte of the same answer, on a connection that had been used before; for the longer ones that the kernel sent
segments again, one for every two of these requests at least, level by level of the load (for a connection:
requests for one, or drops at the listener, whichever are more: a request for one that is dropped is sent
again).

**Ruled out by.** Segments sent again that are far fewer than the requests of the pile: then the application
has a timer of the same length. Requests that are as long before the first byte: they waited in the service.
Answers that come for 20 ms and more on average at the heaviest load, twice as long as at the lightest: they
share a way, and a timer is as long at every load.
An answer that is written in pieces on purpose, every 40 ms, looks the same as a delayed acknowledgement:
this is never excluded, so the finding is probable at best there.

**Thresholds.** 0.02 %: one lost segment in five thousand shows in p99.99. 5 % around a timer, for 40 ms up
to one tick of a kernel's slow clock (46.5 ms). One segment for two requests: several may wait for the same
one.

**Do.** For 40 ms: one write for head and body, or TCP_NODELAY. For 200 ms: find what drops segments. From a
second on: accept faster, a longer queue of the listener.

**Confirm.** TCP_NODELAY, or a queue four times as long: the pile is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.estimate import mixtures
from loadlens.model.facts import Curve, Facts, KernelWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import TimerPile
from loadlens.present import numbers

ID = "tcp.timer-mode"
TITLE = "requests wait for a timer of TCP"
EXPLAINS: tuple[str, ...] = ()

FOR_EACH = 0.5  # segments sent again
COMING = 0.5  # of the timer: for as long answers come on average where they share a way
GROWN = 2.0  # times the time for which they come at the lightest load
ANSWER, OPENING = "answer", "opening"


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every pile of every curve."""
    paths = [path for curve in facts.curves for path in curve.slow_paths]
    if not paths:
        return NotAssessed(ID, TITLE, "needs every request of a trial in its log: none was kept whole")
    looked = sum(path.requests for path in paths)
    if looked < mixtures.FEWEST:
        return NotAssessed(ID, TITLE, f"{looked} requests, needs {mixtures.FEWEST}")
    piles = [(curve, pile) for curve in facts.curves for pile in curve.timer_piles]
    found = [one for curve, pile in piles if (one := _finding(curve, pile)) is not None]
    if found:
        return grading.strongest(found)
    return Absent(ID, TITLE, _silence(piles, looked))


def _finding(curve: Curve, pile: TimerPile) -> Finding | None:
    signals, rivals = _signals(curve, pile), _rivals(curve, pile)
    cap = Grade.PROBABLE if pile.place == ANSWER else grading.cap_of(curve)
    grade = grading.grade_of(signals, rivals, cap=cap)
    if grade is None or not isinstance(pile.weight, Estimate):
        return None
    name = mixtures.TCP_TIMERS[pile.timer_s]
    timer = numbers.with_unit(pile.timer_s, "s")
    return Finding(
        rule=ID,
        grade=grade,
        impact=_impact(curve, pile, pile.weight.point),
        scope=f"{pile.label} · {curve.label}",
        statement=grading.statement(
            f"{numbers.percent(pile.weight.point)} of {pile.request} wait {timer}: {_who(pile, name)}"
        ),
        explanation=f"{_where(pile)}, for one of TCP's timers ({name}); no work of the service takes it.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(pile),
        confirm="TCP_NODELAY, or one write for each answer: the pile is gone"
        if pile.place == ANSWER
        else "a queue of the listener four times as long, or no loss: the pile is gone",
        curves=(curve.label,),
    )


def _who(pile: TimerPile, name: str) -> str:
    return "an acknowledgement is delayed" if pile.place == ANSWER else name


def _where(pile: TimerPile) -> str:
    if pile.place == ANSWER:
        return "They wait between the first and the last byte of their answer"
    return "They wait for their connection" if pile.place == OPENING else "They wait somewhere on the way"


def _advice(pile: TimerPile) -> str:
    saved = numbers.with_unit(pile.timer_s, "s")
    if pile.place == ANSWER:
        return f"Write head and body at once, or set TCP_NODELAY: these requests lose {saved}."
    if pile.place == OPENING:
        return f"Accept faster and give the listener a longer queue: these connections lose {saved}."
    return f"Find what drops segments on the way (queues, limits): these requests lose {saved}."


def _impact(curve: Curve, pile: TimerPile, share: float) -> float:
    """Share of the mean response time at the lowest load that is this wait."""
    mean = curve.steps[0].response.mean if curve.steps else None
    if not isinstance(mean, Estimate) or mean.point <= 0:
        return min(1.0, share)
    return min(1.0, share * pile.timer_s / mean.point)


def _signals(curve: Curve, pile: TimerPile) -> list[grading.Signal]:
    timer = numbers.with_unit(pile.timer_s, "s")
    return [
        grading.at_least(
            "component.weight",
            pile.weight,
            mixtures.LEAST_TIMER_WEIGHT,
            text=f"{pile.count} of {pile.requests:,} requests, {numbers.shown(pile.weight)}, lie at {timer} "
            f"(limit {numbers.percent(mixtures.LEAST_TIMER_WEIGHT)})",
            chip=f"{numbers.short(pile.weight)} at {timer}",
        ),
        grading.at_least(
            "component.shift",
            pile.shift,
            0.0,
            text=f"they wait {numbers.shown(pile.shift)}",
            chip=f"{numbers.short(pile.shift)} longer",
        ),
        _sign(curve.steps, pile),
    ]


def _sign(steps: Sequence[Step], pile: TimerPile) -> grading.Signal:
    if pile.place == ANSWER:
        return grading.stated(
            "tcp.within-answer",
            True,
            text="the wait lies between first and last byte, on connections that had been used",
            chip="waits within the answer",
        )
    matched = _matched(steps, pile)
    if matched is None:
        return grading.stated("tcp.retransmitted", None, text="segments sent again were not read")
    return grading.stated(
        "tcp.retransmitted",
        matched.again >= FOR_EACH * matched.requests,
        text=f"{matched.again:.0f} segments were sent again or dropped for {matched.requests} such requests "
        f"at their levels of load (limit {FOR_EACH:g} for each)",
        chip=f"{matched.again:.0f} segments sent again",
    )


@dataclass(frozen=True, slots=True)
class Matched:
    """Segments sent again at the levels at which the requests of a pile are."""

    requests: int
    again: float  # at most one for each of the requests of its level: more are of other requests


def _matched(steps: Sequence[Step], pile: TimerPile) -> Matched | None:
    """What the kernel saw beside the pile; none where it was not read there."""
    is_opening = pile.place == OPENING
    known = {s.load: again for s in steps if (again := _again(s.kernel, is_opening=is_opening)) is not None}
    if not known:
        return None
    if pile.levels is None:
        return Matched(pile.count, sum(known.values()))
    parts = [level for level in pile.levels if level.load in known]
    if not parts:
        return None
    return Matched(sum(part.count for part in parts), sum(min(known[p.load], p.count) for p in parts))


def _again(watch: KernelWatch | None, *, is_opening: bool) -> float | None:
    """Segments sent again; for connections those that ask for one, or drops, of which each is sent again."""
    if watch is None:
        return None
    parts = (watch.retransmitted_syn, watch.listen_drops) if is_opening else (watch.retransmitted,)
    return max((part for part in parts if part is not None), default=None)


def _rivals(curve: Curve, pile: TimerPile) -> list[Counter]:
    timer = numbers.with_unit(pile.timer_s, "s")
    if pile.place == ANSWER:
        return [
            grading.rival("work of the service", "the head of the answer had been sent before", True),
            _bandwidth_rival(curve, pile),
            grading.rival("an answer in pieces", f"one that is written every {timer} looks the same", None),
        ]
    return [
        grading.rival("a timer of the application", "the kernel sent segments again as often", True),
        grading.rival(
            "a broad tail",
            f"{pile.contrast:.0f} times as dense as beside it (limit {mixtures.PILE_CONTRAST:g})",
            pile.contrast >= mixtures.PILE_CONTRAST,
        ),
    ]


def _bandwidth_rival(curve: Curve, pile: TimerPile) -> Counter:
    """Answers that share a way come for longer the more users there are; a timer is as long for all."""
    name = "bandwidth"
    coming = [
        step.received.coming.point
        for step in curve.steps
        if step.received is not None and isinstance(step.received.coming, Estimate)
    ]
    if len(coming) < 2:
        return grading.rival(name, "for how long answers come is not known at two levels", None)
    first, last = coming[0], coming[-1]
    text = (
        f"answers come for {numbers.with_unit(last, 's')} on average at the heaviest load, "
        f"{numbers.with_unit(first, 's')} at the lightest"
    )
    return grading.rival(name, text, last < COMING * pile.timer_s or last < GROWN * first)


def _silence(piles: Sequence[tuple[Curve, TimerPile]], looked: int) -> str:
    if not piles:
        among = f"among {looked:,} requests; less than 0.02 % was not assessed"
        return f"no pile at 40 ms, 200 ms, 1, 3 or 7 s {among}"
    curve, pile = max(piles, key=lambda one: one[1].count)
    against = grading.against(_rivals(curve, pile))
    sign = _sign(curve.steps, pile).evidence.text if against is None else against.text
    return f"{pile.count} requests at {numbers.with_unit(pile.timer_s, 's')}, and {sign}"
