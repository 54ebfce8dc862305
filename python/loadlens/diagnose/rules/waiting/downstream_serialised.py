"""Requests wait in a line behind the service, and no gauge says whose.

**Means.** Only so many requests at once get past something that cheap requests do not need: a lock, a pool
of connections, a limiter that delays, another service. From outside these look the same; how many pass at
once does not set them apart either.

**Needs.** A plateau; CPU to spare (computing and waiting for a core, at most 70 % of the cores, no thread
full; without processes: the whole machine uses less than one core besides the generator); a probe that waits
less than 0.2 of what the load waits, at the lowest level of the plateau where both can be compared; at most
one probe in five held up.

**Ruled out by.** A lock or a pool that its gauges name (`db.lock`, `db.pool`), full threads
(`threads.pool-limit`): then that is the finding. A machine or a generator that is the limit. Requests that
are refused fast: who is turned away does not wait. Answers whose bytes take most of the time; where these
were not timed, large answers (16 KiB) leave it suspected.

**Thresholds.** 0.2: probes waited 0.00 of what the load waited for a lock, 0.09 where cores were shared
fairly, 1 behind full threads. One in five: a core that is shared fairly held up four in ten, a lock none.
The lowest level, because threads that fill up in front of the line make probes wait from some level on.

**Do.** Read the gauges of what the service asks: who holds and who waits decides.

**Confirm.** The same load without what is asked behind: throughput grows with users again.
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
from loadlens.diagnose.observe import places as limits
from loadlens.diagnose.observe import waits
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
    *("eventloop.blocked", "cpu.saturated", "cgroup.throttled", "network.bound", "disk.bound"),
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
        gauges = [limits.told(places.held) for places in full.top.places]
        nameless = f"no gauge names it ({', '.join(gauges[:3])})" if gauges else "no gauge was read"
        return Words(
            statement=statement,
            explanation=f"At {words.users(lowest.step.load)} {lowest.dear.label} waits {load_s} and "
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
