"""Answers take their time on the way: bandwidth is the limit.

**Means.** Large answers share a way that bears so many bytes a second. The service has long written an answer
while its last bytes still come; more users share the same bytes.

**Needs.** Throughput has stopped growing; at the highest load at least 40 % of the time of a request lies
between the first and the last byte of its answer, twice as long as at the lightest load or longer; answers
have 10 kB or more; over the levels on the plateau, or 1.8 times beyond the knee, bytes per second are the
same within 5 %; the service uses at most 70 % of its cores, and no process whose one busy thread is at work
85 % of the time.

**Ruled out by.** Processors of the machine that are full (then bytes wait for them); a generator that did not
read in time. Not excluded, without answers of another size: a service that writes each answer slowly.

**Thresholds.** 40 %: a way that serves one answer after the other makes it wait before its first byte, not
within; it shows as a share when two pieces or more take turns. 10 kB: what one window of a connection holds
at its start. 5 % from their mean: 10 % between two levels, from where on twice the users are said
to bring more.

**Do.** Compress, send less, cache nearer to the users, or more bandwidth.

**Confirm.** Answers of half the size: throughput doubles and bytes per second stay.
"""

from __future__ import annotations

from loadlens.diagnose import grading
from loadlens.diagnose.observe.curve_signals import gain_signal, room_signal
from loadlens.estimate.saturation import BEYOND_KNEE, GAIN_PER_DOUBLING
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, coming_share, completed
from loadlens.model.facts import Curve, Facts, ReceivedWatch, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, NotAssessed
from loadlens.present import load_text, numbers

ID = "network.bound"
TITLE = "bandwidth is the limit"
EXPLAINS: tuple[str, ...] = (
    "saturation.plateau",
    "downstream.serialised",
    "outside.handler-wait",
)

COMING = 0.40  # of the time of a request
GROWN = 2.0  # times the time between first and last byte at the lightest load
LEAST_BYTES = 10_000.0  # of an answer
SAME_RATE = 0.05  # from the mean of the levels at which more users bring nothing
MOST_CORES = 0.70  # of those allotted
FULL_LOOP = 0.85  # of the time, of a process in which one thread does it all
FULL_MACHINE = 0.9  # of its cores


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at the plateau of every curve."""
    looked = [(curve, levels) for curve in facts.curves if (levels := _levels(curve))]
    if not looked:
        return NotAssessed(ID, TITLE, "bytes and times of the parts of answers were not recorded")
    found = [f for curve, levels in looked if (f := _finding(facts, curve, levels)) is not None]
    if found:
        return grading.for_all(found)
    curve, levels = max(looked, key=lambda pair: _share(pair[1][-1][1]))
    return Absent(ID, TITLE, _silence(facts, curve, levels))


Levels = list[tuple[Step, ReceivedWatch]]


def _levels(curve: Curve) -> Levels:
    """The levels at which all of it is known, ascending."""
    return [
        (step, received)
        for step in curve.steps
        if (received := step.received) is not None
        and all(isinstance(f, Estimate) for f in (received.bytes_per_s, received.waited, received.coming))
    ]


def _share(received: ReceivedWatch) -> float:
    return coming_share(received) or 0.0


def _each(step: Step, received: ReceivedWatch) -> float:
    """Bytes of an answer."""
    done = completed(step)
    return figures.point(received.bytes_per_s) / done if done > 0 else 0.0


def _signals(curve: Curve, levels: Levels) -> list[grading.Signal]:
    step, top = levels[-1]
    share, each = _share(top), _each(step, top)
    first, last = figures.point(levels[0][1].coming), figures.point(top.coming)
    coming = grading.stated(
        "answer.coming",
        share >= COMING,
        text=f"{numbers.percent(share)} of a request's time lies between the first and the last byte of its "
        f"answer (limit {numbers.percent(COMING)})",
        chip=f"{numbers.percent(share)} of the time on the way",
    )
    grown = grading.stated(
        "answer.grown",
        None if len(levels) < 2 else last >= GROWN * first,
        text=f"an answer comes within {numbers.with_unit(last, 's')}, {numbers.with_unit(first, 's')} at the "
        f"lightest load (limit {GROWN:g} times)",
    )
    size = grading.stated(
        "answer.bytes",
        each >= LEAST_BYTES,
        text=f"an answer has {numbers.with_unit(each, 'bytes')} "
        f"(limit {numbers.with_unit(LEAST_BYTES, 'bytes')})",
        chip=f"{numbers.with_unit(each, 'bytes')} an answer",
    )
    return [size, coming, grown, *_plateau(curve, levels), _cores(curve, step)]


def _plateau(curve: Curve, levels: Levels) -> list[grading.Signal]:
    """Whether more users bring nothing, and the bytes per second of all of them are the same."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return [grading.stated("throughput.gain", None, text=capacity.reason)]
    gain = capacity.saturation.gain_per_doubling
    is_flat = gain < GAIN_PER_DOUBLING and capacity.saturation.verdict != "underdriven"
    flat = gain_signal("throughput.gain", gain, is_flat)
    knee, begins = capacity.saturation.knee, capacity.saturation.plateau_from
    # A level hardly below the plateau is as full: what the pipe bears varies between trials.
    full_from = begins if knee is None else min(begins, BEYOND_KNEE * knee)
    beyond = [level for level in levels if level[0].load >= full_from]
    rates = [figures.point(received.bytes_per_s) for _, received in beyond]
    if len(rates) < 2:
        return [
            flat,
            grading.stated(
                "bytes.same", None, text="one level on the plateau only, none beside it beyond the knee"
            ),
        ]
    mean = sum(rates) / len(rates)
    off = max(abs(rate / mean - 1) for rate in rates)
    same = grading.stated(
        "bytes.same",
        off <= SAME_RATE,
        text=f"{numbers.with_unit(mean, 'bytes/s')} come in over the {len(rates)} highest levels, within "
        f"{numbers.percent(off)} (limit {numbers.percent(SAME_RATE)})",
        chip=f"{numbers.with_unit(mean, 'bytes/s')}",
    )
    return [flat, same]


def _cores(curve: Curve, step: Step) -> grading.Signal:
    if not step.processes or curve.cores_allotted <= 0:
        return grading.stated(
            "cpu.room", None, text="CPU of the service was not read: --pid PID, or --start CMD"
        )
    loops = [p.occupied for p in step.processes if p.hot_threads == 1]
    busiest = max((loop.point for loop in loops if isinstance(loop, Estimate)), default=0.0)
    if busiest >= FULL_LOOP:
        busy = numbers.percent(busiest)
        text = f"one thread is at work {busy} of the time (limit {numbers.percent(FULL_LOOP)})"
        return grading.stated("cpu.room", False, text=text, chip=f"one thread {busy}")
    return room_signal(curve, step, MOST_CORES)


def _rivals(facts: Facts, step: Step) -> list[Counter]:
    busy = step.host_cpu
    name = "processors of the machine"
    machine = grading.rival(name, "the machine as a whole was not watched", None)
    if isinstance(busy, Estimate):
        text = f"{busy.point:.2f} of {facts.cores} cores are busy"
        machine = grading.rival(name, text, busy.point < FULL_MACHINE * facts.cores)
    slow = "answers of one size only: half the size would show whether it is bytes or time"
    return [machine, grading.generator_rival(step), grading.rival("a service that writes slowly", slow, None)]


def _finding(facts: Facts, curve: Curve, levels: Levels) -> Finding | None:
    step, top = levels[-1]
    signals, rivals = _signals(curve, levels), _rivals(facts, step)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(curve))
    if grade is None:
        return None
    rate, each = numbers.with_unit(figures.point(top.bytes_per_s), "bytes/s"), _each(step, top)
    share = _share(top)
    return Finding(
        rule=ID,
        grade=grade,
        impact=share,
        scope=curve.label,
        statement=grading.statement(
            f"Answers stop at {rate}: {numbers.percent(share)} of the time is on the way"
        ),
        explanation=f"At {load_text.load_with_unit(curve, step)} an answer of "
        f"{numbers.with_unit(each, 'bytes')} "
        f"comes within {numbers.short(top.coming)} of its first byte.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Compress or shorten answers: at {rate} half of {numbers.with_unit(each, 'bytes')} bears "
        f"{numbers.with_unit(2 * figures.point(top.bytes_per_s) / each, '1/s')}.",
        confirm="answers of half the size: throughput doubles and bytes per second stay",
        curves=(curve.label,),
    )


def _silence(facts: Facts, curve: Curve, levels: Levels) -> str:
    return grading.reason(_signals(curve, levels), _rivals(facts, levels[-1][0]))
