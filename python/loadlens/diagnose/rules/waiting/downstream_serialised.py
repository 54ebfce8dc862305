"""Requests wait in a queue behind the service, and no gauge shows which.

**Means.** Only a limited number of requests at once pass something that cheap requests do not need: a lock,
a connection pool, a limiter that delays, or another service. From outside these look the same, and the
number that pass at once does not distinguish them either.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full; if no processes are watched, the machine uses less than one core apart from the generator. At
the lowest plateau level where both can be compared, a cheap probe waits less than 0.2 of the time that the
load waits, and at most one probe in five is delayed.

**Ruled out by.** A lock or pool that gauges show (`db.lock`, `db.pool`) or full threads
(`threads.pool-limit`): these are then the finding. A machine or generator that is the limit. Fast refusals:
refused requests do not wait. Responses whose transfer takes most of the time; where transfer was not timed,
large responses (16 KiB) leave the finding suspected.

**Thresholds.** 0.2: measured ratios were 0.00 for a lock, 0.09 for fairly shared cores and 1 for full
threads. One in five: fairly shared cores delayed four probes in ten, a lock none. The lowest level: threads
that fill up in front of the queue make probes wait too, from some level on.

**Do.** Read the gauges of the systems that the service calls: their holders and waiting requests show the
cause.

**Confirm.** Apply the same load without the calls to those systems: throughput grows with users again.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from loadlens.diagnose.observe import limits, waits
from loadlens.estimate.interval import Insufficient
from loadlens.measure.thresholds import UNCOUPLED
from loadlens.model.facts import Facts
from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.present import numbers, words

ID = "downstream.serialised"
TITLE = "a line behind the service that no gauge names"
EXPLAINS: tuple[str, ...] = ("saturation.plateau",)

# What has found the limit already, or is a line with a name of its own.
NAMED = (
    *("db.lock", "db.pool", "threads.pool-limit", "ratelimit.active", "shed.overload", "accept.drops"),
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
    lines = [NamelessLine(full, levels[0]) for full, levels in compared if not isinstance(levels, str)]
    return lines or Lacking(next(reason for _, reason in compared if isinstance(reason, str)))


def claim(facts: Facts, line: NamelessLine) -> Claim:
    """Hold the line against the CPU's room, and against probes that wait as well."""
    full, lowest = line.full, line.lowest
    delayed = lowest.probe.delayed
    share = f"{numbers.percent(delayed.point)} of probes are" if isinstance(delayed, Estimate) else "probes"
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
            delayed,
            waits.HELD_UP,
            text=f"{share} held up (limit {numbers.percent(waits.HELD_UP)})",
            chip=share,
        ),
    ]
    # A link that is shared fairly makes large answers wait and small ones hardly: unless timed.
    longest = full.top.longest_class()
    if longest is None or not isinstance(longest.transfer, Estimate):
        signals += waits.link_signals(full.top)

    def text(grade: Grade) -> Words:
        verb = "may wait" if grade is Grade.SUSPECTED else "wait"
        statement = f"Requests {verb} in a line behind the service that lets {full.most} through"
        if not isinstance(full.parallelism, Insufficient):
            at_once = f"{full.parallelism.point:.2g} at work at once"
            statement = f"Requests {verb} in a line behind the service: {full.most}, {at_once}"
        load_s, probe_s = numbers.with_unit(lowest.load_s, "s"), numbers.with_unit(lowest.probe_s, "s")
        gauges = [limits.reading(places.held) for places in full.top.places]
        nameless = f"no gauge names it ({', '.join(gauges[:3])})" if gauges else "no gauge was read"
        return Words(
            statement=statement,
            explanation=f"At {words.users(lowest.step.load)} {lowest.costliest.label} waits {load_s} and "
            f"{lowest.probe.label} {probe_s}: the service itself has time. At {words.users(full.top.load)} "
            f"{numbers.percent(full.waiting_share)} of the response time is waiting.",
            advice="Read who holds and who waits behind the service (--metrics, or the database's "
            "activity): one holder is a lock, several are a pool, none is a limiter or another service.",
            confirm="the same load without what is asked behind: throughput grows with users again",
            impact=full.waiting_share,
            unknown=(f"whether it is a lock, a pool or a limiter: {nameless}",),
        )

    return on_curve(full.curve, signals, waits.rivals(facts, full), text)


assess_after = assessing_after(ID, TITLE, observe, claim, choose=strongest)
