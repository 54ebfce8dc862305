"""A request takes something that is not given back: after so many answers, none succeeds any more.

**Means.** Each request takes something of which there is a fixed number: a connection of a pool, a permit of
a semaphore, a lock. On some path it is not given back: an error, an early return, a call that is cancelled.
Once all are lost, every request waits for one in vain, however few users there are.

**Needs.** From one trial on to the end of the run no request succeeds, 3 or more, although most requests of
as heavy a load were served before, by the same processes. They end with an answer of the service, most of
them within 10 % of the same time, which is at least five times as long as half of the successes took: they
wait, and a time-out ends it. The service itself names a pool, in its log or its answers; or it
called other programs before, and none of its requests is in such a call now; or all its threads at work wait
for a lock or a place at one line of its code since then. Else the finding is suspected.

**Ruled out by.** Failures that come as fast as answers: a service that turns requests away. Statuses of a
quota (429) and of something behind a proxy that does not answer (502, 504). Something that the service calls
and that stopped may keep its connections, too; a deadlock looks the same: more than probable it never is.

**Thresholds.** 3 requests and 10 %: as for other time-outs. Five times: a refusal is faster than a success.
Half a call at a time: a check of health goes on.

**Do.** Give back what a request takes on every path, errors and early returns included. A restart helps until
as many requests were answered again.

**Confirm.** Start the service again and send the same load: it stops after about as many answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe import waits
from loadlens.diagnose.observe.vain_waits import FEWEST_FOR_A_PILE, PILED, stays_signal
from loadlens.model.facts import Curve, Facts, LostWatch
from loadlens.model.finding import Grade
from loadlens.present import load_text, numbers

ID = "places.lost"
TITLE = "what requests take is not given back"
EXPLAINS: tuple[str, ...] = (
    "timeouts.cliff",
    "db.pool-timeouts",
    "db.lock-timeouts",
    "requests.stuck",
    "shed.overload",
)

OF_OTHERS = (429, 502, 504)  # RFC 6585, RFC 9110
WAITS = 5.0  # times as long as half of the successes took


@dataclass(frozen=True, slots=True)
class Lost:
    """A curve at whose end nothing succeeds."""

    curve: Curve
    watch: LostWatch


def observe(facts: Facts) -> Sequence[Lost] | Lacking | Nothing:
    """Return the curves at whose end nothing succeeds any more."""
    if not facts.curves:
        return Lacking("no load curve")
    lost = [Lost(curve, curve.lost) for curve in facts.curves if curve.lost is not None]
    return lost or Nothing("loads that were served once are served at the end, too")


def claim(_: Facts, lost: Lost) -> Claim | Nothing:
    """Require that requests wait in vain, and say what else might keep them waiting."""
    watch, mode = lost.watch, lost.watch.mode
    if not mode.status:
        return Nothing("the service does not answer any more")
    if mode.status in OF_OTHERS:
        return Nothing(f"{mode.status} says that a quota is used up, or that another service does not answer")
    if mode.median_s is None or mode.success_median_s is None:
        return Nothing("how long failures and successes take was not kept")
    took, usual = (numbers.with_unit(each, "s") for each in (mode.median_s, mode.success_median_s))
    pile = (mode.pile or 0.0) * watch.alike / watch.failed
    named = watch.sign("pool")
    at = load_text.load_of(lost.curve, watch)
    signals = [
        stays_signal(lost.curve, watch, mode.count >= FEWEST_FOR_A_PILE),
        grading.stated(
            "errors.pile",
            pile >= PILED and mode.median_s >= WAITS * mode.success_median_s,
            text=f"{numbers.percent(pile)} of them end within 10 % of {took} (limit "
            f"{numbers.percent(PILED)}), half of the successes within {usual} (limit {WAITS:g} times)",
            chip=f"fail after {took}",
            value=mode.median_s,
        ),
    ]
    within = _within(watch, at)
    if named is None and within is not None:
        signals.append(within)
    else:
        pool = "neither its log nor its answers name a pool" if named is None else named.text
        signals.append(grading.stated("server.log", True if named is not None else None, text=pool))

    def texts(grade: Grade) -> Words:
        verb = "may not be" if grade is Grade.SUSPECTED else "is not"
        what = "a connection" if named is not None else "what a request takes"
        return Words(
            statement=f"Nothing succeeds after {watch.served:,} answers: {what} {verb} given back",
            explanation=f"Requests wait {took} in vain at {at}, where {usual} were usual.",
            advice="Give back what a request takes (a connection, a permit, a lock) on every path, errors "
            "and early returns included. A restart helps until as many were answered again.",
            confirm="the same load after a restart: it stops after about as many answers",
            impact=1.0,
            unknown=() if named is not None else ("what it is that requests wait for",),
        )

    called = grading.rival(
        "something it calls that stopped",
        "what it calls was not looked at" if within is None else within.evidence.text,
        None if within is None else True,
    )
    return on_curve(lost.curve, signals, [called], texts, cap=Grade.PROBABLE)


def _within(watch: LostWatch, at: str) -> grading.Signal | None:
    """Return what shows that requests wait within the service; none: nothing does."""
    if watch.calls is not None and watch.calls < waits.HARDLY:
        text = f"{watch.calls:.2g} calls to other programs are under way meanwhile, at {at}"
        return grading.stated("calls.none", True, text=text, chip="no call is under way")
    crowd = watch.crowd
    if crowd is not None and crowd.is_for_place and waits.all_wait(crowd):
        text = f"all {crowd.at_work:.0f} {crowd.plural} at work wait for a place at {crowd.line} since then"
        return grading.stated("threads.wait", True, text=text, chip=f"all wait at {crowd.line}")
    return None


assess = assessing(ID, TITLE, observe, claim)
