"""Generator and service take the same cores from each other.

**Means.** Both want more than the cores they share can give. Throughput is what the two of them reach
together, and response times hold waiting that a service with cores of its own would not have.

**Needs.** At the highest load: the cores that the generator may use are 90 % busy; Loadlens takes at least
10 % of them, or sends late for want of them (it waits for a core for 10 % of the time, and its lag is beyond
its limit); others than Loadlens take at least a quarter of them; the service's threads wait for a core for
5 % of the time that they run, or more; and throughput no longer grows with the load, where users wait for
answers.

**Ruled out by.** Cores of their own for each; other programs that take the larger part of what Loadlens does
not take itself. Where Loadlens takes less than a third of what the others take, the service is short of cores
with or without it: then this stands beside that and explains nothing.

**Thresholds.** 0.9: /proc is exact to 2 to 3 %, and beyond it nothing is left to give. 10 %: what the service
could gain is no more than what the generator takes, and less is within what a capacity is known to. A
third: without the generator a quarter of the cores would be free, and the service a third faster at most. A
quarter: the kernel's work for the network, which belongs to no process, takes up to a fifth of a core.

**Do.** Pin generator and service to cores of their own, or generate on another machine. The service then does
what its cores bear by the CPU time of a request.

**Confirm.** The generator pinned to one core: CPU time of a request stays, throughput changes.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.grading import Signal
from loadlens.diagnose.observe.curve_signals import gain_text, waits_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure.curve import FULL_CORES, OTHERS_MATTER, Capacity, capacity_of, generator_in_time
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Finding, NotAssessed
from loadlens.model.quality import OwnCores
from loadlens.present import numbers

ID = "colocation.contention"
TITLE = "generator and service take cores from each other"
EXPLAINS: tuple[str, ...] = ("gen.bottleneck", "cpu.saturated", "saturation.plateau")

LAB_MATTERS = 0.10
SERVICE_THERE = 0.25
MOSTLY = 0.5  # of what others than Loadlens take
EXPLAINS_FROM = 1 / 3  # of the same, taken by Loadlens: less is no reason why the rest is full


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the highest load of every curve whose parts may meet on a core."""
    tops = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    apart = [curve for curve, _ in tops if curve.shares_cores is False]
    if tops and len(apart) == len(tops):
        return Absent(ID, TITLE, "generator and service ran on cores of their own")
    known = [
        (curve, step, own)
        for curve, step in tops
        if curve.shares_cores is not False and step.processes and (own := step.quality.own_cores) is not None
    ]
    if not known:
        return NotAssessed(ID, TITLE, "needs the CPU of the service's processes and of each core")
    found = [f for curve, step, own in known if (f := _finding(curve, step, own)) is not None]
    if found:
        return grading.strongest(found)
    curve, step, own = max(known, key=lambda one: one[2].busy / one[2].cores)
    return Absent(
        ID,
        TITLE,
        f"on {curve.label} {grading.unclear(_signals(curve, step, own)) or _others(step, own).text}",
    )


def _finding(curve: Curve, step: Step, own: OwnCores) -> Finding | None:
    signals, rivals = _signals(curve, step, own), (_others(step, own),)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    cores = "the core" if own.cores == 1 else f"the {own.cores} cores"
    takes, lacks = own.lab / own.cores, _lacks(step)
    what = (
        f"takes {numbers.percent(takes)}" if takes >= LAB_MATTERS else f"lacks one {numbers.percent(lacks)}"
    )
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, max(takes, lacks)),
        scope=curve.label,
        statement=grading.statement(f"Generator and service fill {cores} they share: the generator {what}"),
        explanation=f"At {step.load:g} {'users' if curve.is_closed else '/s offered'} the service has what "
        f"the generator leaves it: {numbers.short(step.throughput)} is what both reach together.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=rivals,
        advice=f"Give the service cores of its own: Loadlens takes {own.lab:.2f} of {own.cores} here, which "
        "the service would have (cpus: in the study, taskset beside explain).",
        confirm="the generator on one core that the service does not use: CPU time of a request stays, "
        "throughput changes",
        curves=(curve.label,),
        explains_others=own.lab >= EXPLAINS_FROM * (own.busy - own.lab),
    )


def _signals(curve: Curve, step: Step, own: OwnCores) -> list[Signal]:
    busy, lab = own.busy / own.cores, own.lab / own.cores
    return [
        grading.stated(
            "cores.busy",
            busy >= FULL_CORES,
            text=f"the generator's cores are {numbers.percent(busy)} busy "
            f"(limit {numbers.percent(FULL_CORES)})",
            chip=f"shared cores {numbers.percent(busy)} busy",
        ),
        grading.stated(
            "cores.generator",
            lab >= LAB_MATTERS or _lacks(step) >= LAB_MATTERS,
            text=f"Loadlens takes {numbers.percent(lab)} of them, and sends late without a core for "
            f"{numbers.percent(_lacks(step))} of the time (limit {numbers.percent(LAB_MATTERS)})",
            chip=f"generator takes {numbers.percent(lab)}",
        ),
        grading.stated(
            "cores.service",
            busy - lab >= SERVICE_THERE,
            text=f"others than Loadlens take {numbers.percent(max(0.0, busy - lab))} of them "
            f"(limit {numbers.percent(SERVICE_THERE)})",
            chip=f"the rest {numbers.percent(max(0.0, busy - lab))}",
        ),
        waits_signal(step),
        *_plateau(curve),
    ]


def _lacks(step: Step) -> float:
    """Share of the time for which the generator had no core, where it sent late for it; else nothing."""
    watch = step.generator
    return 0.0 if generator_in_time(watch) is not False else watch.waiting or 0.0


def _plateau(curve: Curve) -> list[Signal]:
    """Whoever still does more with more users is not yet short of cores; of open loads nothing is known."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return []
    gain = capacity.saturation.gain_per_doubling
    return [grading.stated("plateau", gain < GAIN_PER_DOUBLING, text=gain_text(gain))]


def _others(step: Step, own: OwnCores) -> Counter:
    if step.other_cores is None:
        return grading.rival("other programs", "the machine as a whole was not watched", None)
    text = f"other programs use {step.other_cores:.2f} cores"
    rest = max(0.0, own.busy - own.lab)
    if step.other_cores >= MOSTLY * rest:
        return grading.rival("other programs", text, False)
    return grading.rival(
        "other programs", text, True if step.other_cores < OTHERS_MATTER * own.cores else None
    )
