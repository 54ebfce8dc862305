"""One request's CPU work holds up everything else in its process.

**Means.** A process works on one thread and does not let go of it while it computes. Every other request of
that process, however cheap, waits until the computation ends. One process answers at most 1 / D of the
expensive requests per second, D being their CPU time, and from (D + Z) / D users per process on they queue.

**Needs.** At the highest load: each working process is occupied (computing, or waiting for a core) at least
85 % of the time, on one hot thread, beside which others do less than a fifth of its work; an expensive
request takes at least 2 ms of CPU; probes on connections of their own are held up for as long as that
occupation says, within 0.1 (a probe that arrives at random sees the utilisation: PASTA), and their mean wait
is at least a quarter of what expensive requests wait.

**Ruled out by.** A thread pool that is full (then the CPU has room). Threads that the kernel switches (then
several are hot, or together they want more than one core, and probes wait a tenth as long). Pauses such as
garbage collection (they hold up few probes). A lock in a database (CPU has room). The generator being late.
Generator, service or other programs taking cores from each other.

**Thresholds.** Waits of probes over waits of expensive requests were 1.0, 0.5, 0.33 for one queue that is
passed once, twice, three times, 0.09 for threads that share a core fairly, and 0 where nothing is shared:
0.25 stands between. Below 2 ms of work one queue and fair sharing look the same, as the kernel's time slices
are as long. 0.85: at that utilisation a queue takes 6.7 times its idle time. A thread computes or waits for a
core, so one alone wants no more than 1; 1.25 leaves room for two counters that are read one after the other.
A fifth: collectors and compilers of a runtime stay below where the loop itself is the limit, and of threads
that share the work the second does nearly what the first does.

**Do.** Move the work off the loop (a thread or process pool), or run more processes, up to the cores. With
the work in threads one process can use all cores: capacity min(cores, threads) / D.

**Confirm.** Twice the processes: twice the throughput while cores are free, and probes wait less. Or the
work in threads: probes stop waiting for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.probes import Waiting, waiting
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, dearest, working
from loadlens.model.facts import Curve, Facts, ProbeWatch, ProcessWatch, RequestClass, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import load_text, numbers, words

ID = "eventloop.blocked"
TITLE = "a request's CPU work holds up its whole process"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "loop.multipass", "hol.correlation")

OCCUPIED = 0.85
LEAST_WORK_S = 0.002
COUPLED = 0.25
DELAY_TOLERANCE = 0.10
ONE_THREAD = 1.25  # cores that one thread may seem to want, as two counters are read
HELPER = 0.2  # of the CPU of the busiest thread: a collector or a compiler of the runtime, beside the loop
HALF = 0.5  # occupied: below, a process that only supervises would seem to serve
FEW_DELAYED = 0.5  # pauses of a collector that hold up more than half of the probes are not pauses


@dataclass(frozen=True, slots=True)
class Look:
    """What one curve shows at its highest load."""

    curve: Curve
    step: Step
    probe: ProbeWatch
    dear: RequestClass
    processes: tuple[ProcessWatch, ...]
    occupied: Interval  # cores computing or waiting for a core, least of the working processes
    met: float  # share of the time for which a probe meets a process that is occupied
    work_s: float
    waits: Waiting | Insufficient
    passes_before: Interval | None  # the same at the next lower load


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every curve with a probe; the clearest speaks for all."""
    by_length = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    looks, lacks = grading.parted(_look(curve) for curve in by_length)
    if not looks:
        return NotAssessed(ID, TITLE, lacks[0] if lacks else "no load curve")
    findings = [(look, f) for look in looks if (f := _finding(facts, look)) is not None]
    if not findings:
        fullest = max(looks, key=lambda look: look.occupied.point)
        return Absent(ID, TITLE, _silence(facts, fullest))
    # The fewest processes show it best: nothing else competes for the cores.
    best = max(findings, key=lambda pair: (pair[1].grade, -len(pair[0].processes), pair[1].impact))
    curves = tuple(look.curve.label for look, _ in findings)
    scope = f"{best[0].dear.request} · {', '.join(curves)}"
    return replace(best[1], scope=scope, curves=curves)


def _look(curve: Curve) -> Look | str:
    """What the highest step shows, or the signal that is missing."""
    place = place_of(curve)
    if isinstance(place, str):
        return place
    step = curve.steps[place]
    probe = probe_of(step)
    assert probe is not None  # such a step was looked for
    processes = working(step)
    if not processes or not isinstance(processes[0].cpu, Estimate):
        return "needs the CPU of the service's processes: watch them with pid or start"
    if not isinstance(curve.work, Estimate):
        return f"the CPU time of one request is not known: {curve.work.reason}"
    dear = dearest(curve, step)
    if dear is None:
        return "no request was answered at the highest load"
    occupied = min((_occupied(p) for p in processes), key=lambda interval: interval.point)
    before = waits_of(curve.steps[place - 1], probe.label, curve) if place > 0 else None
    return Look(
        curve=curve,
        step=step,
        probe=probe,
        dear=dear,
        processes=tuple(processes),
        occupied=occupied,
        met=min(occupied.point, _met(curve, processes)),
        work_s=curve.work.point,
        waits=waits_of(step, probe.label, curve),
        passes_before=before.passes if isinstance(before, Waiting) else None,
    )


def _met(curve: Curve, processes: list[ProcessWatch]) -> float:
    """Mean occupation of all processes that serve; one that works at another level may have no load here."""
    at_levels = [working(step) for step in curve.steps]
    serve = [len(found) for found in at_levels if any(_occupied(p).point >= HALF for p in found)]
    return sum(_occupied(p).point for p in processes) / max([len(processes), *serve])


def place_of(curve: Curve) -> int | str:
    """The number of the highest step at which load and probe were answered, or what is missing."""
    if not curve.steps:
        return "no valid trial"
    if not any(step.probes for step in curve.steps):
        return "needs a probe: a thin stream of cheap requests beside the load"
    place = max(
        (i for i, step in enumerate(curve.steps) if probe_of(step) and step.longest_class()), default=None
    )
    if place is None:
        return "no request of the load and no probe ended in the measured part: longer trials"
    return place


def probe_of(step: Step) -> ProbeWatch | None:
    """The probe that waits longest among those that were sent in time; of late ones if there is no other."""
    usable = [p for p in step.probes if isinstance(p.response.mean, Estimate) and p.idle_s is not None]
    in_time = [p for p in usable if not p.is_late]
    return max(in_time or usable, key=lambda probe: figures.point(probe.response.mean), default=None)


def waits_of(step: Step, label: str, curve: Curve) -> Waiting | Insufficient:
    """How a probe and the dearest requests wait at a step, beyond what each takes alone."""
    probe = next((p for p in step.probes if p.label == label), None)
    dear = dearest(curve, step)
    if probe is None or probe.idle_s is None or dear is None:
        return Insufficient("the probe or the expensive requests were not measured")
    watched, expensive = figures.interval_of(probe.response.mean), figures.interval_of(dear.response.mean)
    if isinstance(watched, Insufficient):
        return watched
    if isinstance(expensive, Insufficient):
        return expensive
    work = figures.point(curve.work)
    return waiting(watched, probe.idle_s, expensive, _alone(curve) or work)


def _alone(curve: Curve) -> float | None:
    """Response time of the dearest class at one user, if that was run."""
    first = curve.steps[0]
    if first.load != 1:
        return None
    dear = next((c for c in first.classes if c.label == curve.dearest), None)
    if dear is None or not isinstance(dear.response.mean, Estimate):
        return None
    return dear.response.mean.point


def _finding(facts: Facts, look: Look) -> Finding | None:
    signals, rivals = _signals(look), _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(look.curve))
    if grade is None:
        return None
    mean = figures.point(look.probe.response.mean)
    idle = look.probe.idle_s or 0.0
    return Finding(
        rule=ID,
        grade=grade,
        impact=max(0.0, 1 - idle / mean),
        scope=look.curve.label,
        statement=grading.statement(_statement(look, grade)),
        explanation=_explanation(facts, look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(facts, look),
        confirm="twice the processes: throughput doubles while cores are free, and probes wait less; "
        "or the work in threads: probes no longer wait for it",
        unknown=_unknown(look),
        curves=(look.curve.label,),
    )


def _signals(look: Look) -> list[grading.Signal]:
    many = (
        f"each of {len(look.processes)} working processes"
        if len(look.processes) > 1
        else "the working process"
    )
    occupied, hot = look.occupied, [p.hot_threads for p in look.processes]
    single = [_is_single(p) for p in look.processes]
    threads = None if None in single else all(single)
    return [
        grading.at_least(
            "process.occupied",
            occupied,
            OCCUPIED,
            text=f"{many} is occupied {occupied.point:.2f} of the time"
            f"{numbers.ends(occupied.low, occupied.high, f'limit {OCCUPIED}')}",
            chip=f"process occupied {occupied.point:.2f}",
        ),
        grading.stated(
            "process.hot-threads",
            threads,
            text="threads were not read"
            if threads is None
            else f"hot threads a process: {_listed(hot)}{_helped(look)}, needs 1",
            chip="one hot thread" if threads else "",
        ),
        grading.at_least(
            "work.cpu",
            look.curve.work,
            LEAST_WORK_S,
            text=f"{look.dear.label} takes {numbers.shown(look.curve.work)} of CPU "
            f"(limit {numbers.with_unit(LEAST_WORK_S, 's')})",
            chip=f"{numbers.with_unit(look.work_s, 's')} of CPU a request",
        ),
        _coupling_signal(look),
        _delayed_signal(look),
    ]


def _coupling_signal(look: Look) -> grading.Signal:
    waits = look.waits
    if isinstance(waits, Insufficient):
        return grading.at_least(
            "probe.coupling", waits, COUPLED, text="wait of the probe over that of the load"
        )
    return grading.at_least(
        "probe.coupling",
        waits.coupling,
        COUPLED,
        text=f"{look.probe.label} waits {numbers.with_unit(waits.probe_s, 's')}, "
        f"{waits.coupling.point:.2f} of what {look.dear.label} waits"
        f"{numbers.ends(waits.coupling.low, waits.coupling.high, f'limit {COUPLED}')}",
        chip=f"probe waits {waits.coupling.point:.2f} as long",
    )


def _delayed_signal(look: Look) -> grading.Signal:
    """The share of probes held up must be the occupation that the kernel counts."""
    delayed = look.probe.delayed
    if not isinstance(delayed, Estimate):
        return grading.at_least("probe.delayed", delayed, 0.0, text="share of probes held up")
    occupied = look.met
    # Waiting probes keep the loop busy a little longer: a share above the occupation does not contradict it.
    short_of = occupied - delayed.point
    text = (
        f"{numbers.percent(delayed.point)} of probes are held up"
        f"{numbers.ends(delayed.low, delayed.high)}, the process is occupied "
        f"{numbers.percent(occupied)} of the time (within {DELAY_TOLERANCE})"
    )
    signal = grading.stated(
        "probe.delayed",
        short_of <= DELAY_TOLERANCE,
        text=text,
        chip=f"{numbers.percent(delayed.point)} of probes late",
    )
    return replace(
        signal,
        evidence=replace(
            signal.evidence,
            value=delayed.point,
            low=delayed.low,
            high=delayed.high,
            threshold=occupied - DELAY_TOLERANCE,
        ),
    )


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    occupied = look.occupied.point
    delayed = look.probe.delayed
    share = delayed.point if isinstance(delayed, Estimate) else None
    full = occupied >= OCCUPIED
    return [
        grading.rival(
            "full thread pool",
            f"the process has no CPU to spare ({occupied:.2f})" if full else f"CPU has room ({occupied:.2f})",
            full,
        ),
        grading.rival(
            "lock downstream",
            "processes compute, they do not wait" if full else f"CPU has room ({occupied:.2f})",
            full,
        ),
        _threads(look),
        grading.rival(
            "pauses of a collector",
            "probes were not counted"
            if share is None
            else f"{numbers.percent(share)} of probes are held up, not a few",
            None if share is None else share > FEW_DELAYED,
        ),
        _generator_rival(look),
        grading.shared_cores_rival(look.curve, look.step, facts.cores),
        grading.interference_rival(look.step, facts.cores),
    ]


def _threads(look: Look) -> Counter:
    """Several threads in a process: several are hot, or together they want more than one core."""
    name = "threads that share a core"
    hot = [p.hot_threads for p in look.processes]
    wanted = max(_known(p.occupied).point for p in look.processes)
    if wanted > ONE_THREAD:
        return grading.rival(name, f"the threads of one process want {wanted:.1f} cores", False)
    if None in hot:
        return grading.rival(name, "threads were not read", None)
    text = f"hot threads a process: {_listed(hot)}{_helped(look)}"
    return grading.rival(name, text, all(_is_single(p) for p in look.processes))


def _is_single(process: ProcessWatch) -> bool | None:
    """Whether one thread does the work, alone or with helpers that do little beside it; none: not read."""
    if process.hot_threads is None:
        return None
    helped = process.second_thread is not None and process.second_thread < HELPER
    return process.hot_threads == 1 or (process.hot_threads > 1 and helped)


def _helped(look: Look) -> str:
    """What the second thread does, where there is more than one that is hot."""
    known = [p.second_thread for p in look.processes if p.second_thread is not None]
    several = any((p.hot_threads or 0) > 1 for p in look.processes)
    if not several or len(known) < len(look.processes):
        return ""
    return f" (the second does {numbers.percent(max(known))} of the first, limit {numbers.percent(HELPER)})"


def _generator_rival(look: Look) -> Counter:
    found = grading.generator_rival(look.step)
    if look.probe.is_late:
        return grading.rival("generator", "the probe itself was sent late", False)
    # A late load does not make a probe wait that was sent in time; it only cannot be excluded.
    return grading.left_open(found)


def _statement(look: Look, grade: Grade) -> str:
    each = numbers.with_unit(_rate(look) / len(look.processes), "1/s")
    wait = numbers.with_unit(figures.point(look.probe.response.mean), "s")
    label = grading.short_label(look.dear.label)
    probe = look.probe.label if len(look.probe.label) <= 16 else f"{look.probe.label[:14]}.."
    blocks = "may block" if grade is Grade.SUSPECTED else "blocks"
    return f"{label} {blocks} the event loop: {each} a process, {probe} takes {wait}"


def _rate(look: Look) -> float:
    """Expensive requests per second: their share of all, times the rate that edges do not cut."""
    counted = {c.label: c.rate.point for c in look.step.classes if isinstance(c.rate, Estimate)}
    total = sum(counted.values())
    trials = look.step.throughput_trials
    return sum(trials) / len(trials) * counted.get(look.dear.label, 0.0) / total if total else 0.0


def _explanation(facts: Facts, look: Look) -> str:
    work, probe = numbers.with_unit(look.work_s, "s"), look.probe
    first, at = look.curve.steps[0], load_text.load_with_unit(look.curve, look.step)
    light = next((p for p in first.probes if p.label == probe.label), None)
    paid = f"{probe.request} takes {numbers.shown(probe.response.mean)} at {at}"
    if light is not None and first is not look.step:
        paid += f", {numbers.short(light.response.mean)} at {first.load:g}"
    if probe.idle_s is not None:
        paid += f", {numbers.with_unit(probe.idle_s, 's')} when nothing is in its way"
    parts = [
        f"While a process computes for {work} on one {look.dear.label}, it answers nothing else: {paid}."
    ]
    knee = _knee_of(look)
    if knee is not None:
        parts.append(knee)
    if look.step.server_cores >= OCCUPIED * look.curve.cores_allotted:
        parts.append(
            f"The {look.curve.cores_allotted:g} cores are full as well ({look.step.server_cores:.2f} used), "
            "so more processes bring no more requests."
        )
    return " ".join(parts)


def _knee_of(look: Look) -> str | None:
    """From how many users a process on requests queue: N* / k = X (R1 + Z) / k."""
    capacity = capacity_of(look.curve)
    if not isinstance(capacity, Capacity) or capacity.saturation.knee is None:
        return None
    if capacity.saturation.verdict == "underdriven":
        return None
    each = capacity.saturation.knee / len(look.processes)
    text = f"From {words.users(each)} a process on they queue"
    alone = capacity.alone_s or 0.0
    how = "alone" if capacity.alone_is_measured else "of CPU"
    return (
        f"{text} (throughput x ({numbers.with_unit(alone, 's')} {how} + "
        f"{numbers.with_unit(look.curve.think_s, 's')} of thinking))."
    )


def _advice(facts: Facts, look: Look) -> str:
    cores, processes = look.curve.cores_allotted, len(look.processes)
    ceiling = numbers.with_unit(cores / look.work_s, "1/s")
    off = f"Move the work of {look.dear.label} off the loop (thread or process pool)"
    if processes < cores:
        return (
            f"{off}: one process can then use {cores:g} cores, at most {ceiling}; "
            f"or run {cores:g} processes in place of {processes}."
        )
    return (
        f"{off}: {look.probe.label} no longer waits for it; throughput stays at most {ceiling}, "
        f"as {processes} processes already use the {cores:g} cores."
    )


def _unknown(look: Look) -> tuple[str, ...]:
    found = []
    if isinstance(look.waits, Waiting) and 1.25 < look.waits.passes.point < math.inf:
        low, high = look.waits.passes.low, look.waits.passes.high
        text = f"{look.dear.label} seems to queue {look.waits.passes.point:.1f} times a request"
        if low is not None and high is not None:
            text += f" ({low:.1f}–{high:.1f})"
        if look.passes_before is not None and look.passes_before.point < math.inf:
            text += f", {look.passes_before.point:.1f} at the level before"
        found.append(f"{text}: each await behind blocking work waits again")
    if not look.probe.fresh_connections:
        found.append("the probe keeps its connection: it sees one process only")
    return tuple(found)


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.curve.label, _signals(look), _rivals(facts, look))


def _occupied(process: ProcessWatch) -> Interval:
    """Computing and waiting for a core: what the loop is taken up by, as a probe sees it."""
    found = _known(process.occupied)
    # Counters of CPU and of waiting are read one after the other: together they may pass the clock.
    return replace(
        found,
        point=min(1.0, found.point),
        low=None if found.low is None else min(1.0, found.low),
        high=None if found.high is None else min(1.0, found.high),
    )


def _known(figure: object) -> Interval:
    if isinstance(figure, Estimate):
        return Interval(figure.point, figure.low, figure.high, float(figure.samples), figure.method)
    return Interval(0.0, None, None, 0.0, "not measured")


def _listed(counts: list[int | None]) -> str:
    return ", ".join("?" if count is None else str(count) for count in counts)
