"""Times that begin when a request is sent leave out what it waited before.

**Means.** The load follows a schedule, and requests left later than they were due: the generator was late, or
no connection was free. A user waits from when the request was due; the time from sending hides that part.

**Needs.** A load with a schedule. p99 from when requests were due is at least 1.2 times p99 from when they
were sent.

**Ruled out by.** A closed load: its users are due when they are free, and nothing is left out.

**Thresholds.** 1.2: less is within the interval of most p99. Later than 1 ms and a twentieth of the median
service time counts as late; more than 1 % of those, and it was the generator, else a connection was missing.

**Do.** Quote the response time. Raise what may be in flight, or the generator's threads.

**Confirm.** Four times the connections: p99 of the service time moves towards that of the response time.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.estimate.omission import HIDDEN, MOST_LATE
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, NotAssessed
from loadlens.model.quality import Omission
from loadlens.present import numbers

ID = "co.omission"
TITLE = "times from sending leave waiting out"
EXPLAINS: tuple[str, ...] = ()

MOST_IMPACT = 0.04  # our own figures begin when a request is due


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every level of a load with a schedule."""
    scheduled = [(curve, step) for curve in facts.curves if not curve.is_closed for step in curve.steps]
    if facts.curves and not scheduled:
        return Absent(ID, TITLE, "the load is closed: a user is due when free, and every wait is in the time")
    known = [(c, s, told) for c, s in scheduled if (told := s.quality.omission) is not None]
    if not known:
        return NotAssessed(ID, TITLE, "how late requests were sent was not recorded")
    found = [f for curve, step, told in known if (f := _finding(curve, step, told)) is not None]
    if found:
        return grading.strongest(found)
    most = max(told.tail_ratio or told.mean_ratio or 1.0 for _, _, told in known)
    return Absent(
        ID, TITLE, f"times from due are at most {most:.2f} times those from sending (limit {HIDDEN:g})"
    )


def _finding(curve: Curve, step: Step, told: Omission) -> Finding | None:
    ratio, late = told.tail_ratio, told.late
    share = late.point if isinstance(late, Estimate) else None
    is_late = share is not None and share > MOST_LATE
    who = "the generator was late" if is_late else "no connection was free"
    signals = [
        grading.stated(
            "omission.ratio",
            None if ratio is None else ratio >= HIDDEN,
            text="p99 is not known of both"
            if ratio is None
            else f"p99 from due is {ratio:.2f} times p99 from sending (limit {HIDDEN:g})",
            chip="" if ratio is None else f"p99 {ratio:.2f} times longer",
        ),
        grading.stated(
            "omission.late",
            None if share is None else True,
            text="how many left late is not known"
            if share is None
            else f"{numbers.percent(share)} of the requests left late: {who}",
            chip="" if share is None else f"{numbers.percent(share)} left late",
        ),
    ]
    if ratio is None and (told.mean_ratio or 1.0) < HIDDEN:
        return None
    grade = grading.grade_of(signals, (), cap=grading.cap_of(curve))
    if grade is None:
        return None
    what, factor = ("p99", ratio) if ratio is not None else ("the mean", told.mean_ratio or 1.0)
    quoted = ""
    if told.response_p99_s is not None and told.service_p99_s is not None:
        quoted = (
            f"p99 is {numbers.with_unit(told.response_p99_s, 's')} from due, "
            f"{numbers.with_unit(told.service_p99_s, 's')} from sending"
        )
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(MOST_IMPACT, 1 - 1 / factor),
        scope=f"{curve.label} · {step.label}",
        statement=grading.statement(
            f"Times from sending hide waiting: {what} is {factor:.2f} times as long from when it was due"
        ),
        explanation=f"{quoted or 'The mean is longer from due'}; {who}.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=(),
        advice="Quote the response time, not the service time; "
        + ("give the generator more threads." if is_late else "raise what may be in flight."),
        confirm=f"four times the connections: {what} from sending moves towards {what} from due",
        curves=(curve.label,),
    )
