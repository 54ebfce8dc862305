"""One request's CPU work holds up everything else in its process.

**Means.** A process works on one thread and does not release it while it computes. Every other request of
that process, however cheap, waits until the computation ends. One process answers at most 1 / D of the
expensive requests per second, D being their CPU time, and from (D + Z) / D users per process on they queue.

**Needs.** At the highest load: each working process is occupied (computing, or waiting for a core) at least
85 % of the time, and one thread does two thirds of its work or more; an expensive request takes at least 2 ms
of CPU; probes on connections of their own are held up for as long as that occupation says, within 0.1 (a
probe that arrives at random sees the utilisation: PASTA), and their mean wait is at least 25 % of what
expensive requests wait.

**Ruled out by.** Processes that serve one connection at a time: at the median look half of the other users
wait to be accepted, where a loop accepts them between two requests. A thread pool that is full (then the CPU
has room). Threads that the kernel switches (then they share the work, or together they want more than one
core, and probes wait a tenth as long). Pauses such as garbage collection (they hold up few probes). A lock in
a database (CPU has room). The generator being late. Generator, service or other programs taking cores from
each other.

**Thresholds.** Waits of probes over waits of expensive requests were 1.0, 0.5, 0.33 for one queue that is
passed once, twice, three times, 0.09 for threads that share a core fairly, and 0 where nothing is shared:
0.25 lies between. Below 2 ms of work one queue and fair sharing look the same, as the kernel's time slices
are as long. 0.85: at that utilisation a queue takes 6.7 times its idle time. A thread computes or waits for a
core, so one alone wants no more than 1; 1.25 leaves room for two counters that are read one after the other.
Two thirds: collectors and compilers of a runtime do less than a third where the loop itself is the limit, and
of threads that share the work the busiest does half of it at most.

**Do.** Move the work off the loop (a thread or process pool), or run more processes, up to the number of
cores. With the work in threads one process can use all cores: capacity min(cores, threads) / D.

**Confirm.** Double the processes: throughput doubles while cores are free, and probes wait less. Or do the
work in threads: probes stop waiting for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import (
    Answer,
    Claim,
    Lacking,
    Nothing,
    Words,
    all_seen,
    assessing,
    objecting,
    on_curve,
)
from loadlens.diagnose.observe import opened_connections
from loadlens.diagnose.observe.curve_signals import accepts_signal, one_thread
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.probes import Waiting, waiting
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, costliest_class, working
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import MOST_OF_WORK, Curve, Facts, ProbeWatch, ProcessWatch, RequestClass, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade
from loadlens.present import load_text, numbers
from loadlens.present.numbers import ends, percent, with_unit
from loadlens.present.words import plural, users
from loadlens.present.words import probe as probe_in_words

ID = "eventloop.blocked"
TITLE = "a request's CPU work holds up its whole process"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "loop.multipass", "hol.correlation")

LEAST_WORK_S = 0.002
COUPLED = 0.25
DELAY_TOLERANCE = 0.10
ONE_THREAD = 1.25  # cores that one thread may seem to want, as two counters are read
HALF = 0.5  # occupied: below, a process that only supervises would seem to serve
FEW_DELAYED = 0.5  # pauses of a collector that hold up more than half of the probes are not pauses
SEVERAL_PASSES = 1.25  # waits of a probe: from here on a request seems to queue more than once


@dataclass(frozen=True, slots=True)
class BusyLoops:
    """The working processes of one curve at its highest load, and the wait of a probe there."""

    curve: Curve
    step: Step
    probe: ProbeWatch
    costliest: RequestClass
    processes: tuple[ProcessWatch, ...]
    occupied: Interval  # cores computing or waiting for a core, least of the working processes
    met: float  # share of the time for which a probe meets a process that is occupied
    work_s: float
    waits: Waiting | Insufficient
    passes_before: Interval | None  # the same at the next lower load


def answer_of(others: Sequence[Answer]) -> Finding | Lacking | Nothing:
    """Return the blocked event loops that were found before, or why a rule about them cannot look."""
    loops = next((other for other in others if other.rule == ID), None)
    if isinstance(loops, Finding):
        return loops
    if isinstance(loops, Absent):
        return Nothing(f"no event loop is blocked: {loops.reason}")
    return Lacking("needs a look for blocked event loops" if loops is None else loops.reason)


def observe(facts: Facts) -> Sequence[BusyLoops] | Lacking:
    """Return every curve with a probe, the longest first."""
    return all_seen(_loops(curve) for curve in sorted(facts.curves, key=lambda curve: -len(curve.steps)))


def _loops(curve: Curve) -> BusyLoops | str:
    """Return the highest step with load and probe, or the signal that is missing."""
    place = place_of(curve)
    if isinstance(place, str):
        return place
    step = curve.steps[place]
    probe, costliest, processes = probe_of(step), costliest_class(curve, step), working(step)
    assert probe is not None  # the place has one
    if not processes or not isinstance(processes[0].cpu, Estimate):
        return "needs the CPU of the service's processes: watch them with pid or start"
    if not isinstance(curve.work, Estimate):
        return f"the CPU time of one request is not known: {curve.work.reason}"
    if costliest is None:
        return "no request was answered at the highest load"
    occupied = min((_occupied(process) for process in processes), key=lambda interval: interval.point)
    # A process that works at another level may have no load here, and may answer a probe all the same.
    at_levels = [working(level) for level in curve.steps]
    serve = [len(at) for at in at_levels if any(_occupied(process).point >= HALF for process in at)]
    mean = sum(_occupied(process).point for process in processes) / max([len(processes), *serve])
    before = waits_of(curve.steps[place - 1], probe.label, curve) if place > 0 else None
    return BusyLoops(
        curve=curve,
        step=step,
        probe=probe,
        costliest=costliest,
        processes=tuple(processes),
        occupied=occupied,
        met=min(occupied.point, mean),
        work_s=curve.work.point,
        waits=waits_of(step, probe.label, curve),
        passes_before=before.passes if isinstance(before, Waiting) else None,
    )


def _occupied(process: ProcessWatch) -> Interval:
    """Return the cores that compute or wait for a core: the time for which a probe meets a busy loop."""
    occupied = process.occupied
    if not isinstance(occupied, Estimate):
        return Interval(0.0, None, None, 0.0, "not measured")
    # Counters of CPU and of waiting are read one after the other: together they may pass the clock.
    low, high = (None if end is None else min(1.0, end) for end in (occupied.low, occupied.high))
    return replace(figures.known(occupied), point=min(1.0, occupied.point), low=low, high=high)


def place_of(curve: Curve) -> int | str:
    """Return the number of the highest step at which load and probe were answered, or what is missing."""
    if not curve.steps:
        return "no valid trial"
    if not any(step.probes for step in curve.steps):
        return "needs a probe: a thin stream of cheap requests next to the load"
    places = [i for i, step in enumerate(curve.steps) if probe_of(step) and step.longest_class()]
    if not places:
        return "no request of the load and no probe ended in the measured part: longer trials"
    return places[-1]


def probe_of(step: Step) -> ProbeWatch | None:
    """Return the probe that waits longest among those sent in time, or of late ones if there is no other."""
    usable = [p for p in step.probes if isinstance(p.response.mean, Estimate) and p.idle_s is not None]
    in_time = [p for p in usable if not p.is_late]
    return max(in_time or usable, key=lambda probe: figures.point(probe.response.mean), default=None)


def waits_of(step: Step, label: str, curve: Curve) -> Waiting | Insufficient:
    """Return how a probe and the costliest requests wait at a step, beyond the time each takes alone."""
    probe = next((probe for probe in step.probes if probe.label == label), None)
    costliest, first = costliest_class(curve, step), curve.steps[0]
    if probe is None or probe.idle_s is None or costliest is None:
        return Insufficient("the probe or the expensive requests were not measured")
    watched, expensive = (figures.interval_of(timed.response.mean) for timed in (probe, costliest))
    if isinstance(watched, Insufficient):
        return watched
    if isinstance(expensive, Insufficient):
        return expensive
    # At one user no other request is in the way.
    alone = [
        kind.response.mean for kind in first.classes if first.load == 1 and kind.label == curve.costliest
    ]
    alone_s = figures.point(alone[0]) if alone else 0.0
    return waiting(watched, probe.idle_s, expensive, alone_s or figures.point(curve.work))


def claim(facts: Facts, loops: BusyLoops) -> Claim:
    """Hold occupied processes against how the probe waits, and against threads, pauses and other programs."""
    curve, probe, occupied, count = loops.curve, loops.probe, loops.occupied, len(loops.processes)
    costliest, work = loops.costliest, with_unit(loops.work_s, "s")
    is_single, busiest = one_thread(loops.processes)
    many = f"each of {count} working processes" if count > 1 else "the working process"
    signals = [
        grading.at_least(
            "process.occupied",
            occupied,
            SATURATED,
            text=f"{many} is occupied {occupied.point:.2f} of the time"
            f"{ends(occupied.low, occupied.high, f'limit {SATURATED}')}",
            chip=f"process occupied {occupied.point:.2f}",
        ),
        grading.stated(
            "process.one-thread",
            is_single,
            text=busiest if is_single is None else f"{busiest} (limit {percent(MOST_OF_WORK)})",
            chip="one thread works" if is_single else "",
        ),
        grading.at_least(
            "work.cpu",
            curve.work,
            LEAST_WORK_S,
            text=f"{costliest.label} takes {numbers.shown(curve.work)} of CPU "
            f"(limit {with_unit(LEAST_WORK_S, 's')})",
            chip=f"{work} of CPU per request",
        ),
        _coupling_signal(loops),
        _delayed_signal(loops),
        *accepts_signal(curve, loops.step, count, loops.work_s),
    ]
    is_full, room = occupied.point >= SATURATED, f"CPU has room ({occupied.point:.2f})"
    full = f"the process has no CPU to spare ({occupied.point:.2f})"
    collector = grading.rival("pauses of a collector", "probes were not counted", None)
    if isinstance(probe.delayed, Estimate):
        text = f"{percent(probe.delayed.point)} of probes are held up, not a few"
        collector = grading.rival(collector.rival, text, probe.delayed.point > FEW_DELAYED)
    # A late load does not make a probe wait that was sent in time; it only cannot be excluded.
    generator = grading.left_open(grading.generator_rival(loops.step))
    if probe.is_late:
        generator = grading.rival("generator", "the probe itself was sent late", False)
    rivals = [
        grading.rival("full thread pool", full if is_full else room, is_full),
        grading.rival("lock downstream", "processes compute, they do not wait" if is_full else room, is_full),
        _threads_rival(loops, busiest, is_single),
        collector,
        generator,
        grading.shared_cores_rival(curve, loops.step, facts.cores),
        grading.interference_rival(loops.step, facts.cores),
    ]

    def words(grade: Grade) -> Words:
        mean, label = probe.response.mean, costliest.label
        mean_s = figures.point(mean)
        short = probe.label if len(probe.label) <= 16 else f"{probe.label[:14]}.."
        verb = "may block" if grade is Grade.SUSPECTED else "blocks"
        cores, ceiling = curve.cores_allotted, with_unit(curve.cores_allotted / loops.work_s, "1/s")
        effect = (
            f"one process can then use {cores:g} cores, at most {ceiling}; or run {cores:g} processes in "
            f"place of {count}."
            if count < cores
            else f"{probe.label} no longer waits for it; throughput stays at most {ceiling}, as "
            f"{plural(count, 'process uses', 'processes use')} the {cores:g} cores already."
        )
        return Words(
            statement=f"{grading.short_label(label)} {verb} the event loop: {_rate(loops)} per process, "
            f"{short} takes {numbers.short(mean)}",
            explanation=_explanation(loops),
            advice=f"Move the work of {label} off the loop (thread or process pool): {effect}"
            f"{opened_connections.advice(curve)}",
            confirm="twice the processes: throughput doubles while cores are free, and probes wait less; "
            "or the work in threads: probes no longer wait for it",
            impact=1 - (probe.idle_s or 0.0) / mean_s,
            unknown=_unknown(loops),
        )

    return on_curve(curve, signals, rivals, words)


def _coupling_signal(loops: BusyLoops) -> grading.Signal:
    waits, name = loops.waits, "probe.coupling"
    if isinstance(waits, Insufficient):
        return grading.at_least(name, waits, COUPLED, text="wait of the probe over that of the load")
    ratio = waits.coupling
    return grading.at_least(
        name,
        ratio,
        COUPLED,
        text=f"{loops.probe.label} waits {with_unit(waits.probe_s, 's')}, {ratio.point:.2f} of what "
        f"{loops.costliest.label} waits{ends(ratio.low, ratio.high, f'limit {COUPLED}')}",
        chip=f"probe waits {ratio.point:.2f} as long",
    )


def _delayed_signal(loops: BusyLoops) -> grading.Signal:
    """Compare the share of probes held up with the occupation that the kernel counts."""
    delayed, occupied = loops.probe.delayed, loops.met
    if not isinstance(delayed, Estimate):
        return grading.at_least("probe.delayed", delayed, 0.0, text="share of probes held up")
    # Waiting probes keep the loop busy a little longer: a share above the occupation does not contradict it.
    return grading.stated(
        "probe.delayed",
        occupied - delayed.point <= DELAY_TOLERANCE,
        text=f"{percent(delayed.point)} of probes are held up{ends(delayed.low, delayed.high)}, the process "
        f"is occupied {percent(occupied)} of the time (within {DELAY_TOLERANCE})",
        chip=f"{percent(delayed.point)} of probes late",
        value=delayed,
        threshold=occupied - DELAY_TOLERANCE,
    )


def _threads_rival(loops: BusyLoops, busiest: str, is_single: bool | None) -> Counter:
    """Weigh several threads in a process: they share the work, or together they want more than one core."""
    name = "threads that share a core"
    wanted = max(figures.point(process.occupied) for process in loops.processes)
    if wanted > ONE_THREAD:
        return grading.rival(name, f"the threads of one process want {wanted:.1f} cores", False)
    return grading.rival(name, busiest, is_single)


def _rate(loops: BusyLoops) -> str:
    """Return expensive requests per second and process: of the capacity, or else of what was reached."""
    counted = {kind.label: kind.rate.point for kind in loops.step.classes if isinstance(kind.rate, Estimate)}
    total, trials = sum(counted.values()), loops.step.throughput_trials
    share = counted.get(loops.costliest.label, 0.0) / total / len(loops.processes) if total else 0.0
    capacity = capacity_of(loops.curve)
    if isinstance(capacity, Capacity) and capacity.saturation.verdict != "underdriven":
        most = most_of(loops.curve, capacity)
        if isinstance(most.figure, Estimate):
            return most.part(share).words
    return with_unit(sum(trials) / len(trials) * share, "1/s")


def _explanation(loops: BusyLoops) -> str:
    probe, first, curve = loops.probe, loops.curve.steps[0], loops.curve
    light = next((other for other in first.probes if other.label == probe.label), None)
    mean, at = numbers.shown(probe.response.mean), load_text.load_with_unit(curve, loops.step)
    times = f"{probe_in_words(probe.label, probe.request)} takes {mean} at {at}"
    if light is not None and first is not loops.step:
        times += f", {numbers.short(light.response.mean)} at {first.load:g}"
    if probe.idle_s is not None:
        times += f", {with_unit(probe.idle_s, 's')} when nothing is in its way"
    work = with_unit(loops.work_s, "s")
    label = loops.costliest.label
    text = f"While a process computes for {work} on one {label}, it answers nothing else: {times}."
    capacity = capacity_of(curve)
    if isinstance(capacity, Capacity) and capacity.saturation.verdict != "underdriven":
        knee = capacity.saturation.knee
        if knee is not None:  # users per process from which on requests queue: N* / k = X (R1 + Z) / k
            alone = f"{with_unit(capacity.alone_s or 0.0, 's')} "
            alone += "alone" if capacity.alone_is_measured else "of CPU"
            text += (
                f" From {users(knee / len(loops.processes))} per process on they queue (throughput x "
                f"({alone} + {with_unit(curve.think_s, 's')} of thinking))."
            )
    if loops.step.server_cores >= SATURATED * curve.cores_allotted:
        text += (
            f" The {curve.cores_allotted:g} cores are full as well ({loops.step.server_cores:.2f} used), "
            "so more processes bring no more requests."
        )
    return text


def _unknown(loops: BusyLoops) -> tuple[str, ...]:
    unknown = []
    waits, before = loops.waits, loops.passes_before
    if isinstance(waits, Waiting) and SEVERAL_PASSES < waits.passes.point < math.inf:
        low, high = waits.passes.low, waits.passes.high
        text = f"{loops.costliest.label} seems to queue {waits.passes.point:.1f} times per request"
        if low is not None and high is not None:
            text += f" ({low:.1f}–{high:.1f})"
        if before is not None and before.point < math.inf:
            text += f", {before.point:.1f} at the level before"
        unknown.append(f"{text}: each await behind blocking work waits again")
    if not loops.probe.fresh_connections:
        unknown.append("the probe keeps its connection: it sees one process only")
    return tuple(unknown)


def _clearest(pairs: Sequence[tuple[BusyLoops, Finding]]) -> Finding:
    """Return the finding with the fewest processes: nothing else competes for the cores."""
    loops, best = max(pairs, key=lambda pair: (pair[1].grade, -len(pair[0].processes), pair[1].impact))
    curves = tuple(seen.curve.label for seen, _ in pairs)
    return replace(best, scope=f"{loops.costliest.request} · {', '.join(curves)}", curves=curves)


_silence = objecting(claim, lambda loops: loops.occupied.point)
assess = assessing(ID, TITLE, observe, claim, choose=_clearest, silence=_silence)
