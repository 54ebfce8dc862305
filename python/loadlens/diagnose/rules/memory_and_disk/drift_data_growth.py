"""Requests take longer the more of them were answered.

**Means.** The service does more for each request than for the one before: a table without an index that
every request makes longer, a list that is searched, a log that is read anew. Whatever it takes today, it
takes more tomorrow.

**Needs.** One level of load that was measured twice in one life of the service, with other levels or a pause
in between: the median is 10 % higher the second time, with its interval. Within trials times rise as well:
in more trials than they fall, in a quarter of those that have 150 requests at least (by more than chance at
1 % and by 3 %), and in none they fall. And the rises are in proportion to the requests of each trial, not to
its length. Standstills are left out; only closed loads count, since an open one above the capacity waits
longer and longer by itself.

**Ruled out by.** Trials in which times fall: a start that was cold. Rises in proportion to time alone. Other
programs that took the machine meanwhile. Memory that grows with the requests stands beside it and is said
apart.

**Thresholds.** 10 %: below, runs of the same differ. 3 % within a trial: the least that a few hundred
requests can show. A level of one trial makes it probable at best: the interval of the change holds what
varies within its two trials, not between runs. Four trials whose numbers of requests lie four times apart
tell requests from time.

**Do.** Look for what every request adds to and every request reads: an index, a bound, a retention.

**Confirm.** The data set of the beginning brings the first times back; a restart alone does not.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.model.shapes import Slowdown
from loadlens.present import numbers

ID = "drift.data-growth"
TITLE = "requests take longer the more were answered"
EXPLAINS: tuple[str, ...] = ()

LEAST_CHANGE = 1.10
RISING_SHARE = 0.25
RISING_ALONE = 0.5  # where no level was measured twice
FEWEST_RISING = 2


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every class of every closed curve."""
    looks = [(curve, slow) for curve in facts.curves for slow in curve.slowdowns]
    if not looks:
        return NotAssessed(ID, TITLE, "needs a closed load and every request of a trial in its log")
    known = [(c, s) for c, s in looks if s.trials or isinstance(s.change, Estimate)]
    if not known:
        return NotAssessed(ID, TITLE, "needs trials of 150 requests, or a level that is measured twice")
    found = [one for curve, slow in known if (one := _finding(facts, curve, slow)) is not None]
    if found:
        return grading.strongest(found)
    return Absent(ID, TITLE, _silence([slow for _, slow in known]))


def _finding(facts: Facts, curve: Curve, slow: Slowdown) -> Finding | None:
    signals, rivals = _signals(slow), _rivals(facts, curve, slow)
    cap = grading.cap_of(curve) if slow.rising > 2 else Grade.PROBABLE
    grade = grading.grade_of(signals, rivals, cap=cap)
    if grade is None or not (slow.rising or isinstance(slow.change, Estimate)):
        return None
    change = slow.change
    more = numbers.signed_percent(change.point - 1) if isinstance(change, Estimate) else ""
    text = f"{slow.request} takes {more} after {slow.requests:,} requests"
    if not more:
        text = f"{slow.request} takes longer the later it comes, in {slow.rising} of {slow.trials} trials"
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, 1 - 1 / change.point) if isinstance(change, Estimate) and change.point > 1 else 0.1,
        scope=f"{slow.label} · {curve.label}",
        statement=grading.statement(text),
        explanation="The same load took longer when it came again, in step with what was answered before."
        if more
        else "Times rise within trials at one level of load.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(slow),
        confirm="the data set of the beginning brings the first times back; a restart alone does not",
        curves=(curve.label,),
    )


def _advice(slow: Slowdown) -> str:
    soon = "" if slow.doubling is None else f" (twice the time after {slow.doubling:,.0f} requests)"
    return f"Look for what each request adds to and each one reads{soon}: index it, bound it, or expire it."


def _signals(slow: Slowdown) -> list[grading.Signal]:
    at = "" if slow.load is None else f" at {slow.load:g} users"
    later = f"{slow.requests:,} requests and {slow.seconds:.0f} s later"
    rises = f"times rise in {slow.rising} of {slow.trials} trials and fall in {slow.falling}"
    least = RISING_SHARE if isinstance(slow.change, Estimate) else RISING_ALONE
    is_rising = slow.falling == 0 and slow.rising >= max(FEWEST_RISING, least * slow.trials)
    if slow.trials == 0:
        rises = "no trial has 150 requests for a trend within it"
    return [
        grading.at_least(
            "drift.change",
            slow.change,
            LEAST_CHANGE,
            text=f"median{at} {numbers.shown(slow.change)} times the first, {later} (limit {LEAST_CHANGE:g})"
            if isinstance(slow.change, Estimate)
            else "no level measured twice",
            chip=f"{numbers.signed_percent(slow.change.point - 1)} at one level"
            if isinstance(slow.change, Estimate)
            else "",
        ),
        grading.stated(
            "drift.within",
            None if slow.trials == 0 else is_rising,
            text=rises,
            chip=f"rises in {slow.rising} of {slow.trials} trials",
        ),
        grading.stated(
            "drift.requests",
            None if slow.follows == "unknown" else slow.follows == "requests",
            text=_follows(slow),
            chip="in step with requests" if slow.follows == "requests" else "",
        ),
    ]


def _follows(slow: Slowdown) -> str:
    if slow.follows == "unknown":
        return "whether it follows the requests or the clock is not known: all trials have as many requests"
    return f"rises within trials are in proportion to the {slow.follows} of each"


def _rivals(facts: Facts, curve: Curve, slow: Slowdown) -> list[Counter]:
    here = next((step for step in curve.steps if step.load == slow.load), curve.steps[-1])
    return [
        grading.rival("cold start", f"times fall in {slow.falling} trials", slow.falling == 0),
        _more_load(facts, slow),
        grading.rival("standstills", "requests that met one were left out", True),
        grading.interference_rival(here, facts.cores),
    ]


def _more_load(facts: Facts, slow: Slowdown) -> Counter:
    """The look with dense probes counts as its level: then the second time had more beside it."""
    if any(look.load == slow.load for look in facts.dense):
        return grading.rival("more load", "as many users, perhaps more probes beside the later", None)
    return grading.rival("more load", "the same level is compared with itself", True)


def _silence(slows: list[Slowdown]) -> str:
    most = max(slows, key=lambda slow: figures.point(slow.change))
    parts = []
    if isinstance(most.change, Estimate):
        at = f"{most.load:g} users" if most.load is not None else "one level"
        parts.append(
            f"median at {at} {numbers.shown(most.change)} times the first, {most.requests:,} requests later"
        )
    parts.append(f"times rise in {most.rising} of {most.trials} trials and fall in {most.falling}")
    if most.follows == "clock":
        parts.append("in proportion to time, not to requests")
    return f"{'; '.join(parts)}; {_least()}"


def _least() -> str:
    return f"less than {numbers.with_unit(LEAST_CHANGE - 1, 'share')} was not assessed"
