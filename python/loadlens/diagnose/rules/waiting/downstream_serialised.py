"""Requests wait in a line, in the service or behind it, and no gauge says by its name of what kind.

**Means.** Only a limited number of requests at once pass something that cheap requests do not need: a lock, a
connection pool, a limiter that delays, or another service. From outside these look the same, and the number
that pass at once does not distinguish them either. Gauges of the service are compared by behaviour, whatever
their names are: one that stays at a number of places while load and waiting grow is the full resource; one
that equals the number of waiting requests is its queue. Both are named as they are exported. A step of every
request, such as one kind of query, is named by the label of its metric if most of the waiting is there.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full; if no processes are watched, the machine uses less than one core apart from the generator. At
the lowest plateau level where both can be compared, a cheap probe waits less than 0.2 of the time that the
load waits, and at most one probe in five is delayed beyond the share that is at the lightest load.

A gauge is named as the full resource if all its readings are whole numbers; if at the highest level and at
one with at least 1.3 times fewer users it is at least 90 % of the same highest number S; if there are at
least 1.2 S users at both, of calls at the highest; if it was at most 0.8 S at the lightest load, or 0.2 S
before the load; if S / X is at most 1.2 times the response time of one user; and if S is within 20 % of X R1,
the requests at work at once, or S is one and X R1 at most 1.8, or the gauge grew with throughput (within 30
%, and at each level within 0.25 S) at two levels or more below the plateau. A gauge is named as the queue if
it is within 25 % of X (R - R1) wherever that is 2 or more, at two levels or more, and at most 0.25 for one
user. A constant, a counter, a count of users, and threads that idle fail one of these.

Answers that keep apart show that one request at a time passes, and how long it takes: at the highest level of
a closed load hardly any two come closer to each other than half of the mean gap (at most one in twenty, with
97.5 % confidence). Requests in several places end by chance, or together: with exponential times 39 % come
closer, and users who start together end together.

**Ruled out by.** A lock or pool that gauges show (`db.lock`, `db.pool`) or full threads
(`threads.pool-limit`): these are then the finding. A machine or generator that is the limit. Fast refusals:
refused requests do not wait. Responses whose transfer takes most of the time; where transfer was not timed,
large responses (16 KiB) leave the finding suspected. So do failures of a tenth of the requests or more: the
rate is then that of what is left.

**Thresholds.** 0.2: measured ratios were 0.00 for a lock, 0.09 for fairly shared cores and 1 for full
threads. One in five: fairly shared cores delayed four probes in ten, a lock none. The lowest level: threads
that fill up in front of the queue make probes wait too, from some level on.

**Do.** Read the gauges of the systems that the service calls: their holders and waiting requests show the
cause.

**Confirm.** Apply the same load without the calls to those systems: throughput grows with users again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import (
    Answer,
    Claim,
    Lacking,
    Nothing,
    Words,
    assessing_after,
    on_curve,
    strongest,
)
from loadlens.diagnose.observe import calls_seen, gauge_courses, label_parts, limits, waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.curve import failed_share
from loadlens.measure.thresholds import UNCOUPLED
from loadlens.model.facts import Facts
from loadlens.model.finding import Estimate, Finding, Grade, Setting
from loadlens.present import numbers, words

ID = "downstream.serialised"
TITLE = "a line in the service or behind it, of a kind that no gauge names"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

MANY_FAIL = 0.10  # of the requests of the highest level

# What has found the limit already, or is a line with a name of its own.
NAMED = (
    *("db.lock", "db.pool", "downstream.full", "calls.at-once", "threads.pool-limit"),
    *("ratelimit.active", "shed.overload", "accept.drops"),
    *("part.full", "calls.wait-before", "downstream.slow", "eventloop.waits"),
    *(
        "eventloop.blocked",
        "cpu.saturated",
        "cpu.one-core",
        "cgroup.throttled",
        "network.bound",
        "disk.bound",
    ),
)


@dataclass(frozen=True, slots=True)
class NamelessLine:
    """A plateau that no other rule explains, and how a probe waits at its lowest level."""

    full: waits.Full
    lowest: waits.Waits
    places: gauge_courses.FullPlaces | None  # gauges that behave like it
    queue: gauge_courses.Line | None
    step: label_parts.Part | None  # of each request, where most of the waiting is
    calls: calls_seen.Growth | None  # to another program, where most of the waiting is


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[NamelessLine] | Lacking | Nothing:
    """Return the plateaus on which no other rule names the line."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    named = [o for o in others if isinstance(o, Finding) and o.rule in NAMED and o.grade >= Grade.PROBABLE]
    nameless = [full for full in plateaus if not any(full.curve.label in cause.curves for cause in named)]
    if not nameless:
        return Nothing(f"named: {', '.join(cause.rule for cause in named)}")
    compared = [(full, waits.waits(full)) for full in nameless]
    lines = [_nameless(full, levels[0]) for full, levels in compared if not isinstance(levels, str)]
    return lines or Lacking(next(reason for _, reason in compared if isinstance(reason, str)))


def _nameless(full: waits.Full, lowest: waits.Waits) -> NamelessLine:
    queue = gauge_courses.line(full)
    step = label_parts.step_of_each(full)
    if step is not None and step.of_waiting < waits.MOSTLY:
        step = None
    return NamelessLine(
        full, lowest, gauge_courses.full_places(full, queue), queue, step, calls_seen.growth(full)
    )


def claim(facts: Facts, line: NamelessLine) -> Claim:
    """Hold the line against the CPU's room, and against probes that wait as well."""
    full, lowest, gap = line.full, line.lowest, _gap(line)
    delayed, before = lowest.probe.delayed, waits.held_up_alone(full, lowest.probe.label)
    share = f"{numbers.percent(delayed.point)} of probes are" if isinstance(delayed, Estimate) else "probes"
    at_rest = "" if before is None else f", {numbers.percent(before)} at the lightest load"
    signals = [
        waits.cpu_signal(facts, full.curve, full.top),
        grading.at_most(
            "probe.coupling",
            lowest.coupling,
            UNCOUPLED,
            text=waits.coupling_text(lowest, f"limit {UNCOUPLED}"),
            chip=f"probe waits {lowest.coupling.point:.2f} as long",
        ),
        grading.at_most(
            "probe.delayed",
            waits.held_up_more(delayed, before or 0.0),
            waits.HELD_UP,
            text=f"{share} held up{at_rest} (limit {numbers.percent(waits.HELD_UP)} more)",
            chip=share,
        ),
        *_named_by(line),
        *_failing(full),
    ]
    if gap:
        close = f"{full.top.spacing.close} of {full.top.spacing.gaps} gaps are shorter than half of that"
        one_by_one = f"answers come one at a time, {gap} apart: {close}"
        signals.append(grading.stated("answers.apart", True, text=one_by_one, chip=f"{gap} apart"))
    # A link that is shared fairly makes large answers wait and small ones hardly: unless timed.
    longest = full.top.longest_class()
    if longest is None or not isinstance(longest.transfer, Estimate):
        signals += waits.link_signals(full.top)

    def text(grade: Grade) -> Words:
        load_s, probe_s = numbers.with_unit(lowest.load_s, "s"), numbers.with_unit(lowest.probe_s, "s")
        gauges = [limits.reading(places.held) for places in full.top.places]
        names = [seen.gauge.name for seen in (line.places, line.queue) if seen is not None]
        nameless = f"no gauge names it ({', '.join(gauges[:3])})" if gauges else "no gauge was read"
        if names:
            nameless = f"{' and '.join(names)} behave like it, and their names do not say"
        return Words(
            statement=_statement(line, gap, grade),
            explanation=f"At {words.users(lowest.step.load)} {lowest.costliest.label} waits {load_s} and "
            f"{lowest.probe.label} {probe_s}: the service itself has time. At {words.users(full.top.load)} "
            f"{numbers.percent(full.waiting_share)} of the response time is waiting.",
            advice=_advice(line, gap),
            confirm="the same load without what is asked behind: throughput grows with users again",
            impact=full.waiting_share,
            unknown=(f"whether it is a lock, a pool or a limiter: {nameless}",),
            setting=Setting.rate(full.rate.point, "pace")
            if gap and isinstance(full.rate, Interval)
            else None,
        )

    return on_curve(full.curve, signals, waits.rivals(facts, full), text)


def _failing(full: waits.Full) -> list[grading.Signal]:
    """Leave open what limits a level at which many requests fail: its rate is that of what is left."""
    failed = failed_share(full.top)
    if failed < MANY_FAIL:
        return []
    text = f"{numbers.percent(failed)} of the requests fail there (limit {numbers.percent(MANY_FAIL)})"
    return [grading.stated("errors.few", None, text=text)]


def _named_by(line: NamelessLine) -> Iterator[grading.Signal]:
    """Yield what names the line: gauges that behave like it, a step of every request, calls."""
    places, queue, step = line.places, line.queue, line.step
    if places is not None:
        chip = f"{places.size} of {places.size} taken"
        yield grading.stated("gauge.places", True, text=places.text(line.full), chip=chip)
    if queue is not None:
        chip = f"{limits.point(queue.gauge):.3g} wait"
        yield grading.stated("gauge.waiting", True, text=queue.text(line.full), chip=chip)
    if step is not None:
        now, alone = (numbers.with_unit(value, "s") for value in (step.now_s, step.before_s))
        others = numbers.with_unit(step.others_now_s, "s")
        of_waiting = numbers.percent(step.of_waiting)
        took = f"{step.name} of {step.source} takes {now}, {alone} at the lightest load, the others {others}"
        chip = f"{of_waiting} of the waiting"
        yield grading.stated("label.step", True, text=took, chip=chip, value=step.of_waiting)
    if line.calls is not None:
        yield line.calls.signal()


def _statement(line: NamelessLine, gap: str, grade: Grade) -> str:
    full, places, is_suspected = line.full, line.places, grade is Grade.SUSPECTED
    verb = "may wait" if is_suspected else "wait"
    if places is not None:
        taken = "The one place" if places.size == 1 else f"All {places.size} places"
        are = "may be" if is_suspected else "is" if places.size == 1 else "are"
        return f"{taken} of {gauge_courses.shown(places.gauge)} {are} taken: {full.most}"
    if line.queue is not None:
        return f"Requests {verb} in {gauge_courses.shown(line.queue.gauge)}: {full.most}"
    if line.step is not None:
        return f"Requests {verb} at {line.step.name}: {full.most}"
    if line.calls is not None:
        return f"Requests {verb} in {line.calls.name}: {full.most}"
    if gap:
        return f"Requests {'may pass' if is_suspected else 'pass'} one at a time, {gap} each: {full.most}"
    if not isinstance(full.parallelism, Insufficient):
        at_once = f"{numbers.about(full.parallelism.point)} at work at once"
        return f"Requests {verb} in a line, in the service or behind it: {full.most}, {at_once}"
    return f"Requests {verb} in a line, in the service or behind it, that lets {full.most} through"


def _advice(line: NamelessLine, gap: str) -> str:
    if line.calls is not None and line.places is None:
        return "Find out what limits the other program: load it alone; bound the wait by a time-out."
    if gap:
        return (
            f"Find what each request holds for {gap} while others wait for it, and hold it for less: a lock "
            "that is kept during a call, the only connection or worker of something, or a limiter."
        )
    return (
        "Read who holds and who waits (--metrics, threads of the service, the database's activity): one "
        "holder is a lock, several are a pool, none is a limiter or another service."
    )


def _gap(line: NamelessLine) -> str:
    """Return the time between two answers if they keep apart at the highest load; empty: they do not."""
    full = line.full
    is_one = line.places is None or line.places.size == 1
    if not is_one or not waits.answers_are_apart(full) or not isinstance(full.rate, Interval):
        return ""
    return numbers.with_unit(1 / full.rate.point, "s")


assess_after = assessing_after(ID, TITLE, observe, claim, choose=strongest)
