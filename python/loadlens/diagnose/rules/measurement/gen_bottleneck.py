"""The load generator, not the service, is the limit.

**Means.** Throughput stopped growing because the generator could not send faster. Every throughput is a
lower bound, and response times include waiting in the generator.

**Needs.** At the highest load one of three things, and the finding says which: the busiest generator thread
works at least 85 % of the time; or its lag at p99 exceeds both 1 ms and a tenth of the median response time;
or it waits for a core a quarter of the time or more, while a median response time is 30 ms or less: whoever
has no core reads answers late, which no lag of sending shows, and users who wait for answers ask less. Of the
first two: where there are two levels of load, the last doubling of users brought less than 10 % more. Of a
generator that is only late it must be known that it worked, or waited for a core, for half of the time or
more.

**Ruled out by.** The service's own processes using 85 % of the cores they were given, or one of them that
computes on a single thread doing so for 85 % of the time: then the service is full as well, and the generator
is late because it lacks cores. A rate that was offered, sent in time and answered, to 95 % of it: whoever was
busy with it held nothing up.

**Thresholds.** 0.85: a single queue at 85 % already takes 6.7 times its idle time. 95 %: what is under way at
both edges, and the chance of arrivals, stay below a twentieth. A lag below a tenth of the median moves no
quantile by more than its interval. Half of the time: a p99 is made by one request in a
hundred, and a machine that stands still now and then makes it; whoever has nothing to do most of the time
holds nobody up, and is suspected at most. A quarter of the time: so many of the answers, which come at random
(PASTA), lie there until it runs again, and every quantile from p75 on is the generator's; the kernel gives
cores away for some 3 ms, a tenth of 30. A generator that waits for a core more than 1 % of the time is said
to lack one: its own threads do not wait for each other.

**Do.** More engine threads or another machine for the generator; a core of its own where it waited for one.

**Confirm.** Twice the threads: throughput rises. A service that answers a constant reaches the same rate.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.observe.curve_signals import gain_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure.curve import Capacity, capacity_of, completed
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import Curve, Facts, GeneratorWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "gen.bottleneck"
TITLE = "the generator is the limit"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "eventloop.blocked")

MOST_WAITING = 0.01  # share of time in which a thread wanted a core and had none

ANSWERED = 0.95  # of the rate that was offered
LAG_FLOOR_S = 0.001
LAG_SHARE = 0.10
STARVED = 0.25  # of the time without a core: so many answers wait to be read
SLICE_S = 0.003  # for which the kernel gives a core away
OWN_CORE = "Give the generator a core of its own (taskset) and run the highest load again."
MOSTLY = 0.5  # of the time: a generator that neither works nor waits for a core has nothing to send


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the highest load of every curve."""
    looked = [(curve, curve.steps[-1]) for curve in facts.curves if curve.steps]
    known = [(curve, step) for curve, step in looked if step.generator.busy is not None]
    if not known:
        return NotAssessed(ID, TITLE, "the generator's health was not recorded")
    found = grading.first(_finding(curve, step) for curve, step in known)
    if found is not None:
        return found
    busiest = max(known, key=lambda pair: pair[1].generator.busy or 0.0)[1].generator
    latest = max((step.generator.lag_p99_s or 0.0) for _, step in known)
    return Absent(
        ID,
        TITLE,
        f"its busiest thread works {numbers.percent(busiest.busy or 0.0)} of the time, "
        f"late {numbers.with_unit(latest, 's')} at p99",
    )


def is_limit(curve: Curve, step: Step) -> bool:
    """Whether the generator, not the service, held the throughput of a level."""
    found = None if step.generator.busy is None else _finding(curve, step)
    return found is not None and found.grade > Grade.SUSPECTED


def _finding(curve: Curve, step: Step) -> Finding | None:
    found = _held_up(curve, step)
    if found is not None and found.grade > Grade.SUSPECTED:
        return found
    return _starved(curve, step) or found


def _held_up(curve: Curve, step: Step) -> Finding | None:
    """It worked all the time, or sent late."""
    watch = step.generator
    median = step.response.p50
    bound = max(LAG_FLOOR_S, LAG_SHARE * median.point) if isinstance(median, Estimate) else LAG_FLOOR_S
    lag, busy = watch.lag_p99_s or 0.0, watch.busy or 0.0
    is_busy, is_late = busy >= SATURATED, lag > bound
    if not curve.is_closed and not is_late and completed(step) >= ANSWERED * step.load:
        return None
    signals = [
        grading.stated(
            "generator.busy" if is_busy or not is_late else "generator.lag",
            is_busy or is_late,
            text=f"busiest thread {numbers.percent(busy)} (limit {numbers.percent(SATURATED)}), "
            f"late {numbers.with_unit(lag, 's')} at p99 (limit {numbers.with_unit(bound, 's')})"
            + _waited(watch),
            chip=f"generator busy {numbers.percent(busy)}"
            if is_busy
            else f"sends {numbers.with_unit(lag, 's')} late at p99",
        )
    ]
    if not is_busy:
        signals.append(_occupied(watch))
    capacity = capacity_of(curve)
    if isinstance(capacity, Capacity):
        gain = capacity.saturation.gain_per_doubling
        signals.append(gain_signal("plateau", gain, gain < GAIN_PER_DOUBLING))
    rivals = [_service(curve, step)]
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    rate = numbers.short(step.throughput)
    decided = (
        f"the generator works {numbers.percent(busy)} of the time"
        if is_busy
        else f"the generator sends {numbers.with_unit(lag, 's')} late at p99"
    )
    lacks_core = _lacks_core(watch)
    is_told = grade > Grade.SUSPECTED
    return Finding(
        rule=ID,
        grade=grade,
        impact=1.0 if is_told else 0.0,
        scope=curve.label,
        statement=grading.statement(f"{rate} {'is' if is_told else 'may be'} a lower bound: {decided}"),
        explanation=(
            "The generator could not send faster: nothing here says what the service can do"
            if is_told
            else "Some requests were sent late; whether the generator could have sent more is not known"
        )
        + (
            f". It had no core to run on for {numbers.percent(watch.waiting or 0.0)} of the time."
            if lacks_core
            else "."
        ),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=OWN_CORE
        if lacks_core and not is_busy
        else "Give the generator more threads or a machine of its own, and run the highest load again.",
        confirm="the same with the generator on a free core: throughput rises"
        if lacks_core and not is_busy
        else "twice the engine threads: throughput rises",
        curves=(curve.label,),
    )


def _starved(curve: Curve, step: Step) -> Finding | None:
    """Answers wait to be read, for as long as matters beside their own time."""
    median, waiting = step.response.p50, step.generator.waiting or 0.0
    is_short = isinstance(median, Estimate) and LAG_SHARE * median.point <= SLICE_S
    if not is_short or waiting < STARVED:
        return None
    signal = grading.stated(
        "generator.starved",
        True,
        text=f"it waits for a core {numbers.percent(waiting)} of the time (limit "
        f"{numbers.percent(STARVED)}), "
        f"the median answer takes {numbers.short(step.response.p50)} "
        f"(limit {numbers.with_unit(SLICE_S / LAG_SHARE, 's')})",
        chip=f"no core {numbers.percent(waiting)} of the time",
    )
    rivals = (_service(curve, step),)
    grade = grading.grade_of([signal], rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    share = numbers.percent(waiting)
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, waiting),
        scope=curve.label,
        statement=grading.statement(
            f"{numbers.short(step.throughput)} is a lower bound: the generator has no core {share} "
            f"of the time"
        ),
        explanation=f"{share} of the answers lie there until it runs again: response times hold that, and "
        "users who wait for answers ask less.",
        evidence=(signal.evidence,),
        counter=rivals,
        advice=OWN_CORE,
        confirm="the same with the generator on a free core: response times fall",
        curves=(curve.label,),
    )


def _service(curve: Curve, step: Step) -> Counter:
    """The service as the limit: its cores are full, or the one thread that a process computes on."""
    name = "service out of CPU"
    if not step.processes or any(not isinstance(process.cpu, Estimate) for process in step.processes):
        return grading.rival(name, "CPU of the service was not read", None)
    share = step.server_cores / curve.cores_allotted if curve.cores_allotted else 0.0
    # A thread that shares its core with the generator waits for it: what it ran counts, not what it wanted.
    loop = max(
        (p.cores for p in step.processes if p.hot_threads is not None and p.hot_threads <= 1), default=0
    )
    text = f"it uses {numbers.percent(share)} of its cores"
    if loop >= SATURATED:
        text += f", and one thread computes {numbers.percent(min(1.0, loop))} of the time"
    return grading.rival(name, text, share < SATURATED and loop < SATURATED)


def _lacks_core(watch: GeneratorWatch) -> bool:
    return watch.waiting is not None and watch.waiting > MOST_WAITING


def _waited(watch: GeneratorWatch) -> str:
    return (
        "" if watch.waiting is None else f", waited for a core {numbers.percent(watch.waiting)} of the time"
    )


def _occupied(watch: GeneratorWatch) -> grading.Signal:
    """Who holds the load up has something to do all the time; a p99 is made by one request in a hundred."""
    if watch.waiting is None:
        return grading.stated("generator.occupied", None, text="whether it waited for a core was not read")
    taken = min(1.0, (watch.busy or 0.0) + watch.waiting)
    return grading.stated(
        "generator.occupied",
        True if taken >= MOSTLY else None,
        text=f"it worked or waited for a core {numbers.percent(taken)} of the time "
        f"(limit {numbers.percent(MOSTLY)})",
        chip=f"generator occupied {numbers.percent(taken)}",
    )
