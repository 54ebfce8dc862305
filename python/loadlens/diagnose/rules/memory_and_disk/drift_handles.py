"""The service's threads or open files grow with every request, and are not given back.

**Means.** Requests start threads that do not end, or open files and connections that are not closed. The
service gets slower with each of them and ends at a limit of the process or of the machine.

**Needs.** The threads or the open files of all processes of a service, read 30 times or more during measured
parts, over the trials of one life of the processes. Readings within measured parts are joined end to end, so
that start-up, new users and idle time between them do not count. The lower end of the slope's interval is at
least one for each 10 requests; 100 or more are left behind, and there are 4 times as many as users in the
end. In the last third of the requests there are at least half and at most twice as many for each as before.

**Ruled out by.** A fall of more than a tenth of the growth: some are given back. Growth that levels off: a
pool that has reached its size. That a pool is so large is never excluded, so the finding is at most probable.

**Thresholds.** 4 times the users: a request that is served takes a connection, one to what it calls and a
file or two, and gives them back. One for each 10 requests: pools and users who come brought up to one for
each 20, and a rarer leak takes longer to be sure of. 100: pools of threads and of connections grow by some
dozens on their own.

**Do.** Close what a request opens, also when it fails; start no thread for a request that outlives it, and
hand such work to a pool with a fixed number.

**Confirm.** A restart brings the first number back. Twice the requests: twice as many are left behind.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing
from loadlens.measure import figures
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Estimate, Figure, Grade
from loadlens.model.shapes import HandleGrowth
from loadlens.present import numbers

ID = "drift.handles"
TITLE = "threads or open files are not given back"
EXPLAINS: tuple[str, ...] = ("drift.leak",)

LEAST = 0.1  # for each request
FEWEST = 100
OF_USERS = 4.0
STILL_GROWING, FASTER = 0.5, 2.0  # in the last third, of before
GIVEN_BACK = 0.1  # of the growth


def observe(facts: Facts) -> Sequence[tuple[Curve, HandleGrowth]] | Lacking | Nothing:
    """Return the growth of all services, the largest first."""
    growths = [(curve, growth) for curve in facts.curves for growth in curve.handles]
    if not growths:
        return Lacking("needs the service's processes: their threads and open files were not read")
    large = [
        (curve, growth) for curve, growth in growths if growth.grown >= FEWEST and _is_steep(growth.slope)
    ]
    if not large:
        return Nothing(f"{_most(growths)} more of them in the end")
    return sorted(large, key=lambda each: -each[1].grown)


def _is_steep(slope: Figure) -> bool:
    return isinstance(slope, Estimate) and slope.low is not None and slope.low >= LEAST


def _most(growths: Sequence[tuple[Curve, HandleGrowth]]) -> str:
    most = max((growth for _, growth in growths), key=lambda growth: growth.grown)
    return f"{most.what} of {most.label}: {max(0.0, most.grown):.0f}"


def claim(_: Facts, seen: tuple[Curve, HandleGrowth]) -> Claim:
    """Check that they grow with the requests to the last, and beyond what users need."""
    curve, growth = seen
    each, users = figures.point(growth.slope), _users(curve)
    per = "one" if round(each, 1) == 1 else f"{each:.2g}"
    signals = [
        grading.at_least(
            "handles.per-request",
            growth.slope,
            LEAST,
            text=f"{each:.2g} more with each of {growth.requests:,} requests (limit {LEAST:g})",
            chip=f"{each:.2g} per request",
        ),
        grading.stated(
            "handles.many",
            growth.end >= OF_USERS * users,
            text=f"{growth.end:,.0f} in the end, with at most {users:.0f} requests at a time",
            chip=f"{growth.end:,.0f} {growth.what}",
            value=growth.end,
        ),
        _late(growth.late),
    ]
    rivals = [
        grading.rival(
            "some are given back",
            f"their number fell by {growth.fallen:.0f} at most",
            growth.fallen <= GIVEN_BACK * growth.grown,
        ),
        grading.rival("a pool that still fills", f"none was full in {growth.seconds:.0f} s", None),
    ]

    def text(grade: Grade) -> Words:
        verb = "may grow" if grade is Grade.SUSPECTED else "grow"
        what = "Threads" if growth.what == "threads" else "Open files"
        advice = "Close what each request opens, also when it fails."
        if growth.what == "threads":
            advice = "Start no thread that outlives its request; a pool with a fixed number can do such work."
        return Words(
            statement=f"{what} {verb} by {per} per request: {growth.grown:,.0f} over "
            f"{growth.requests:,} requests",
            explanation=f"It had {growth.begin:,.0f} at first and {growth.end:,.0f} in the end; "
            f"{_limit(curve, growth)}",
            advice=advice,
            confirm="a restart brings the first number back; twice the requests leave twice as many behind",
            impact=growth.grown / (growth.begin + growth.grown),
            scope=f"{growth.label} · {curve.label}",
        )

    return Claim(curve.label, signals, rivals, text, (curve.label,), Grade.PROBABLE)


def _users(curve: Curve) -> float:
    """Return the most requests that were there at a time."""
    if curve.is_closed:
        return max(step.load for step in curve.steps)
    return max(figures.point(step.throughput) * figures.point(step.response.mean) for step in curve.steps)


def _late(late: float | None) -> grading.Signal:
    if late is None:
        return grading.stated("handles.late", None, text="whether it levels off is not known")
    return grading.stated(
        "handles.late",
        STILL_GROWING <= late <= FASTER,
        text=f"in the last third of the requests {late:.2g} times as many per request as before "
        f"(limits {STILL_GROWING:g} and {FASTER:g})",
        chip=f"late growth {late:.2g} of before",
    )


def _limit(curve: Curve, growth: HandleGrowth) -> str:
    """Say when the limit of open files is reached at the highest throughput."""
    if growth.what == "threads":
        return "each takes memory for its stack, and the machine allows only so many."
    limits = [p.descriptor_limit for s in curve.steps for p in s.processes if p.service == growth.label]
    most = [limit for limit in limits if limit is not None]
    each, rate = figures.point(growth.slope), max(figures.point(step.throughput) for step in curve.steps)
    if not most or each * rate <= 0:
        return "how many a process may have was not read."
    left = max(0.0, min(most) - growth.end)
    when = numbers.duration(left / (each * rate))
    return f"at {numbers.with_unit(rate, '1/s')} the limit of {min(most):,.0f} is reached in about {when}."


assess = assessing(ID, TITLE, observe, claim)
