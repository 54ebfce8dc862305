"""An event loop waits in a call, and everything else of its process waits with it.

**Means.** A process works on one thread, which should give way while a request waits for something. A call
that does not give way (a driver that is not asynchronous, a sleep, a file or name that is looked up) stops
this thread. Every other request of the process, however cheap, waits until the call returns. A process
answers at most 1 / S of these requests per second, S being the time of the call.

**Needs.** A plateau, CPU to spare, and samples of the threads at the highest load. The thread of a loop,
known by the library that runs it, is in a request at 70 % of the moments or more, and waits there at half of
them or more; or at 15 % or more, if it is in a request at 85 % of the moments. Other threads of the process
are at work less than one at a time. Where no code is read, the kernel shows loops as threads of one name that
wait for events of their own, or for a turn, without load; under load one of them does at 30 % of the moments
at most, and they are in calls that block, on other connections than a client's, or asleep. Where a cheap
probe was sent, it waits at least a quarter as long as the load.

**Ruled out by.** A machine, generator or transfer that is the limit. Refusals. Connections that wait to be
accepted at the median look, half as many as other users: a loop accepts them between two requests, a process
that serves one at a time does not. Without code: a thread of that name that still waits for events, as an
acceptor does in front of a pool; a runtime that adds threads; threads that wait for the same events at the
same moment, which are a pool.

**Thresholds.** 70 %: users that began together also wait elsewhere together, and the loop is free meanwhile:
32 users of 41 ms there and 250 ms elsewhere hold it for 84 %. Half: below, the loop computes more than it
waits, and has to be as full as a core that computes (85 %) to be the limit. 15 %: with less it computes at 85
% of the moments, and `eventloop.blocked` looks at that. A quarter: as for a loop that computes. One thread:
where more are at work the loop has handed the calls over, and they are the limit.

**Do.** Call an asynchronous version, or make the call on a pool of threads. Until then, run more processes:
each answers as many again, if what it calls does.

**Confirm.** Double the processes: throughput doubles. Or with the call in threads: probes stop waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import waits
from loadlens.diagnose.observe.curve_signals import accepts_signal
from loadlens.estimate.interval import Interval
from loadlens.measure.thresholds import LOOP_HELD, SATURATED
from loadlens.model.facts import Facts, LoopWatch
from loadlens.model.finding import Grade
from loadlens.present import numbers, words
from loadlens.present.numbers import about

ID = "eventloop.waits"
TITLE = "an event loop waits in a call"
EXPLAINS: tuple[str, ...] = (
    *("saturation.plateau", "threads.pool-limit", "downstream.serialised", "outside.handler-wait"),
    *("hol.correlation", "loop.multipass"),
)

COUPLED = 0.25
MOSTLY = 0.5
SOMETIMES = 0.15  # where the loop is full: it computes and waits in turn
OTHERS = 1.0  # threads at work next to the loop


@dataclass(frozen=True, slots=True)
class WaitingLoop:
    """The loops of a service that are in requests, on a plateau."""

    full: waits.Full
    loop: LoopWatch  # the least of those that are in requests as much as the limit says, else the most
    count: int  # so many there are
    compared: tuple[waits.Waits, ...] | str  # how probes and the load wait


def observe(facts: Facts) -> Sequence[WaitingLoop] | Lacking | Nothing:
    """Return the loop of every plateau whose threads were sampled."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    loops = [_of(full) for full in plateaus if full.top.loops]
    return loops or Lacking("needs samples of an event loop's thread: --pid, or stacks: on in a study")


def _of(full: waits.Full) -> WaitingLoop:
    by_held = sorted(full.top.loops, key=lambda loop: loop.held.point)
    held = [loop for loop in by_held if loop.held.point >= LOOP_HELD] or by_held[-1:]
    return WaitingLoop(full, held[0], sum(loop.count for loop in held), waits.waits(full))


def claim(facts: Facts, waiting: WaitingLoop) -> Claim:
    """Hold the loop's waiting against the CPU, other threads, and how a probe waits."""
    full, loop, compared = waiting.full, waiting.loop, waiting.compared
    mostly = MOSTLY if loop.held.point < SATURATED else SOMETIMES
    held, share = numbers.percent(loop.held.point), numbers.percent(loop.waiting.point)
    call = f"in {loop.call}" if loop.call else "in a call"
    count, is_one = waiting.count, waiting.count <= 1
    loops = "the event loop" if is_one else f"each of {count} event loops"
    signals = [
        waits.cpu_signal(facts, full.curve, full.top),
        grading.at_least(
            "loop.held",
            loop.held,
            LOOP_HELD,
            text=f"{loops} of {loop.process} is in a request at {held} of {loop.held.samples} moments "
            f"(limit {numbers.percent(LOOP_HELD)})",
            chip=f"loop taken {held}",
        ),
        grading.at_least(
            "loop.waiting",
            loop.waiting,
            mostly,
            text=f"it waits {call} at {share} of them (limit {numbers.percent(mostly)})",
            chip=f"waits {share}",
        ),
    ]
    if loop.others is not None:
        text = f"{about(loop.others.point)} other threads of the process are at work (limit {OTHERS:g})"
        signals.append(grading.at_most("loop.others", loop.others, OTHERS, text=text))
    if isinstance(full.rate, Interval):
        signals += accepts_signal(full.curve, full.top, count, count / full.rate.point)
    if not isinstance(compared, str):
        last = compared[-1]
        text = waits.coupling_text(last, f"limit {COUPLED}")
        chip = f"probe waits {last.coupling.point:.2f} as long"
        signals.append(grading.at_least("probe.coupling", last.coupling, COUPLED, text=text, chip=chip))

    def text_of(grade: Grade) -> Words:
        verb = "may wait" if grade is Grade.SUSPECTED else "waits" if is_one else "wait"
        is_mixed = loop.waiting.point < SATURATED
        subject = "The event loop" if is_one else f"{count} event loops"
        threads = "the only thread that answers requests waits"
        if not is_one:
            threads = f"the {count} threads that answer requests wait"
        each = ""
        if isinstance(full.rate, Interval):
            each = f" for {numbers.with_unit(count / full.rate.point, 's')} each"
            if is_mixed:
                each = f", or compute{'s' if is_one else ''},{each}"
        where, to_change = loop.call, "this call"
        if loop.line:
            where = grading.short_label(".".join(loop.call.split(".")[-2:]) or loop.line)
            to_change = f"the call of {loop.line}"
        also = f" That frees {share} of its time." if is_mixed else ""
        return Words(
            statement=f"{subject} {verb} in {where}{each}: {full.most}",
            explanation=f"At {words.users(full.top.load)} {threads} {call} at {share} of the moments, and "
            "all other requests of the process wait for it.",
            advice=f"Make {to_change} asynchronous, or make it on a pool of threads. Or run more processes, "
            f"if what they call can serve more.{also}",
            confirm="twice the processes: twice the throughput, or the next limit",
            impact=full.waiting_share,
        )

    return on_curve(full.curve, signals, waits.rivals(facts, full), text_of)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
