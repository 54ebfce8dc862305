"""Each process of the service computes on one core at a time, and that core is full.

**Means.** A runtime with one thread, an interpreter with a global lock, or a lock around the computing lets
one thread of a process compute at a time. Such a process answers at most 1 / D requests per second, D being
the CPU time of one request, whatever cores the machine has. More threads only wait for their turn.

**Needs.** A plateau. At the highest load every working process uses between 85 % and 125 % of one core, while
computing and waiting for a core leave at least 15 % of the cores that the service may use; or all programs
together do, and it uses 90 %: threads that hand their turn over wait for a core each time, though cores are
idle. Where one thread does more of the work than all others of the only process, which help it, its own use
of a core counts, and for the 90 % the time that it waits for one, too. The CPU time of one request, from all
levels together, times the plateau accounts for one core per process, within what 85 % leaves, or within its
interval. At the level of the plateau before, the processes used as much, within a tenth: more users brought
no more computing. Of several processes one may be full alone, if it uses 90 % of a core at two levels of the
plateau or more: the others wait for what it does, and its CPU time of a request comes from the level before.

**Ruled out by.** A blocked event loop, which is the same with a line for every request, however cheap. Full
cores. A quota or a CPU set of one core for each process. Refusals: the core is then busy refusing. A
full machine, other programs or a late generator leave it probable; so do several threads that share the work:
they may wait for something else, and use as much as a core by chance.

**Thresholds.** 0.85: see `cpu.saturated`. 125 %: collectors and compilers of a runtime compute alongside the
one thread; where they use more, its threads are distinguished. A tenth: twice the users change the use of a
full core by the noise of the kernel's counters, 3 %, and that of threads with cores of their own by far more.

**Do.** Run more processes, one for each core; or do the computing where the runtime uses several cores.

**Confirm.** Twice the processes: twice the throughput, as long as cores are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.capacity import most_of
from loadlens.diagnose.driver import (
    Answer,
    Claim,
    Lacking,
    Words,
    all_seen,
    assessing_after,
    objecting,
    on_curve,
    strongest,
)
from loadlens.diagnose.observe import opened_connections, waits
from loadlens.diagnose.observe.curve_signals import one_thread, plateau_signal
from loadlens.diagnose.rules.processor import eventloop_blocked
from loadlens.estimate.demand import RULED_OUT, Bound, Resource, bounds
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, completed, cores_of, waiting_share, working
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import Curve, Facts, ProcessWatch, Step
from loadlens.model.finding import Counter, Estimate, Figure, Finding, Grade, NotMeasured, Setting
from loadlens.present import numbers
from loadlens.present.numbers import ends, percent, with_unit
from loadlens.present.words import plural

ID = "cpu.one-core"
TITLE = "each process computes on one core at a time"
EXPLAINS: tuple[str, ...] = ("saturation.plateau", "hol.correlation", "outside.handler-wait")

ONE_CORE = 1.25  # cores that one thread and the helpers of its runtime may seem to want
FULL_ALONE = 0.9  # of a core, at each level of the plateau, next to processes that have time
MOST_WORK = 0.5  # of a process, by one thread: the others together do less
ALIKE = 0.10  # of the occupation at another level of the plateau


@dataclass(frozen=True, slots=True)
class OneCore:
    """The working processes of one curve at its highest undisturbed load."""

    curve: Curve
    capacity: Capacity
    step: Step
    processes: tuple[ProcessWatch, ...]
    least: Interval  # cores used by the process that uses the least
    most: float
    cores: float  # that the service may use
    work: Figure  # CPU seconds of a request in these processes
    bound: Bound | None  # throughput with one core for each process; none: not known
    before: float | None  # the least used at the level of the plateau before, cores
    loop: Grade | None  # of a blocked event loop that was found on it
    others: int = 0  # working processes that have time
    helpers: float = 0.0  # cores that the other threads of the process use: the least is its busiest thread's

    @property
    def used(self) -> float:
        """Cores that the service wants in all."""
        return sum(
            process.occupied.point if isinstance(process.occupied, Estimate) else process.cores
            for process in self.step.processes
        )

    @property
    def wanted(self) -> float:
        """Cores that a thread with helpers used or waited for; 0 where it is not one."""
        return (self.processes[0].busiest_occupied or 0.0) if self.helpers else 0.0

    @property
    def left(self) -> float:
        """Cores that it does not compute on."""
        return max(0.0, self.cores - sum(process.cores for process in self.step.processes))


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[OneCore] | Lacking:
    """Return every closed curve whose processes were read, the longest first."""
    loops = {
        label: other.grade
        for other in others
        if isinstance(other, Finding) and other.rule == eventloop_blocked.ID
        for label in other.curves
    }
    longest = sorted(facts.curves, key=lambda curve: -len(curve.steps))
    return all_seen(_seen(curve, loops.get(curve.label)) for curve in longest)


def _seen(curve: Curve, loop: Grade | None) -> OneCore | str:
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return capacity.reason
    top = capacity.undisturbed
    processes = working(top)
    if not processes or not isinstance(processes[0].cpu, Estimate):
        return "needs the CPU of the service's processes: watch them with pid or start"
    work, others, helpers = curve.work_all, 0, 0.0
    alone, thread = _alone(curve, capacity, processes), _busiest_thread(processes)
    if alone is not None:
        others, processes, work = (
            len(processes) - 1,
            [alone],
            _work_of_busiest(curve, capacity, alone.program),
        )
    elif thread is not None:
        helpers, processes = processes[0].cores - thread.cores, [thread]
        work = _work_of_busiest(curve, capacity, thread.program, is_thread=True)
    bound = None
    if isinstance(work, Estimate) and top.completed_trials:
        # Threads that take turns may do less the more they are, with the same core full.
        plateau_from = capacity.saturation.plateau_from
        full = [s for s in curve.steps if plateau_from <= s.load <= top.load and s.completed_trials]
        rate = max(completed(step) for step in (*full, top))
        plateau = Interval(rate, rate, rate, 0.0, "completions at that load")
        cores = Resource("one core each", float(len(processes)), figures.known(work))
        bound = next(iter(bounds([cores], plateau)), None)
    used = [figures.known(process.cpu) for process in processes if isinstance(process.cpu, Estimate)]
    return OneCore(
        curve=curve,
        capacity=capacity,
        step=top,
        processes=tuple(processes),
        least=min(used, key=lambda interval: interval.point),
        most=max(interval.point for interval in used),
        cores=cores_of(curve, top),
        work=work,
        bound=bound,
        before=_before(curve, capacity, is_alone=alone is not None, is_thread=thread is not None),
        loop=loop,
        others=others,
        helpers=helpers,
    )


def _alone(curve: Curve, capacity: Capacity, processes: Sequence[ProcessWatch]) -> ProcessWatch | None:
    """Return the only one of several processes that is full on the whole plateau: the others wait for it."""
    levels = [working(s) for s in curve.steps if s.load >= capacity.saturation.plateau_from]
    full = [[p.cores for p in each if p.cores >= SATURATED] for each in levels]
    if (
        len(processes) < 2
        or len(levels) < 2
        or any(len(cores) != 1 or cores[0] < FULL_ALONE for cores in full)
    ):
        return None
    return max(processes, key=lambda process: process.cores)


def _busiest_thread(processes: Sequence[ProcessWatch]) -> ProcessWatch | None:
    """Return the only process as if its busiest thread were all of it; none: no helpers compute as well."""
    (process, *others) = processes
    share = process.busiest_thread
    if others or share is None or share <= MOST_WORK or process.cores <= ONE_CORE:
        return None
    return replace(process, cpu=figures.scaled(process.cpu, share))


def _work_of_busiest(curve: Curve, capacity: Capacity, program: str, *, is_thread: bool = False) -> Figure:
    """Return the CPU time of a request in the busiest process or thread, at the level before the plateau.

    Lower levels have more of what a process does without requests.
    """
    levels = [s for s in curve.steps if s.load < capacity.saturation.plateau_from and s.completed_trials]
    same = [p for p in working(levels[-1]) if p.program == program] if levels else []
    used = max((_counted(p, is_thread=is_thread) for p in same), default=0.0)
    rate = completed(levels[-1]) if levels else 0.0
    if not used or not rate:
        return NotMeasured("cpu.per-request", "no level before the plateau shows it")
    return Estimate("cpu.per-request", "s", used / rate, None, None, 1, 0, "CPU over answers")


def _counted(process: ProcessWatch, *, is_thread: bool) -> float:
    """Return the cores of a process, or of its busiest thread."""
    return process.cores * ((process.busiest_thread or 0.0) if is_thread else 1.0)


def _before(curve: Curve, capacity: Capacity, *, is_alone: bool, is_thread: bool) -> float | None:
    """Return the cores of what counts at the level of the plateau before the highest."""
    lower = [
        step
        for step in curve.steps
        if capacity.saturation.plateau_from <= step.load < capacity.undisturbed.load and working(step)
    ]
    used = [_counted(process, is_thread=is_thread) for process in working(lower[-1])] if lower else []
    return max(used, default=None) if is_alone else min(used, default=None)


def claim(facts: Facts, seen: OneCore) -> Claim:
    """Hold the processes against one core each, the work of a request, and what else fills a core."""
    curve, step, count = seen.curve, seen.step, len(seen.processes)
    each = "the working process" if count == 1 else f"each of {count} working processes"
    if seen.helpers:
        each = "the busiest thread"
    is_one = seen.most <= ONE_CORE
    signals = [
        plateau_signal(seen.capacity.saturation),
        grading.at_least(
            "process.cpu",
            seen.least,
            SATURATED,
            text=f"{each} uses {seen.least.point:.2f} cores"
            f"{ends(seen.least.low, seen.least.high, f'limit {SATURATED}')}",
            chip=f"one core {percent(min(1.0, seen.least.point))} used",
        ),
        grading.stated(
            "process.cores",
            is_one,
            text=_cores_text(seen, is_one),
        ),
        _free(seen, facts.cores),
        _work(seen),
    ]
    rivals = [
        _loop(seen),
        _steady(seen),
        _turns(seen),
        *_uneven(seen),
        waits.refusals_rival(curve, step),
        waits.machine_rival(facts, curve, step),
        grading.left_open(grading.generator_rival(step)),
        grading.interference_rival(step, facts.cores),
    ]

    def words(grade: Grade) -> Words:
        rate = most_of(curve, seen.capacity).words
        verb = "may compute" if grade is Grade.SUSPECTED else "computes"
        who = "The process" if count == 1 else f"Each of {count} processes"
        if seen.others:
            who = f"One of {seen.others + 1} processes ({seen.processes[0].program})"
        fills = "that core is full" if count == 1 else "each core is full"
        statement = f"{who} {verb} on one core at a time, and {fills}: {rate}"
        if seen.helpers:
            verb = "may be" if grade is Grade.SUSPECTED else "is"
            statement = f"One thread does most of the work, and {verb} full: {rate}"
        advice = "Run more processes, one for each core"
        if isinstance(seen.work, Estimate) and seen.work.point > 0:
            work_s = seen.work.point
            advice += f": each brings {with_unit(1 / work_s, '1/s')}"
            if not seen.others:  # which compute as well
                whole_s = work_s * (1 + seen.helpers / seen.least.point)
                advice += f", {seen.cores:g} cores at most {with_unit(seen.cores / whole_s, '1/s')}"
        return Words(
            statement=statement,
            explanation=f"At {step.load:g} users {each} uses {seen.least.point:.2f} cores and "
            f"{seen.left:.1f} of {plural(round(seen.cores), 'core')} are free; "
            f"{percent(waiting_share(curve, seen.capacity))} of the response time is waiting.",
            advice=f"{advice}; or do the computing where the runtime uses several cores. More threads "
            f"bring nothing.{opened_connections.advice(curve)}",
            confirm="twice the processes: twice the throughput, as long as cores are free",
            impact=waiting_share(curve, seen.capacity),
            unknown=("whether the runtime or a lock of the service lets one thread compute at a time",),
            setting=Setting.exactly("processes", count),
        )

    return on_curve(curve, signals, rivals, words)


def _cores_text(seen: OneCore, is_one: bool) -> str:
    if seen.helpers:
        return f"it does most of its process's work: all other threads use {seen.helpers:.2f} cores"
    uses = "no process uses more than" if is_one else "one process uses"
    return f"{uses} {seen.most:.2f} cores (limit {ONE_CORE:g})"


def _free(seen: OneCore, machine_cores: int) -> grading.Signal:
    """Require idle cores: threads that hand their turn over wait for one each time, though it is free."""
    text = f"the service wants {seen.used:.2f} of {seen.cores:g} cores (limit {percent(SATURATED)})"
    is_free: bool | None = seen.used < SATURATED * seen.cores
    if not is_free and seen.cores == machine_cores and isinstance(seen.step.host_cpu, Estimate):
        busy = seen.step.host_cpu.point
        is_free = busy < SATURATED * machine_cores
        if is_free and max(seen.least.point, seen.wanted) < FULL_ALONE:
            is_free = None  # threads that want more cores than there are may wait for something else
        text += f", and all programs use {busy:.2f} (limit {percent(SATURATED)}, and {FULL_ALONE} of one)"
        if seen.wanted:
            text += f"; the thread wants {seen.wanted:.2f}"
    return grading.stated("cores.free", is_free, text=text, chip=f"{seen.left:.1f} cores free")


def _work(seen: OneCore) -> grading.Signal:
    """Require that the CPU time of a request fills one core for each process at this rate."""
    work, bound = seen.work, seen.bound
    if bound is None or not isinstance(work, Estimate) or work.point <= 0:
        text = f"the CPU time of one request is not known: {numbers.shown(work)}"
        return grading.stated("work.cpu", None, text=text)
    use = bound.utilisation
    is_near = SATURATED <= use <= 1 / SATURATED
    is_reached = bound.rate.low is not None and bound.rate.low <= use * bound.rate.point / SATURATED
    text = (
        f"{numbers.shown(work)} of CPU per request fill {plural(len(seen.processes), 'core')} at "
        f"{with_unit(bound.rate.point, '1/s')}, {with_unit(use * bound.rate.point, '1/s')} came out "
        f"(within {numbers.signed_percent(1 / SATURATED - 1)}"
        f"{', which the interval reaches' if is_reached and use < SATURATED else ''})"
    )
    is_far = not 1 / RULED_OUT <= use <= RULED_OUT
    signal = grading.stated(
        "work.cpu",
        False if is_far else True if is_near or (is_reached and use < SATURATED) else None,
        text=text,
        chip=f"{with_unit(work.point, 's')} of CPU per request",
        value=work,
    )
    return signal if is_near else replace(signal, is_clear=False)


def _loop(seen: OneCore) -> Counter:
    """Weigh a blocked event loop: it says more, as it holds up every request."""
    name = "event loop"
    if seen.loop is None:
        return grading.rival(name, "no blocked event loop was found", True)
    return grading.rival(name, f"{seen.loop.word}", None if seen.loop is Grade.SUSPECTED else False)


def _steady(seen: OneCore) -> Counter:
    """Weigh that more users would still bring more computing."""
    name, before = "cores that fill with more users", seen.before
    if before is None:
        return grading.rival(name, "one level of the plateau only", None)
    text = f"{before:.2f} cores at the level before, {seen.least.point:.2f} here"
    return grading.rival(name, text, True if abs(seen.least.point - before) <= ALIKE * before else None)


def _uneven(seen: OneCore) -> list[Counter]:
    """Leave it open that processes of one program have unequal shares of the same work."""
    if not seen.others:
        return []
    programs = [process.program for process in seen.step.processes]
    is_one_kind = programs.count(seen.processes[0].program) > 1
    text = "others of the same program have time" if is_one_kind else "no other process runs its program"
    return [grading.rival("work that is spread unevenly", text, None if is_one_kind else True)]


def _turns(seen: OneCore) -> Counter:
    """Leave it open that several threads compute for one core by chance, as they wait for something else."""
    is_single, text = one_thread(seen.processes)
    return grading.left_open(grading.rival("threads that wait for something else", text, is_single))


_silence = objecting(claim, lambda seen: seen.least.point)
assess_after = assessing_after(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
