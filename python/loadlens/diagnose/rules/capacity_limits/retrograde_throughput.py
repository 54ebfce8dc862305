"""More load gives less throughput.

**Means.** Beyond its peak the service completes less, the more requests are in flight: waiting requests slow
down those that are served. Locks that are handed over among many threads, threads that take the processor
from each other, and shared caches have this effect. Without a limit on requests in flight an overload grows
by itself.

**Needs.** The highest level of load gives less than the plateau, by more than 5 % beyond chance, tested over
the trials of all levels on the plateau; and either two levels past the peak give less, or the last one gives
at least 10 % less.

**Ruled out by.** Answers that come as often as before and fail (refusals and time-outs take the place of
successes). A generator that was late, or that fills the cores that it shares with the service: then more
users take processor time from it, unless it uses 3 % of them or less. Time: a level loses as much in its
later trials as the curve does with more users, or every repeated level gives less each time, as chance does
in fewer than one of 20 runs. A level that loses less, or response times that grow within a trial, leave the
finding probable. Time that other machines took at the highest load, if the fall without it is within 5 %. A
limiter that delays (ratelimit.active), whose burst is what levels of few users did more.

**Thresholds.** 5 % is the margin within which levels count as equal; against the best level alone one flat
curve in eight would seem to fall, as the best is best by luck too. One in a hundred: several curves are
looked at. 10 %: a fall that shows at one level only must be twice the margin.

**Do.** Limit requests in flight to the number at the peak, then look for work that grows with the number of
waiting requests.

**Confirm.** Run the highest load through a limit of the peak's users: throughput comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, all_seen, assessing, naming_all, on_curve
from loadlens.diagnose.observe import clocks
from loadlens.diagnose.observe.curve_signals import BY_CHANCE, by_chance, gives_less_each_time
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.saturation import (
    ON_PLATEAU,
    RETROGRADE_LEVEL,
    RETROGRADE_MARGIN,
    Fall,
    fall,
)
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded
from loadlens.measure.thresholds import FEW_FAIL, FULL_CORES
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Grade, Prediction
from loadlens.present import words
from loadlens.present.numbers import percent, with_unit

ID = "retrograde.throughput"
TITLE = "more load gives less throughput"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

LEAST_DROP = 0.10
STOLEN = 0.25  # of the fall: less does not make it


@dataclass(frozen=True, slots=True)
class Fallen:
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


def observe(facts: Facts) -> Sequence[Fallen] | Lacking:
    """Return every closed curve with what lies beyond its plateau."""
    return all_seen(map(_fallen, facts.curves))


def _fallen(curve: Curve) -> Fallen | str:
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
    return Fallen(
        curve=curve,
        capacity=capacity,
        plateau=plateau,
        peak=max(plateau, key=succeeded),
        beyond=tuple(usable[on[-1] + 1 :]),
        drop=1 - succeeded(last) / level,
        fall=tested,
    )


def claim(facts: Facts, fallen: Fallen) -> Claim:
    """Hold the fall against chance, failures, time, and cores that the generator or others took."""
    end, peak = fallen.end, fallen.peak
    taken = _taken_cores(facts, fallen)
    rivals = [
        _failures(fallen),
        _later(fallen),
        grading.generator_rival(end),
        _shared(facts, fallen) if taken is None else grading.rival("shared cores", taken, False),
        grading.interference_rival(end, facts.cores),
        _stolen(fallen),
        *_burst(facts, fallen),
    ]

    def texts(_: Grade) -> Words:
        then, now = (with_unit(succeeded(step), "1/s") for step in (peak, end))
        # Share of a user's response time at the highest load that is waiting, at the throughput that is left.
        response_s = end.load / succeeded(end) - fallen.curve.think_s
        waiting = 1 - (fallen.capacity.alone_s or 0.0) / response_s if response_s > 0 else 0.0
        passed = ", ".join(
            f"{with_unit(succeeded(step), '1/s')} at {step.load:g}" for step in (peak, *fallen.beyond)
        )
        explanation = f"The more ask at once, the less is done: {passed} users."
        if end.server_cores and end.processes:
            explanation += f" The service uses {end.server_cores:.2f} cores there."
        predictions: tuple[Prediction, ...] = ()
        if isinstance(end.throughput, Estimate) and isinstance(peak.throughput, Estimate):
            what = f"requests/s at {end.load:g} users, at most {peak.load:g} in flight"
            after = replace(peak.throughput, method=f"measured at {words.users(peak.load)}")
            predictions = (Prediction(what, end.throughput, after),)
        return Words(
            statement=f"Throughput falls by {_percent(fallen.drop)}: {then} at "
            f"{words.users(peak.load)}, {now} at {end.load:g}",
            explanation=explanation,
            advice=f"Let at most {peak.load:g} in and make the rest wait outside: {then} instead of {now}. "
            "Then look for what grows with those who wait: a contended lock, switches of threads, a shared "
            "cache.",
            confirm=f"{end.load:g} users through a limit of {peak.load:g} in flight: throughput comes back",
            impact=max(fallen.drop, waiting),
            predictions=predictions,
        )

    return on_curve(fallen.curve, [_fell(fallen), _extent(fallen)], rivals, texts)


# --- evidence --------------------------------------------------------------------------------------------


def _fell(fallen: Fallen) -> grading.Signal:
    level = with_unit(succeeded(fallen.peak), "1/s")
    end = with_unit(succeeded(fallen.end), "1/s")
    if isinstance(fallen.fall, Insufficient):
        where = f"{end} at {words.users(fallen.end.load)}"
        text = f"{where} after {level} at {fallen.peak.load:g}: {fallen.fall.reason}"
        passed = False if fallen.drop <= RETROGRADE_MARGIN else None
        return grading.Signal(
            Evidence("throughput.fall", text, "", fallen.drop, None, None, RETROGRADE_MARGIN, passed), False
        )
    drop = fallen.fall.drop
    text = (
        f"{_percent(drop.point)} less at {words.users(fallen.end.load)} than on the plateau "
        f"({_span(drop)}limit {_percent(RETROGRADE_MARGIN)}, "
        f"by chance {fallen.fall.p_value:.2g}, limit {RETROGRADE_LEVEL})"
    )
    evidence = Evidence(
        "throughput.fall",
        text,
        f"{_percent(drop.point)} less than the plateau",
        drop.point,
        drop.low,
        drop.high,
        RETROGRADE_MARGIN,
        fallen.fall.is_real,
    )
    return grading.Signal(evidence, fallen.fall.is_real)


def _extent(fallen: Fallen) -> grading.Signal:
    levels = len(fallen.beyond)
    return grading.stated(
        "throughput.levels-past-peak",
        levels >= 2 or fallen.drop >= LEAST_DROP,
        text=f"{levels} past the plateau give less, the last {_percent(fallen.drop)} "
        f"(limit 2, or {_percent(LEAST_DROP)})",
        chip=f"{levels} levels past the peak",
    )


def _failures(fallen: Fallen) -> Counter:
    """Weigh failures: successes fall while as much is completed."""
    name = "refusals and time-outs"
    ended = [
        completed(step) if step.completed_trials else succeeded(step)
        for step in (*fallen.plateau, fallen.end)
    ]
    before, after = sum(ended[:-1]) / len(fallen.plateau), ended[-1]
    now, then = with_unit(after, "1/s"), with_unit(before, "1/s")
    text = f"{now} end at the highest load, {then} before"
    if after >= (1 - RETROGRADE_MARGIN) * before:
        return grading.rival(name, f"{text}: what fell are the successes among them", False)
    failed = fallen.end.failed
    if not isinstance(failed, Estimate):
        return grading.rival(name, f"{text}; failures were not counted", None)
    text += f", {percent(failed.point)} of them fail"
    return grading.rival(name, text, True if failed.point <= FEW_FAIL else None)


def _later(fallen: Fallen) -> Counter:
    """Weigh time: the same level gives less and less, or response times grow within a trial."""
    name = "slower with time"
    again = [step for step in (*fallen.plateau, *fallen.beyond) if len(step.throughput_trials) > 1]
    falling = [step for step in again if gives_less_each_time(step)]
    worst = max(falling, key=_lost, default=None)
    if worst is not None and _lost(worst) > RETROGRADE_MARGIN:
        # One of two trials always gives less: time must cost as much as more users do, or show at all levels.
        is_as_much = _lost(worst) >= max(2 * RETROGRADE_MARGIN, fallen.drop - RETROGRADE_MARGIN)
        is_time = is_as_much or (falling == again and by_chance(again) < BY_CHANCE)
        text = f"{words.users(worst.load)}: each trial gives less, the last {_percent(_lost(worst))}"
        return grading.rival(name, text, False if is_time else None)
    if fallen.end.steady in ("slowdown", "no_steady"):
        return grading.rival(name, "the highest load found no steady state", None)
    repeated = [step for step in fallen.plateau if len(step.throughput_trials) > 1]
    if not repeated:
        return grading.rival(name, "no level of the plateau was run again later", None)
    return grading.rival(name, f"{words.users(repeated[0].load)} give the same in later trials", True)


def _burst(facts: Facts, fallen: Fallen) -> list[Counter]:
    """Return the rival of a limiter that delays: below its rate a level still lives on its burst."""
    for clock in clocks.observe(facts):
        settled = (1 - RETROGRADE_MARGIN) * clock.rate.point
        if clock.curve is not fallen.curve or not clock.is_one_rate or succeeded(fallen.end) < settled:
            continue
        if all(clocks.is_burst(step, clock) for step in fallen.plateau):
            much, rate = f"{clock.at_once:.0f}", with_unit(clock.rate.point, "1/s")
            text = f"{much} requests at once, and then {rate} at every level, make it no more than this"
            return [grading.rival("burst of a limiter", text, False)]
    return []


def _lost(step: Step) -> float:
    """Return how much less the last trial of a level gives than the first: 0.1 is 10 %."""
    return 1 - step.throughput_trials[-1] / step.throughput_trials[0]


def _stolen(fallen: Fallen) -> Counter:
    """Weigh other machines on the same host: time that they took in addition at the highest load."""
    name = "other machines"
    before = [step.stolen for step in fallen.plateau if step.stolen is not None]
    then = fallen.end.stolen
    if then is None or not before:
        return grading.rival(name, "how much time they took is not known", None)
    usual = sum(before) / len(before)
    more = max(0.0, then - usual)
    text = f"they took {percent(then)} of the time at the highest load, {percent(usual)} before"
    if fallen.drop - more <= RETROGRADE_MARGIN:
        return grading.rival(name, text, False)
    return grading.rival(name, text, True if more < STOLEN * fallen.drop else None)


def _taken_cores(facts: Facts, fallen: Fallen) -> str | None:
    """Return why the generator may cause the fall; `None` if cores were free or apart, or not read."""
    if fallen.curve.shares_cores is False:
        return None
    if _is_little(facts, fallen):
        return None
    own, host = fallen.end.generator.cpu_cores, fallen.end.host_cpu
    used = None if own is None or not fallen.end.processes else own + fallen.end.server_cores
    if isinstance(host, Estimate):
        used = max(used or 0.0, host.point)
    if used is None or used < FULL_CORES * facts.cores:
        return None
    shared = f"generator and service fill the {facts.cores} cores that they share ({used:.2f})"
    return f"{shared}: the same with cores of their own would decide"


def _is_little(facts: Facts, fallen: Fallen) -> bool:
    """Return true if the generator uses so little that it can cause no fall."""
    own = fallen.end.generator.cpu_cores
    return own is not None and own <= grading.LITTLE * facts.cores


def _shared(facts: Facts, fallen: Fallen) -> Counter:
    host, may_matter = fallen.end.host_cpu, not _is_little(facts, fallen)
    if isinstance(host, Estimate) and fallen.curve.shares_cores is not False and may_matter:
        busy = host.point
        text = f"the machine uses {busy:.2f} of {facts.cores} cores"
        return grading.rival("shared cores", text, True if busy < FULL_CORES * facts.cores else None)
    return grading.shared_cores_rival(fallen.curve, fallen.end, facts.cores)


# --- words -----------------------------------------------------------------------------------------------


def _span(drop: Interval) -> str:
    if drop.low is None and drop.high is None:
        return ""
    low, high = ("open" if end is None else _percent(end) for end in (drop.low, drop.high))
    return f"{low} to {high}; "


def _percent(share: float) -> str:
    return percent(share) if share >= 0 else f"-{percent(-share)}"


def _silence(facts: Facts, observed: Sequence[Fallen]) -> str | Lacking:
    furthest = max(observed, key=lambda fallen: fallen.drop)
    taken = _taken_cores(facts, furthest)
    if taken is not None and _fell(furthest).evidence.passed is not False:
        return Lacking(f"on {furthest.curve.label} it falls by {_percent(furthest.drop)}, but {taken}")
    return claim(facts, furthest).objection


assess = assessing(ID, TITLE, observe, claim, choose=naming_all, silence=_silence)
