"""The load generator, not the service, is the limit.

**Means.** Throughput stopped growing because the generator could not send faster. Every throughput is a
lower bound, and response times include waiting in the generator.

**Needs.** At the highest load one of three things, and the finding says which: the busiest generator thread
works at least 85 % of the time; or its lag at p99 exceeds both 1 ms and a tenth of the median response time;
or it waits for a core 25 % of the time or more, while a median response time is 30 ms or less: a thread
without a core reads responses late, which the lag of sending does not show, and users who wait for responses
send less. For the first two: where there are two levels of load, the last doubling of users brought less than
10 % more. A generator that is only late must also have worked, or waited for a core, for half of the time or
more.

**Ruled out by.** The service's own processes using 85 % of the cores they were given, or one of them that
computes on a single thread doing so for 85 % of the time: then the service is full as well, and the generator
is late because it lacks cores. A rate that was offered, sent in time and answered, to 95 % of it: a busy
generator delayed nothing there.

**Thresholds.** 0.85: a single queue at 85 % already takes 6.7 times its idle time. 95 %: what is under way at
both edges, and the chance of arrivals, stay below 5 %. A lag below a tenth of the median moves no quantile by
more than its interval. Half of the time: a p99 is made by one request in a hundred, and a machine that pauses
now and then makes it; a generator that is idle most of the time delays no request, and is suspected at most.
25 % of the time: so many of the responses, which arrive at random (PASTA), wait until it runs again, and
every quantile from p75 on is the generator's; the kernel gives cores away for about 3 ms, a tenth of 30. A
generator that waits for a core more than 1 % of the time is said to lack one: its own threads do not wait for
each other.

**Do.** Use more engine threads or another machine for the generator; give it a core of its own where it
waited for one.

**Confirm.** Double the threads: throughput rises. A service that returns a constant reaches the same rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, finding_of, on_curve
from loadlens.diagnose.observe.curve_signals import gain_signal
from loadlens.estimate.saturation import GAIN_PER_DOUBLING
from loadlens.measure.curve import Capacity, capacity_of, completed, succeeded
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import Curve, Facts, GeneratorWatch, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade
from loadlens.present import numbers
from loadlens.present.numbers import percent, with_unit

ID = "gen.bottleneck"
TITLE = "the generator is the limit"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "eventloop.blocked")

MOST_WAITING = 0.01  # share of time in which a thread wanted a core and had none
ANSWERED = 0.95  # of the rate that was offered
LAG_FLOOR_S = 0.001
LAG_SHARE = 0.10
STARVED = 0.25  # of the time without a core: so many responses wait to be read
SLICE_S = 0.003  # for which the kernel gives a core away
OWN_CORE = "Give the generator a core of its own (taskset) and run the highest load again."
OWN_MACHINE = "Give the generator more threads or a machine of its own, and run the highest load again."
MOSTLY = 0.5  # of the time: a generator that neither works nor waits for a core has nothing to send


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A level of load, and how the generator may have limited it."""

    curve: Curve
    step: Step
    kind: Literal["delay", "starvation"]


def suspicions(curve: Curve, step: Step) -> list[Suspicion]:
    """Return both ways in which the generator may have limited a level."""
    return [Suspicion(curve, step, "delay"), Suspicion(curve, step, "starvation")]


def observe(facts: Facts) -> Sequence[Suspicion] | Lacking:
    """Return the highest load of every curve at which any request succeeds, once for each way."""
    tops = [(curve, _highest(curve.steps)) for curve in facts.curves if curve.steps]
    observed = [s for curve, top in tops if top.generator.busy is not None for s in suspicions(curve, top)]
    return observed or Lacking("the generator's health was not recorded")


def _highest(steps: Sequence[Step]) -> Step:
    return next((step for step in reversed(steps) if succeeded(step) > 0), steps[-1])


def claim(_: Facts, suspicion: Suspicion) -> Claim | Nothing:
    """Claim that the generator delayed requests, or responses."""
    of_kind = _delay if suspicion.kind == "delay" else _starvation
    return of_kind(suspicion.curve, suspicion.step)


def choose(pairs: Sequence[tuple[Suspicion, Finding]]) -> Finding:
    """Return the finding of the first curve: a delay that is only suspected gives way to starvation."""
    own = [finding for suspicion, finding in pairs if suspicion.curve is pairs[0][0].curve]
    return own[0] if own[0].grade > Grade.SUSPECTED else own[-1]


def is_limit(curve: Curve, step: Step) -> bool:
    """Return true if the generator, not the service, held the throughput of a level."""
    if step.generator.busy is None:
        return False
    claims = (_delay(curve, step), _starvation(curve, step))
    findings = [finding_of(ID, made) for made in claims if isinstance(made, Claim)]
    return any(finding is not None and finding.grade > Grade.SUSPECTED for finding in findings)


def _delay(curve: Curve, step: Step) -> Claim | Nothing:
    """Claim that it worked all the time, or sent late."""
    watch, median, capacity = step.generator, step.response.p50, capacity_of(curve)
    bound = max(LAG_FLOOR_S, LAG_SHARE * median.point) if isinstance(median, Estimate) else LAG_FLOOR_S
    lag_s, busy, waiting = watch.lag_p99_s or 0.0, watch.busy or 0.0, watch.waiting or 0.0
    is_busy, is_late, lacks_core = busy >= SATURATED, lag_s > bound, waiting > MOST_WAITING
    if not curve.is_closed and not is_late and completed(step) >= ANSWERED * step.load:
        return Nothing(f"{curve.label}: the offered rate was sent in time and answered")
    lag = with_unit(lag_s, "s")
    waited = "" if watch.waiting is None else f", waited for a core {percent(waiting)} of the time"
    signals = [
        grading.stated(
            "generator.busy" if is_busy or not is_late else "generator.lag",
            is_busy or is_late,
            text=f"busiest thread {percent(busy)} (limit {percent(SATURATED)}), "
            f"late {lag} at p99 (limit {with_unit(bound, 's')}){waited}",
            chip=f"generator busy {percent(busy)}" if is_busy else f"sends {lag} late at p99",
        )
    ]
    if not is_busy:
        signals.append(_occupied(watch))
    if isinstance(capacity, Capacity):
        gain = capacity.saturation.gain_per_doubling
        signals.append(gain_signal("plateau", gain, gain < GAIN_PER_DOUBLING))

    def words(grade: Grade) -> Words:
        is_shown, wants_core = grade > Grade.SUSPECTED, lacks_core and not is_busy
        limit = f"works {percent(busy)} of the time" if is_busy else f"sends {lag} late at p99"
        verb, explanation = (
            ("is", "The generator could not send faster: nothing here says what the service can do")
            if is_shown
            else (
                "may be",
                "Some requests were sent late; whether the generator could have sent more is not known",
            )
        )
        no_core = f". It had no core to run on for {percent(waiting)} of the time" if lacks_core else ""
        return Words(
            statement=f"{numbers.short(step.throughput)} {verb} a lower bound: the generator {limit}",
            explanation=f"{explanation}{no_core}.",
            advice=OWN_CORE if wants_core else OWN_MACHINE,
            confirm="the same with the generator on a free core: throughput rises"
            if wants_core
            else "twice the engine threads: throughput rises",
            impact=1.0 if is_shown else 0.0,
        )

    return on_curve(curve, signals, [_service_rival(curve, step)], words)


def _starvation(curve: Curve, step: Step) -> Claim | Nothing:
    """Claim that responses waited to be read, for as long as matters next to their own time."""
    median, waiting = step.response.p50, step.generator.waiting or 0.0
    share, answer = percent(waiting), numbers.short(median)
    if not isinstance(median, Estimate) or LAG_SHARE * median.point > SLICE_S or waiting < STARVED:
        return Nothing(f"{curve.label}: it waits for a core {share} of the time")
    signal = grading.stated(
        "generator.starved",
        True,
        text=f"it waits for a core {share} of the time (limit {percent(STARVED)}), "
        f"the median answer takes {answer} (limit {with_unit(SLICE_S / LAG_SHARE, 's')})",
        chip=f"no core {share} of the time",
    )

    def words(_: Grade) -> Words:
        rate = numbers.short(step.throughput)
        return Words(
            statement=f"{rate} is a lower bound: the generator has no core {share} of the time",
            explanation=f"{share} of the answers lie there until it runs again: response times hold that, "
            "and users who wait for answers ask less.",
            advice=OWN_CORE,
            confirm="the same with the generator on a free core: response times fall",
            impact=waiting,
        )

    return on_curve(curve, [signal], [_service_rival(curve, step)], words)


def _service_rival(curve: Curve, step: Step) -> Counter:
    """Weigh the service as the limit: its cores are full, or the one thread that a process computes on."""
    name = "service out of CPU"
    if not step.processes or any(not isinstance(process.cpu, Estimate) for process in step.processes):
        return grading.rival(name, "CPU of the service was not read", None)
    share = step.server_cores / curve.cores_allotted if curve.cores_allotted else 0.0
    # A thread that shares its core with the generator waits for it: what it ran counts, not what it wanted.
    single = [p.cores for p in step.processes if p.is_one_thread]
    loop = max(single, default=0)
    text = f"it uses {percent(share)} of its cores"
    if loop >= SATURATED:
        text += f", and one thread computes {percent(min(1.0, loop))} of the time"
    return grading.rival(name, text, share < SATURATED and loop < SATURATED)


def _occupied(watch: GeneratorWatch) -> grading.Signal:
    """Require that it had something to do: a p99 is made by one request in a hundred."""
    if watch.waiting is None:
        return grading.stated("generator.occupied", None, text="whether it waited for a core was not read")
    occupied = min(1.0, (watch.busy or 0.0) + watch.waiting)
    return grading.stated(
        "generator.occupied",
        True if occupied >= MOSTLY else None,
        text=f"it worked or waited for a core {percent(occupied)} of the time (limit {percent(MOSTLY)})",
        chip=f"generator occupied {percent(occupied)}",
    )


def _silence(_: Facts, observed: Sequence[Suspicion]) -> str:
    watches = [suspicion.step.generator for suspicion in observed]
    busiest = max(watch.busy or 0.0 for watch in watches)
    latest = max(watch.lag_p99_s or 0.0 for watch in watches)
    return f"its busiest thread works {percent(busiest)} of the time, late {with_unit(latest, 's')} at p99"


assess = assessing(ID, TITLE, observe, claim, choose=choose, silence=_silence)
