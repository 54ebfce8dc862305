"""Times measured from when a request is sent leave out what it waited before.

**Means.** The load follows a schedule, and requests were sent later than they were due: the generator was
late, or no connection was free. A user waits from when the request was due; the time from sending hides that
part.

**Needs.** A load with a schedule. p99 from when requests were due is at least 1.2 times p99 from when they
were sent.

**Ruled out by.** A closed load: its users are due when they are free, and nothing is left out.

**Thresholds.** 1.2: less is within the interval of most p99. A request counts as late when it is sent more
than 1 ms and more than 5 % of the median service time after it was due. If more than 1 % are late, the
generator was the cause, otherwise a missing connection.

**Do.** Quote the response time. Raise the limit of requests in flight, or the number of engine threads.

**Confirm.** Use four times the connections: p99 of the service time moves towards that of the response time.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.estimate.omission import HIDDEN, MOST_LATE
from loadlens.model.facts import Facts
from loadlens.model.finding import Estimate, Grade
from loadlens.model.quality import Omission
from loadlens.present.numbers import percent, with_unit

ID = "co.omission"
TITLE = "times from sending leave waiting out"
EXPLAINS: tuple[str, ...] = ()

MOST_IMPACT = 0.04  # our own figures begin when a request is due


def observe(facts: Facts) -> Sequence[Level[Omission]] | Lacking | Nothing:
    """Return the levels of loads with a schedule."""
    if facts.curves and all(curve.is_closed or not curve.steps for curve in facts.curves):
        return Nothing("the load is closed: a user is due when free, and every wait is in the time")
    scheduled = [
        level for level in levels(facts, lambda step: step.quality.omission) if not level.curve.is_closed
    ]
    return scheduled or Lacking("how late requests were sent was not recorded")


def claim(_: Facts, level: Level[Omission]) -> Claim | Nothing:
    """Compare times from when requests were due with times from when they were sent."""
    omission = level.detail
    ratio, mean_ratio = omission.tail_ratio, omission.mean_ratio or 1.0
    if ratio is None and mean_ratio < HIDDEN:
        return Nothing("p99 is not known of both")
    share = omission.late.point if isinstance(omission.late, Estimate) else None
    is_late = share is not None and share > MOST_LATE
    cause = "the generator was late" if is_late else "no connection was free"
    longer = grading.stated("omission.ratio", None, text="p99 is not known of both")
    if ratio is not None:
        text = f"p99 from due is {ratio:.2f} times p99 from sending (limit {HIDDEN:g})"
        longer = grading.stated(
            "omission.ratio", ratio >= HIDDEN, text=text, chip=f"p99 {ratio:.2f} times longer"
        )
    late = grading.stated("omission.late", None, text="how many left late is not known")
    if share is not None:
        text = f"{percent(share)} of the requests left late: {cause}"
        late = grading.stated("omission.late", True, text=text, chip=f"{percent(share)} left late")

    def words(_: Grade) -> Words:
        quantity, factor = ("the mean", mean_ratio) if ratio is None else ("p99", ratio)
        quoted = "The mean is longer from due"
        response_s, service_s = omission.response_p99_s, omission.service_p99_s
        if response_s is not None and service_s is not None:
            quoted = f"p99 is {with_unit(response_s, 's')} from due, {with_unit(service_s, 's')} from sending"
        more = "give the generator more threads." if is_late else "raise what may be in flight."
        return Words(
            statement=f"Times from sending hide waiting: {quantity} is {factor:.2f} times as long from when "
            "it was due",
            explanation=f"{quoted}; {cause}.",
            advice=f"Quote the response time, not the service time; {more}",
            confirm=f"four times the connections: {quantity} from sending moves towards {quantity} from due",
            impact=min(MOST_IMPACT, 1 - 1 / factor),
        )

    return on_curve(level.curve, [longer, late], [], words, where=level.label)


def _silence(_: Facts, observed: Sequence[Level[Omission]]) -> str:
    most = max(level.detail.tail_ratio or level.detail.mean_ratio or 1.0 for level in observed)
    return f"times from due are at most {most:.2f} times those from sending (limit {HIDDEN:g})"


assess = assessing(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
