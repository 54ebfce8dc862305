"""More load gives less throughput.

**Means.** Beyond its peak the service does less the more ask at once: whoever waits costs those who are
served. Locks that are handed over among many, threads that take the processor from each other, and caches
that many share do this. Without a bound on what is in flight, load that is too high becomes load that is far
too high.

**Needs.** The highest level of load gives less than the plateau, by more than 5 % beyond chance, tested over
the trials of all levels on the plateau; and either two levels past the peak give less, or the last one gives
at least 10 % less.

**Ruled out by.** Answers that come as often as before and fail (refusals and time-outs take the place of
successes). A generator that was late, or that fills the cores which it shares with the service: then more
users take processor time from it. The same level giving less and less in later trials, or response times that
grow within a trial: that is time, not load. Time that other machines took at the highest load, where what is
left of the fall without it is within 5 %.

**Thresholds.** 5 % is the margin within which levels count as equal; against the best level alone one flat
curve in eight would seem to fall, as the best is best by luck too. One in a hundred: several curves are
looked at. 10 %: a fall that shows at one level only must be twice the margin.

**Do.** Bound what is in flight at the peak, then look for what grows with those who wait.

**Confirm.** The highest load through a limit of the peak's users: throughput comes back.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.saturation import (
    ON_PLATEAU,
    RETROGRADE_LEVEL,
    RETROGRADE_MARGIN,
    Fall,
    fall,
)
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded
from loadlens.measure.thresholds import FULL_CORES
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import (
    Absent,
    Counter,
    Estimate,
    Evidence,
    Finding,
    NotAssessed,
    Prediction,
)
from loadlens.present import numbers, words

ID = "retrograde.throughput"
TITLE = "more load gives less throughput"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

LEAST_DROP = 0.10
MANY_FAIL = 0.01
STOLEN = 0.25  # of the fall: less does not make it


@dataclass(frozen=True, slots=True)
class Look:
    """The plateau of a curve and what lies beyond it."""

    curve: Curve
    capacity: Capacity
    plateau: tuple[Step, ...]
    peak: Step  # of the plateau, with the highest throughput
    beyond: tuple[Step, ...]  # levels past the plateau
    drop: float  # of the last level, from the plateau: 0.1 is 10 % less
    fall: Fall | Insufficient

    @property
    def end(self) -> Step:
        """The highest load."""
        return self.capacity.top


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every closed curve; the one that falls furthest speaks for all."""
    looks, lacks = grading.parted(_look(curve) for curve in facts.curves)
    if not looks:
        return NotAssessed(ID, TITLE, lacks[0] if lacks else "no load curve")
    findings = [f for look in looks if (f := _finding(facts, look)) is not None]
    if findings:
        best = grading.for_all(findings)
        return replace(best, scope=", ".join(best.curves))
    furthest = max(looks, key=lambda look: look.drop)
    taken = _taken_cores(facts, furthest)
    if _fell(furthest).evidence.passed is not False and taken is not None:
        fell = f"on {furthest.curve.label} it falls by {_percent(furthest.drop)}"
        return NotAssessed(ID, TITLE, f"{fell}, but {taken}")
    return Absent(ID, TITLE, _silence(facts, furthest))


def _look(curve: Curve) -> Look | str:
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity.reason
    usable = [step for step in curve.steps if step.throughput_trials and min(step.throughput_trials) > 0]
    best = max(succeeded(step) for step in usable)
    on = [i for i, step in enumerate(usable) if succeeded(step) >= (1 - ON_PLATEAU) * best]
    plateau = tuple(usable[i] for i in on)
    level = float(np.median([succeeded(step) for step in plateau]))
    last = usable[-1]
    tested: Fall | Insufficient = Insufficient("the highest load is on the plateau")
    if last not in plateau:
        tested = fall(
            [np.array(step.throughput_trials) for step in plateau], np.array(last.throughput_trials)
        )
    return Look(
        curve=curve,
        capacity=capacity,
        plateau=plateau,
        peak=max(plateau, key=succeeded),
        beyond=tuple(usable[on[-1] + 1 :]),
        drop=1 - succeeded(last) / level,
        fall=tested,
    )


def _completed(step: Step) -> float:
    return completed(step) if step.completed_trials else succeeded(step)


def _finding(facts: Facts, look: Look) -> Finding | None:
    if _taken_cores(facts, look) is not None:
        return None
    signals, rivals = [_fell(look), _extent(look)], _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=_impact(look),
        scope=look.curve.label,
        statement=grading.statement(_statement(look)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm=f"{look.end.load:g} users through a limit of {look.peak.load:g} in flight: "
        "throughput comes back",
        predictions=_predictions(look),
        curves=(look.curve.label,),
    )


def _impact(look: Look) -> float:
    """Share of a user's response time at the highest load that is waiting, at the throughput that is left."""
    response = look.end.load / succeeded(look.end) - look.curve.think_s
    alone = look.capacity.alone_s or 0.0
    return max(look.drop, min(1.0, 1 - alone / response)) if response > 0 else look.drop


# --- evidence --------------------------------------------------------------------------------------------


def _fell(look: Look) -> grading.Signal:
    level = numbers.with_unit(succeeded(look.peak), "1/s")
    end = numbers.with_unit(succeeded(look.end), "1/s")
    if isinstance(look.fall, Insufficient):
        where = f"{end} at {words.users(look.end.load)}"
        text = f"{where} after {level} at {look.peak.load:g}: {look.fall.reason}"
        passed = False if look.drop <= RETROGRADE_MARGIN else None
        return grading.Signal(
            Evidence("throughput.fall", text, "", look.drop, None, None, RETROGRADE_MARGIN, passed), False
        )
    drop = look.fall.drop
    text = (
        f"{_percent(drop.point)} less at {words.users(look.end.load)} than on the plateau "
        f"({_span(drop)}limit {_percent(RETROGRADE_MARGIN)}, "
        f"by chance {look.fall.p_value:.2g}, limit {RETROGRADE_LEVEL})"
    )
    evidence = Evidence(
        "throughput.fall",
        text,
        f"{_percent(drop.point)} less than the plateau",
        drop.point,
        drop.low,
        drop.high,
        RETROGRADE_MARGIN,
        look.fall.is_real,
    )
    return grading.Signal(evidence, look.fall.is_real)


def _extent(look: Look) -> grading.Signal:
    levels = len(look.beyond)
    return grading.stated(
        "throughput.levels-past-peak",
        levels >= 2 or look.drop >= LEAST_DROP,
        text=f"{levels} past the plateau give less, the last {_percent(look.drop)} "
        f"(limit 2, or {_percent(LEAST_DROP)})",
        chip=f"{levels} levels past the peak",
    )


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    return [
        _failures(look),
        _later(look),
        grading.generator_rival(look.end),
        _shared(facts, look),
        grading.interference_rival(look.end, facts.cores),
        _stolen(look),
    ]


def _failures(look: Look) -> Counter:
    """Successes that fall while as much is completed: failures have taken their place."""
    name = "refusals and time-outs"
    before = sum(_completed(step) for step in look.plateau) / len(look.plateau)
    after = _completed(look.end)
    now, then = numbers.with_unit(after, "1/s"), numbers.with_unit(before, "1/s")
    text = f"{now} end at the highest load, {then} before"
    if after >= (1 - RETROGRADE_MARGIN) * before:
        return grading.rival(name, f"{text}: what fell are the successes among them", False)
    failed = look.end.failed
    if not isinstance(failed, Estimate):
        return grading.rival(name, f"{text}; failures were not counted", None)
    text += f", {numbers.percent(failed.point)} of them fail"
    return grading.rival(name, text, True if failed.point <= MANY_FAIL else None)


def _later(look: Look) -> Counter:
    """The same level giving less and less, or response times that grow within a trial."""
    name = "slower with time"
    for step in (*look.plateau, *look.beyond):
        trials = step.throughput_trials
        changes = [after / before - 1 for before, after in itertools.pairwise(trials)]
        if len(trials) > 1 and trials[-1] / trials[0] < 1 - RETROGRADE_MARGIN and max(changes) < 0:
            less = _percent(1 - trials[-1] / trials[0])
            text = f"{words.users(step.load)}: each trial gives less, the last {less}"
            return grading.rival(name, text, False)
    if look.end.steady in ("slowdown", "no_steady"):
        return grading.rival(name, "the highest load found no steady state", None)
    repeated = [step for step in look.plateau if len(step.throughput_trials) > 1]
    if not repeated:
        return grading.rival(name, "no level of the plateau was run again later", None)
    return grading.rival(name, f"{words.users(repeated[0].load)} give the same in later trials", True)


def _stolen(look: Look) -> Counter:
    """Other machines on the same host: what they took more of at the highest load was not there to use."""
    name = "other machines"
    known = [step.stolen for step in look.plateau]
    before, then = [share for share in known if share is not None], look.end.stolen
    if then is None or not before:
        return grading.rival(name, "how much time they took is not known", None)
    usual = sum(before) / len(before)
    more = max(0.0, then - usual)
    text = (
        f"they took {numbers.percent(then)} of the time at the highest load, {numbers.percent(usual)} before"
    )
    if look.drop - more <= RETROGRADE_MARGIN:
        return grading.rival(name, text, False)
    return grading.rival(name, text, True if more < STOLEN * look.drop else None)


def _taken_cores(facts: Facts, look: Look) -> str | None:
    """Why the fall may be the generator's doing; none: cores were free or apart, or nobody knows."""
    if look.curve.shares_cores is False:
        return None
    own, host = look.end.generator.cpu_cores, look.end.host_cpu
    used = None if own is None or not look.end.processes else own + look.end.server_cores
    if isinstance(host, Estimate):
        used = max(used or 0.0, host.point)
    if used is None or used < FULL_CORES * facts.cores:
        return None
    shared = f"generator and service fill the {facts.cores} cores that they share ({used:.2f})"
    return f"{shared}: the same with cores of their own would decide"


def _shared(facts: Facts, look: Look) -> Counter:
    if isinstance(look.end.host_cpu, Estimate) and look.curve.shares_cores is not False:
        busy = look.end.host_cpu.point
        text = f"the machine uses {busy:.2f} of {facts.cores} cores"
        return grading.rival("shared cores", text, True if busy < FULL_CORES * facts.cores else None)
    return grading.shared_cores_rival(look.curve, look.end, facts.cores)


# --- words -----------------------------------------------------------------------------------------------


def _span(drop: Interval) -> str:
    if drop.low is None and drop.high is None:
        return ""
    low, high = ("open" if end is None else _percent(end) for end in (drop.low, drop.high))
    return f"{low} to {high}; "


def _percent(share: float) -> str:
    return numbers.percent(share) if share >= 0 else f"-{numbers.percent(-share)}"


def _statement(look: Look) -> str:
    return (
        f"Throughput falls by {_percent(look.drop)}: {numbers.with_unit(succeeded(look.peak), '1/s')} at "
        f"{words.users(look.peak.load)}, {numbers.with_unit(succeeded(look.end), '1/s')} at {look.end.load:g}"
    )


def _explanation(look: Look) -> str:
    passed = ", ".join(
        f"{numbers.with_unit(succeeded(step), '1/s')} at {step.load:g}" for step in (look.peak, *look.beyond)
    )
    text = f"The more ask at once, the less is done: {passed} users."
    if look.end.server_cores and look.end.processes:
        text += f" The service uses {look.end.server_cores:.2f} cores there."
    return text


def _advice(look: Look) -> str:
    then, now = numbers.with_unit(succeeded(look.peak), "1/s"), numbers.with_unit(succeeded(look.end), "1/s")
    return (
        f"Let at most {look.peak.load:g} in and make the rest wait outside: {then} instead of {now}. "
        "Then look for what grows with those who wait: a contended lock, switches of threads, a shared cache."
    )


def _predictions(look: Look) -> tuple[Prediction, ...]:
    before, after = look.end.throughput, look.peak.throughput
    if not isinstance(before, Estimate) or not isinstance(after, Estimate):
        return ()
    what = f"requests/s at {look.end.load:g} users, at most {look.peak.load:g} in flight"
    return (Prediction(what, before, replace(after, method=f"measured at {words.users(look.peak.load)}")),)


def _silence(facts: Facts, look: Look) -> str:
    return grading.contradiction(look.curve.label, [_fell(look), _extent(look)], _rivals(facts, look))
