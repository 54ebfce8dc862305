"""The load generator, not the service, is the limit.

**Means.** Throughput stopped growing because the generator could not send faster. Every throughput is a
lower bound, and response times include waiting in the generator.

**Needs.** At the highest load the busiest generator thread works at least 85 % of the time, or its lag at
p99 exceeds both 1 ms and a tenth of the median response time. Where there are two levels of load, the last
doubling of users brought less than 10 % more.

**Ruled out by.** The service's own processes using 85 % of the cores they were given: then the service is
full as well, and the generator is late because it lacks cores.

**Thresholds.** 0.85: a single queue at 85 % already takes 6.7 times its idle time. A lag below a tenth of the
median moves no quantile by more than its interval.

**Do.** More engine threads or another machine for the generator.

**Confirm.** Twice the threads: throughput rises. A service that answers a constant reaches the same rate.
"""

from __future__ import annotations

from loadlens.findings import evidence as weigh
from loadlens.findings.curves import Capacity, capacity_of
from loadlens.looks import numbers
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Estimate, Finding, NotAssessed

ID = "gen.bottleneck"
TITLE = "the generator is the limit"

BUSY = 0.85
SERVICE_FULL = 0.85
LAG_FLOOR_S = 0.001
LAG_SHARE = 0.10


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the highest load of every curve."""
    looked = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    known = [(curve, step) for curve, step in looked if step.generator.busy is not None]
    if not known:
        return NotAssessed(ID, TITLE, "the generator's health was not recorded")
    for curve, step in known:
        found = _finding(curve, step)
        if found is not None:
            return found
    busiest = max(known, key=lambda pair: pair[1].generator.busy or 0.0)[1].generator
    latest = max((step.generator.lag_p99_s or 0.0) for _, step in known)
    return Absent(
        ID,
        TITLE,
        f"its busiest thread works {weigh.percent(busiest.busy or 0.0)} of the time, "
        f"late {numbers.with_unit(latest, 's')} at p99",
    )


def _finding(curve: Curve, step: Step) -> Finding | None:
    watch = step.generator
    median = step.response.p50
    bound = max(LAG_FLOOR_S, LAG_SHARE * median.point) if isinstance(median, Estimate) else LAG_FLOOR_S
    lag = watch.lag_p99_s or 0.0
    busy = watch.busy or 0.0
    limited = busy >= BUSY or lag > bound
    signals = [
        weigh.stated(
            "generator.busy",
            limited,
            text=f"busiest thread {weigh.percent(busy)} (limit {weigh.percent(BUSY)}), "
            f"late {numbers.with_unit(lag, 's')} at p99 (limit {numbers.with_unit(bound, 's')})",
            chip=f"generator busy {weigh.percent(busy)}",
        )
    ]
    capacity = capacity_of(curve)
    if isinstance(capacity, Capacity):
        gain = capacity.saturation.gain_per_doubling
        signals.append(
            weigh.stated(
                "plateau",
                capacity.saturation.verdict != "underdriven",
                text=f"the last doubling of users brought {weigh.signed_percent(gain)}",
                chip=f"last doubling {weigh.signed_percent(gain)}",
            )
        )
    share = step.server_cores / curve.cores_allotted if step.processes and curve.cores_allotted else None
    rivals = [
        weigh.rival(
            "service out of CPU",
            "CPU of the service was not read"
            if share is None
            else f"it uses {weigh.percent(share)} of its cores",
            None if share is None else share < SERVICE_FULL,
        )
    ]
    grade = weigh.grade_of(signals, rivals, cap=weigh.cap_of(curve))
    if grade is None:
        return None
    rate = weigh.short(step.throughput)
    return Finding(
        rule=ID,
        grade=grade,
        impact=1.0,
        scope=curve.label,
        statement=weigh.statement(
            f"{rate} is a lower bound: the generator works {weigh.percent(busy)} of the time"
        ),
        explanation="The generator could not send faster: nothing here says what the service can do.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Give the generator more threads or a machine of its own, and run the highest load again.",
        confirm="twice the engine threads: throughput rises",
        curves=(curve.label,),
    )
