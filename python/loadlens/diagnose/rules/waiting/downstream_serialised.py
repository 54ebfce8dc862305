"""Requests wait in a line behind the service, and no gauge says whose.

**Means.** Only so many requests at once get past something that cheap requests do not need: a lock, a pool
of connections, a limiter that delays, another service. From outside these look the same; how many pass at
once does not tell them apart either.

**Needs.** A plateau; CPU to spare (computing and waiting for a core, at most 70 % of the cores, no thread
full; without processes: the whole machine uses less than one core beside the generator); a probe that waits
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
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Insufficient
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
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
class Look:
    """A plateau with a probe beside it."""

    found: waits.Full
    first: waits.Waits


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at every plateau on which no other rule names the line."""
    known = waits.plateaus(facts)
    if not isinstance(known, tuple):
        return waits.without(ID, TITLE, known)
    named = [o for o in others if isinstance(o, Finding) and o.rule in NAMED and o.grade >= Grade.PROBABLE]
    nameless = [one for one in known if not any(one.curve.label in cause.curves for cause in named)]
    if not nameless:
        return Absent(ID, TITLE, f"named: {', '.join(cause.rule for cause in named)}")
    looked = [(one, waits.waits(one)) for one in nameless]
    looks = [Look(one, found[0]) for one, found in looked if not isinstance(found, str)]
    if not looks:
        return NotAssessed(ID, TITLE, next(found for _, found in looked if isinstance(found, str)))
    findings = [finding for look in looks if (finding := _finding(facts, look)) is not None]
    if not findings:
        return Absent(ID, TITLE, _silence(facts, looks[0]))
    return grading.strongest(findings)


def _finding(facts: Facts, look: Look) -> Finding | None:
    found = look.found
    signals, rivals = _signals(facts, look), waits.rivals(facts, found)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(found.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=found.waiting_share,
        scope=found.curve.label,
        statement=grading.statement(_statement(found, grade)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Read who holds and who waits behind the service (--metrics, or the database's activity): "
        "one holder is a lock, several are a pool, none is a limiter or another service.",
        confirm="the same load without what is asked behind: throughput grows with users again",
        unknown=(_unknown(found),),
        curves=(found.curve.label,),
    )


def _signals(facts: Facts, look: Look) -> list[grading.Signal]:
    found, first = look.found, look.first
    delayed = first.probe.delayed
    share = f"{numbers.percent(delayed.point)} of probes are" if isinstance(delayed, Estimate) else "probes"
    return [
        waits.cpu_signal(facts, found.curve, found.top),
        grading.at_most(
            "probe.coupling",
            first.coupling,
            waits.UNTOUCHED,
            text=waits.coupling_text(first, f"limit {waits.UNTOUCHED}"),
            chip=f"probe waits {first.coupling.point:.2f} as long",
        ),
        grading.at_most(
            "probe.delayed",
            delayed,
            waits.HELD_UP,
            text=f"{share} held up (limit {numbers.percent(waits.HELD_UP)})",
            chip=share,
        ),
        *_link_signals(found),
    ]


def _link_signals(found: waits.Full) -> list[grading.Signal]:
    """A link that is shared fairly makes large answers wait and small ones hardly: unless timed."""
    dear = found.top.longest_class()
    is_timed = dear is not None and isinstance(dear.transfer, Estimate)
    return [] if is_timed else waits.link_signals(found.top)


def _statement(found: waits.Full, grade: Grade) -> str:
    most = found.most
    verb = "may wait" if grade is Grade.SUSPECTED else "wait"
    if isinstance(found.parallelism, Insufficient):
        return f"Requests {verb} in a line behind the service that lets {most} through"
    return (
        f"Requests {verb} in a line behind the service: {most}, {found.parallelism.point:.2g} at work at once"
    )


def _explanation(look: Look) -> str:
    first, found = look.first, look.found
    load, probe = numbers.with_unit(first.load_s, "s"), numbers.with_unit(first.probe_s, "s")
    return (
        f"At {words.users(first.step.load)} {first.dear.label} waits {load} and {first.probe.label} {probe}: "
        f"the service itself has time. At {words.users(found.top.load)} "
        f"{numbers.percent(found.waiting_share)} of the response time is waiting."
    )


def _unknown(found: waits.Full) -> str:
    told = [held.told(one.held) for one in found.top.places]
    if not told:
        return "whether it is a lock, a pool or a limiter: no gauge was read"
    return f"whether it is a lock, a pool or a limiter: no gauge names it ({', '.join(told[:3])})"


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.found.curve.label, _signals(facts, look), waits.rivals(facts, look.found))
