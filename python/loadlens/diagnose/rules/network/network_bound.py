"""Large responses fill the link: bandwidth is the limit.

**Means.** Large answers share a link that carries so many bytes per second. The service has long written an
answer while its last bytes still come; more users share the same bytes.

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

**Do.** Compress, send less, cache closer to the users, or get more bandwidth.

**Confirm.** Answers of half the size: throughput doubles and bytes per second stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Words, assessing, for_all, on_curve
from loadlens.diagnose.observe.curve_signals import gain_signal, room_signal
from loadlens.estimate.saturation import BEYOND_KNEE, GAIN_PER_DOUBLING
from loadlens.measure import figures
from loadlens.measure.curve import Capacity, capacity_of, coming_share, completed
from loadlens.measure.thresholds import FULL_MACHINE, IDLE_CPU, SATURATED
from loadlens.model.facts import Curve, Facts, ReceivedWatch, Step
from loadlens.model.finding import Estimate, Grade
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


@dataclass(frozen=True, slots=True)
class Transfers:
    """The answers of a curve on their way."""

    curve: Curve
    levels: Sequence[tuple[Step, ReceivedWatch]]  # at which all parts of answers are known, by load

    @property
    def share(self) -> float:
        """Share of a request's time on the way at the highest load."""
        return coming_share(self.levels[-1][1]) or 0.0


def observe(facts: Facts) -> Sequence[Transfers] | Lacking:
    """Return the curves whose answers were timed in parts."""
    transfers = []
    for curve in facts.curves:
        watched = [(step, step.received) for step in curve.steps if step.received is not None]
        levels = [
            (step, received)
            for step, received in watched
            if all(isinstance(p, Estimate) for p in (received.bytes_per_s, received.waited, received.coming))
        ]
        if levels:
            transfers.append(Transfers(curve, levels))
    return transfers or Lacking("bytes and times of the parts of answers were not recorded")


def claim(facts: Facts, transfers: Transfers) -> Claim:
    """Hold the way of the answers against its plateau, the size of answers, and full processors."""
    curve, levels, share = transfers.curve, transfers.levels, transfers.share
    step, top = levels[-1]
    done, rate = completed(step), figures.point(top.bytes_per_s)
    each = rate / done if done > 0 else 0.0  # bytes of an answer
    first, last = figures.point(levels[0][1].coming), figures.point(top.coming)
    signals = [
        grading.stated(
            "answer.bytes",
            each >= LEAST_BYTES,
            text=f"an answer has {numbers.with_unit(each, 'bytes')} "
            f"(limit {numbers.with_unit(LEAST_BYTES, 'bytes')})",
            chip=f"{numbers.with_unit(each, 'bytes')} an answer",
        ),
        grading.stated(
            "answer.coming",
            share >= COMING,
            text=f"{numbers.percent(share)} of a request's time lies between the first and the last byte of "
            f"its answer (limit {numbers.percent(COMING)})",
            chip=f"{numbers.percent(share)} of the time on the way",
        ),
        grading.stated(
            "answer.grown",
            None if len(levels) < 2 else last >= GROWN * first,
            text=f"an answer comes within {numbers.with_unit(last, 's')}, {numbers.with_unit(first, 's')} at "
            f"the lightest load (limit {GROWN:g} times)",
        ),
        *_plateau(curve, levels),
        _cores(curve, step),
    ]
    name, busy = "processors of the machine", step.host_cpu
    machine = grading.rival(name, "the machine as a whole was not watched", None)
    if isinstance(busy, Estimate):
        used = f"{busy.point:.2f} of {facts.cores} cores are busy"
        machine = grading.rival(name, used, busy.point < FULL_MACHINE * facts.cores)
    slow = "answers of one size only: half the size would show whether it is bytes or time"
    rivals = [
        machine,
        grading.generator_rival(step),
        grading.rival("a service that writes slowly", slow, None),
    ]

    def words(_: Grade) -> Words:
        rate_text, size = numbers.with_unit(rate, "bytes/s"), numbers.with_unit(each, "bytes")
        return Words(
            statement=f"Answers stop at {rate_text}: {numbers.percent(share)} of the time is on the way",
            explanation=f"At {load_text.load_with_unit(curve, step)} an answer of {size} "
            f"comes within {numbers.short(top.coming)} of its first byte.",
            advice=f"Compress or shorten answers: at {rate_text} half of {size} supports "
            f"{numbers.with_unit(2 * rate / each, '1/s')}.",
            confirm="answers of half the size: throughput doubles and bytes per second stay",
            impact=share,
        )

    return on_curve(curve, signals, rivals, words)


def _plateau(curve: Curve, levels: Sequence[tuple[Step, ReceivedWatch]]) -> list[grading.Signal]:
    """More users bring nothing, and the bytes per second of all of them are the same."""
    capacity = capacity_of(curve)
    if not isinstance(capacity, Capacity):
        return [grading.stated("throughput.gain", None, text=capacity.reason)]
    gain = capacity.saturation.gain_per_doubling
    is_flat = gain < GAIN_PER_DOUBLING and capacity.saturation.verdict != "underdriven"
    flat = gain_signal("throughput.gain", gain, is_flat)
    knee, begins = capacity.saturation.knee, capacity.saturation.plateau_from
    # A level hardly below the plateau is as full: what the pipe carries varies between trials.
    full_from = begins if knee is None else min(begins, BEYOND_KNEE * knee)
    rates = [figures.point(received.bytes_per_s) for step, received in levels if step.load >= full_from]
    if len(rates) < 2:
        text = "one level on the plateau only, no other beyond the knee"
        return [flat, grading.stated("bytes.same", None, text=text)]
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
        text = "CPU of the service was not read: --pid PID, or --start CMD"
        return grading.stated("cpu.room", None, text=text)
    loops = [p.occupied for p in step.processes if p.is_one_thread]
    busiest = max((loop.point for loop in loops if isinstance(loop, Estimate)), default=0.0)
    if busiest >= SATURATED:
        busy = numbers.percent(busiest)
        text = f"one thread is at work {busy} of the time (limit {numbers.percent(SATURATED)})"
        return grading.stated("cpu.room", False, text=text, chip=f"one thread {busy}")
    return room_signal(curve, step, IDLE_CPU)


def _silence(facts: Facts, transfers: Sequence[Transfers]) -> str:
    """The objection on the curve whose answers are on their way for the largest share of the time."""
    longest = claim(facts, max(transfers, key=lambda observed: observed.share))
    return grading.reason(longest.signals, longest.rivals)


assess = assessing(ID, TITLE, observe, claim, choose=for_all, silence=_silence)
