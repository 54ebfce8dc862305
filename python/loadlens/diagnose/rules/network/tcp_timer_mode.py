"""Requests wait for a timer of TCP, not for the application.

**Means.** A part of the requests takes 40 ms, 200 ms, 1, 3 or 7 s longer, which no code of the service
causes. 40 ms is a delayed acknowledgement, for which a second small write has to wait (Nagle); 200 ms is a
segment that was lost and sent again; 1, 3 and 7 s are unanswered requests for a connection.

**Needs.** At least 0.02 % of the requests of a class pile up at the timer, three times as dense as next to
it, and not by chance (0.1 %). Besides, one sign of TCP. For 40 ms: the wait lies between the first and the
last byte of the same answer, on a connection that had been used before. For the longer ones: the kernel sent
segments again, at least one per two of these requests, level by level of the load (for connections: requests
for one, or drops at the listener, whichever are more, since a dropped request is sent again). Without half
as many at 1 s, a pile at 3 s is only suspected, and without those at 3 s one at 7 s: what is lost twice was
lost once.

**Ruled out by.** Far fewer segments sent again than requests in the pile: then the application has a timer of
the same length. Requests that wait as long before the first byte: they waited in the service. Answers that
take 20 ms and more on average from first to last byte at the heaviest load, and twice as long as at the
lightest: they share a link, whereas a timer is as long at every load. Waits of 40 ms at no more than half of
the levels where five would be expected from their share of all: many answers that are ready at once wait for
each other there, whereas an acknowledgement is delayed at every load. An answer that is written in pieces on
purpose, every 40 ms, looks the same as a delayed acknowledgement: this is never excluded, so the finding is
at most probable there.

**Thresholds.** 0.02 %: one lost segment in five thousand shows in p99.99. A pile is 5 % wide around its
timer; for 40 ms up to one tick of a kernel's slow clock (46.5 ms). One segment per two requests: several may
wait for the same one.

**Do.** For 40 ms: write head and body at once, or set TCP_NODELAY. For 200 ms: find what drops segments. From
a second on: accept faster, or give the listener a longer queue.

**Confirm.** With TCP_NODELAY, or a queue four times as long, the extra peak is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.estimate import mixtures
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.model.shapes import TimerPile
from loadlens.present import numbers

ID = "tcp.timer-mode"
TITLE = "requests wait for a timer of TCP"
EXPLAINS: tuple[str, ...] = ()

FOR_EACH = 0.5  # segments sent again, and requests at the timer before
EARLIER = {3.0: 1.0, 7.0: 3.0}  # seconds
COMING = 0.5  # of the timer: for as long answers come on average where they share a way
GROWN = 2.0  # times the time for which they come at the lightest load
EXPECTED = 5.0  # such answers at a level, if their share were the same at each


# Where requests wait, and what to do about it.
PLACES = {
    "answer": (
        "They wait between the first and the last byte of their answer",
        "Write head and body at once, or set TCP_NODELAY: these requests lose",
    ),
    "opening": (
        "They wait for their connection",
        "Accept faster and give the listener a longer queue: these connections lose",
    ),
    "whole": (
        "They wait somewhere on the way",
        "Find what drops segments on the way (queues, limits): these requests lose",
    ),
}


@dataclass(frozen=True, slots=True)
class Pile:
    """Requests of one curve that wait for the same timer."""

    curve: Curve
    timer: TimerPile

    @property
    def is_in_answer(self) -> bool:
        """True where the wait lies between the first and the last byte of an answer."""
        return self.timer.place == "answer"

    @property
    def length(self) -> str:
        """Return the length of the timer in words."""
        return numbers.with_unit(self.timer.timer_s, "s")


def observe(facts: Facts) -> Sequence[Pile] | Lacking | Nothing:
    """Return the piles of all curves, the one with the most requests first."""
    paths = [path for curve in facts.curves for path in curve.slow_paths]
    if not paths:
        return Lacking("needs every request of a trial in its log: none was kept whole")
    looked = sum(path.requests for path in paths)
    if looked < mixtures.FEWEST:
        return Lacking(f"{looked} requests, needs {mixtures.FEWEST}")
    piles = [Pile(curve, timer) for curve in facts.curves for timer in curve.timer_piles]
    among = f"among {looked:,} requests; less than 0.02 % was not assessed"
    return sorted(piles, key=lambda pile: -pile.timer.count) or Nothing(
        f"no pile at 40 ms, 200 ms, 1, 3 or 7 s {among}"
    )


def claim(facts: Facts, pile: Pile) -> Claim | Nothing:
    """Compare a pile with what the kernel saw, and with other causes of the same wait."""
    curve, timer, length, weight = pile.curve, pile.timer, pile.length, pile.timer.weight
    if not isinstance(weight, Estimate):
        return Nothing("the share of these requests is not known")
    signals = [
        grading.at_least(
            "component.weight",
            weight,
            mixtures.LEAST_TIMER_WEIGHT,
            text=f"{timer.count} of {timer.requests:,} requests, {numbers.shown(weight)}, lie at {length} "
            f"(limit {numbers.percent(mixtures.LEAST_TIMER_WEIGHT)})",
            chip=f"{numbers.short(weight)} at {length}",
        ),
        grading.at_least(
            "component.shift",
            timer.shift,
            0.0,
            text=f"they wait {numbers.shown(timer.shift)}",
            chip=f"{numbers.short(timer.shift)} longer",
        ),
        _sign(pile),
        *_earlier(pile),
    ]

    def words(grade: Grade) -> Words:
        (where, advice), name = PLACES[timer.place], mixtures.TCP_TIMERS[timer.timer_s]
        who = "an acknowledgement is delayed" if pile.is_in_answer else name
        mean = figures.point(curve.steps[0].response.mean) if curve.steps else 0.0
        # Of the mean response time at the lowest load.
        impact = weight.point * timer.timer_s / mean if mean > 0 else weight.point
        confirm = "a queue of the listener four times as long, or no loss: the pile is gone"
        if pile.is_in_answer:
            confirm = "TCP_NODELAY, or one write for each answer: the pile is gone"
        return Words(
            statement=f"{numbers.percent(weight.point)} of {timer.request} wait {length}: {who}",
            explanation=f"{where}, for one of TCP's timers ({name}); no work of the service takes it.",
            advice=f"{advice} {length}.",
            confirm=confirm,
            impact=impact,
            scope=f"{timer.label} · {curve.label}",
        )

    cap = Grade.PROBABLE if pile.is_in_answer else Grade.STRONG
    return on_curve(curve, signals, _rivals(pile), words, cap=cap)


def _sign(pile: Pile) -> grading.Signal:
    """Return the sign of TCP: a wait within the answer, or segments that the kernel sent again.

    For connections, segments that ask for one count, or drops, of which each is sent again. Of a level no
    more segments count than it has requests of the pile: more are of other requests.
    """
    if pile.is_in_answer:
        return grading.stated(
            "tcp.within-answer",
            True,
            text="the wait lies between first and last byte, on connections that had been used",
            chip="waits within the answer",
        )
    timer, sent_again = pile.timer, dict[float, float]()
    for step in pile.curve.steps:
        if (kernel := step.kernel) is None:
            continue
        is_opening = timer.place == "opening"
        counts = (kernel.retransmitted_syn, kernel.listen_drops) if is_opening else (kernel.retransmitted,)
        if read := [count for count in counts if count is not None]:
            sent_again[step.load] = max(read)
    levels = [level for level in timer.levels or () if level.load in sent_again]
    if not sent_again or (timer.levels is not None and not levels):
        return grading.stated("tcp.retransmitted", None, text="segments sent again were not read")
    requests, segments = timer.count, sum(sent_again.values())
    if timer.levels is not None:
        requests = sum(level.count for level in levels)
        segments = sum(min(sent_again[level.load], level.count) for level in levels)
    return grading.stated(
        "tcp.retransmitted",
        segments >= FOR_EACH * requests,
        text=f"{segments:.0f} segments were sent again or dropped for {requests} such requests "
        f"at their levels of load (limit {FOR_EACH:g} for each)",
        chip=f"{segments:.0f} segments sent again",
    )


def _earlier(pile: Pile) -> list[grading.Signal]:
    """Require as many that waited for the retransmission before: what is lost twice was lost once."""
    earlier_s = EARLIER.get(pile.timer.timer_s)
    if earlier_s is None:
        return []
    others = [
        timer.count
        for timer in pile.curve.timer_piles
        if timer.label == pile.timer.label and timer.timer_s == earlier_s
    ]
    count, length = sum(others), numbers.with_unit(earlier_s, "s")
    text = f"{count} requests lie at {length}, where the retransmission before comes"
    passed = True if count >= FOR_EACH * pile.timer.count else None
    return [grading.stated("tcp.earlier", passed, text=text, chip=f"{count} at {length}")]


def _rivals(pile: Pile) -> list[Counter]:
    timer = pile.timer
    if not pile.is_in_answer:
        dense = f"{timer.contrast:.0f} times as dense as next to it (limit {mixtures.PILE_CONTRAST:g})"
        return [
            grading.rival("a timer of the application", "the kernel sent segments again as often", True),
            grading.rival("a broad tail", dense, timer.contrast >= mixtures.PILE_CONTRAST),
        ]
    # Answers that share a way come for longer the more users there are; a timer is as long for all.
    received = [step.received.coming for step in pile.curve.steps if step.received is not None]
    coming = [figure.point for figure in received if isinstance(figure, Estimate)]
    bandwidth = grading.rival("bandwidth", "for how long answers come is not known at two levels", None)
    if len(coming) > 1:
        first, last = coming[0], coming[-1]
        text = (
            f"answers come for {numbers.with_unit(last, 's')} on average at the heaviest load, "
            f"{numbers.with_unit(first, 's')} at the lightest"
        )
        bandwidth = grading.rival("bandwidth", text, last < COMING * timer.timer_s or last < GROWN * first)
    return [
        grading.rival("work of the service", "the head of the answer had been sent before", True),
        bandwidth,
        _burst(pile.timer),
        grading.rival("an answer in pieces", f"one that is written every {pile.length} looks the same", None),
    ]


def _burst(timer: TimerPile) -> Counter:
    """Return whether they wait at some loads only, where many answers are ready at once."""
    share = timer.count / timer.requests
    counts = [
        level.count
        for level in timer.levels or ()
        if level.requests is not None and share * level.requests >= EXPECTED
    ]
    seen = sum(count > 0 for count in counts)
    text = f"seen at {seen} of {len(counts)} levels of load where {EXPECTED:g} would be expected"
    return grading.rival(
        "answers that are ready at once", text, 2 * seen > len(counts) if counts[1:] else None
    )


def _silence(facts: Facts, piles: Sequence[Pile]) -> str:
    largest = piles[0]
    rival = grading.against(_rivals(largest))
    reason = _sign(largest).evidence.text if rival is None else rival.text
    return f"{largest.timer.count} requests at {largest.length}, and {reason}"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
