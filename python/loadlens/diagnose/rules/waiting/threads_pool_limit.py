"""Only so many requests are worked on at once: all threads are taken, and everything waits for one.

**Means.** A request holds a thread from its beginning to its end, also while it only waits. There are W of
them; whoever comes when all are taken waits before the handler, however cheap. Throughput is W over the
time of a request.

**Needs.** A plateau; CPU to spare (computing and waiting for a core, at most 70 % of the cores, no thread
full); a cheap probe that waits at least half of what the load waits, at the lowest and at the highest level
of the plateau where both can be compared. Then the threads: a gauge that says nine tenths of them are busy,
W being within 20 % of throughput x time alone (or within its interval); or else the threads of the
processes, which no longer grow with the users and are at least as many as are at work at once; besides, they
were fewer at the lowest load, or throughput x time alone is a whole number within 10 % (or within its
interval): a limiter that delays everything lets through any number. With neither it is suspected.

**Ruled out by.** A lock or a pool with a line before it: those who wait there hold the threads. An event
loop or cores that compute. More at work at once than there are threads: then something else admits. A
machine, a generator or a transfer that is the limit; refusals.

**Thresholds.** Half: probes waited as long as the load behind full threads (1.0 to 1.24), 0.09 of it where
cores were shared, not at all for a lock behind. Nine tenths: readings fall between two requests now and
then. Growing: a quarter of a thread for each further user. Half of the threads and ten more may have other
work; where still more stand idle they may wait for something behind.

**Do.** W = throughput that is wanted x time of a request, up to what lies behind; a bounded queue with a
short time-out before them.

**Confirm.** Twice the threads: twice the throughput, or the next limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.observe import places as held
from loadlens.diagnose.observe import waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.model.facts import Facts, Places, Step
from loadlens.model.finding import Absent, Counter, Finding, Grade, NotAssessed
from loadlens.present import numbers, words

ID = "threads.pool-limit"
TITLE = "all threads are taken"
EXPLAINS: tuple[str, ...] = ("outside.handler-wait", "saturation.plateau")

AGREES = 0.20
WHOLE = 0.10  # of a number of threads
GROWING = 0.25  # threads for each further user
IDLE_SHARE, IDLE_MORE = 0.5, 10


@dataclass(frozen=True, slots=True)
class Look:
    """A plateau, with what is known of threads there."""

    found: waits.Full
    compared: tuple[waits.Waits, ...] | str  # how probes and the load wait
    gauge: Places | None
    size: held.Size | None


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every plateau; the clearest speaks."""
    known = waits.plateaus(facts)
    if not isinstance(known, tuple):
        return waits.without(ID, TITLE, known)
    looks = [_look(one) for one in known]
    able = [look for look in looks if look.gauge is not None or not isinstance(look.compared, str)]
    if not able:
        return NotAssessed(ID, TITLE, next(look.compared for look in looks if isinstance(look.compared, str)))
    findings = [finding for look in able if (finding := _finding(facts, look)) is not None]
    if not findings:
        return Absent(ID, TITLE, _silence(facts, able[0]))
    return grading.strongest(findings)


def _look(found: waits.Full) -> Look:
    """The gauge that is fullest, if there are several pools of threads."""
    told = [(one, held.size_of(found, one)) for one in found.top.places if one.kind == "threads"]

    def fullness(pair: tuple[Places, held.Size | None]) -> float:
        return (held.point(pair[0].held) or 0.0) / pair[1].count if pair[1] is not None else 0.0

    gauge, size = max(told, key=fullness, default=(None, None))
    return Look(found, waits.waits(found), gauge, size)


def _finding(facts: Facts, look: Look) -> Finding | None:
    found = look.found
    signals, rivals = _signals(facts, look), _rivals(facts, look)
    grade = grading.grade_of(signals, rivals, cap=grading.cap_of(found.curve))
    if grade is None:
        return None
    return Finding(
        rule=ID,
        grade=grade,
        impact=found.waiting_share,
        scope=found.curve.label,
        statement=grading.statement(_statement(look, grade)),
        explanation=_explanation(look),
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=_advice(look),
        confirm="twice the threads: twice the throughput, or the next limit",
        unknown=() if look.gauge is not None else ("how many threads are busy: no gauge was read",),
        curves=(found.curve.label,),
    )


def _signals(facts: Facts, look: Look) -> list[grading.Signal]:
    found = look.found
    signals = [waits.cpu_signal(facts, found.curve, found.top)]
    if not isinstance(look.compared, str):
        signals += [_coupling(one) for one in dict.fromkeys((look.compared[0], look.compared[-1]))]
    if look.gauge is not None:
        return [*signals, _taken(look, look.gauge), _agreement(look)]
    return [*signals, _thread_count(look), *waits.link_signals(found.top)]


def _taken(look: Look, gauge: Places) -> grading.Signal:
    """On a plateau the number at work stays the same whatever holds the rest up: alone it is no bound."""
    found, size = look.found, look.size
    if size is None or size.is_told or held.has_waiters(gauge) is True:
        return held.taken_signal(found, gauge, size, "pool.size")
    text = f"{held.told(gauge.held)}, the same as at the level before, and nothing says of how many"
    return grading.stated("pool.size", None, text=text)


def _coupling(one: waits.Waits) -> grading.Signal:
    return grading.at_least(
        "probe.coupling",
        one.coupling,
        waits.ALL_WAIT,
        text=waits.coupling_text(one, f"limit {waits.ALL_WAIT}"),
        chip=f"probe waits {one.coupling.point:.2f} as long",
    )


def _agreement(look: Look) -> grading.Signal:
    """As many as there are threads must be at work at once, else the threads wait for something else."""
    parallel, size = look.found.parallelism, look.size
    if isinstance(parallel, Insufficient) or size is None:
        lack = parallel.reason if isinstance(parallel, Insufficient) else "nothing says how many there are"
        return grading.stated("threads.parallelism", None, text=f"throughput x time alone: {lack}")
    passed = abs(parallel.point / size.count - 1) <= AGREES or (
        parallel.low is not None and parallel.covers(size.count)
    )
    text = (
        f"throughput x time alone is {parallel.point:.3g} at work at once, {size.name} {size.count:.3g} "
        f"(limit {numbers.percent(AGREES)})"
    )
    signal = grading.stated("threads.parallelism", passed, text=text, chip=f"{parallel.point:.3g} at once")
    near = ((1 - AGREES) * size.count, (1 + AGREES) * size.count)
    ends = (parallel.low, parallel.high)
    is_clear = all(end is not None and near[0] <= end <= near[1] for end in ends)  # a wide one covers any
    return replace(signal, is_clear=signal.is_clear and is_clear)


def _thread_count(look: Look) -> grading.Signal:
    """Without a gauge: threads of the processes do not grow, and are enough for what is at work at once."""
    found, parallel = look.found, look.found.parallelism
    now, before = _threads(found.top), _before(look)
    then = None if before is None else _threads(before)
    if now is None or isinstance(parallel, Insufficient):
        lack = parallel.reason if isinstance(parallel, Insufficient) else "threads were not read"
        return grading.stated("pool.size", None, text=f"no gauge of busy threads; {lack}")
    grows = before is not None and then is not None and now - then >= GROWING * (found.top.load - before.load)
    too_few = parallel.point > (1 + AGREES) * now and (parallel.low is None or parallel.low > now)
    most_idle = now * IDLE_SHARE - IDLE_MORE > parallel.point
    is_open = most_idle or then is None or not (_is_whole(parallel) or _grew(found, now))
    passed = False if grows or too_few else None if is_open else True
    text = (
        f"throughput x time alone is {parallel.point:.3g} at work at once; {now:.0f} threads at "
        f"{words.users(found.top.load)}"
    )
    if before is not None and then is not None:
        text += f", {then:.0f} at {words.users(before.load)}"
    signal = grading.stated("pool.size", passed, text=text, chip=f"{parallel.point:.3g} at once")
    seen = replace(signal.evidence, value=parallel.point, low=parallel.low, high=parallel.high)
    return replace(signal, evidence=seen)


def _is_whole(parallel: Interval) -> bool:
    """Whether threads could be at work: whoever lets through by the clock knows no whole numbers."""
    nearest = max(1, round(parallel.point))
    return abs(parallel.point / nearest - 1) <= WHOLE or parallel.covers(nearest)


def _grew(found: waits.Full, now: float) -> bool:
    """Whether threads were begun with the load, up to a number that then stayed."""
    first = _threads(found.curve.steps[0])
    return first is not None and now >= first + 1


def _threads(step: Step) -> float | None:
    counts = [process.threads for process in step.processes]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _before(look: Look) -> Step | None:
    """The next lower level, on the plateau or not."""
    below = [step for step in look.found.curve.steps if step.load < look.found.top.load]
    return below[-1] if below else None


def _rivals(facts: Facts, look: Look) -> list[Counter]:
    found = look.found
    line = next((one for one in found.top.places if held.is_line(found, one)), None)
    told = [one for one in found.top.places if one.kind in ("lock", "pool", "unknown")]
    if line is not None:
        behind = grading.rival(
            "line behind the threads", f"{held.told(line.held)}, {held.told(line.waiting)}", False
        )
    elif told:
        behind = grading.rival("line behind the threads", f"{held.told(told[0].held)}: no line there", True)
    elif isinstance(look.compared, str):
        behind = grading.rival("line behind the threads", look.compared, None)
    else:
        behind = grading.rival("line behind the threads", "what needs nothing behind waits as long", True)
    return [*waits.rivals(facts, found), behind]


def _count_of(look: Look) -> float:
    if look.gauge is not None and look.size is not None:
        return look.size.count
    parallel = look.found.parallelism
    return parallel.point if isinstance(parallel, Interval) else 0.0


def _statement(look: Look, grade: Grade) -> str:
    most, many = look.found.most, f"{_count_of(look):.3g}"
    verb = "may be" if grade is Grade.SUSPECTED else "are"
    if look.gauge is not None:
        if round(_count_of(look)) == 1:
            verb = "may be" if grade is Grade.SUSPECTED else "is"
            return f"The only thread {verb} taken: {most}, every further request waits for it"
        return f"All {many} threads {verb} taken: {most}, every further request waits for one"
    return f"Threads {verb} all taken: {many} at once, {most}, every further request waits"


def _explanation(look: Look) -> str:
    found = look.found
    text = (
        f"At {words.users(found.top.load)} {numbers.percent(found.waiting_share)} of the response time is "
        "waiting, and the CPU has room."
    )
    if isinstance(look.compared, str):
        return text
    last = look.compared[-1]
    wait = numbers.with_unit(last.probe_s, "s")
    return f"{text} {last.probe.label} waits {wait} as well, though it needs nothing else."


def _advice(look: Look) -> str:
    rate, many = look.found.rate, _count_of(look)
    queue = "put a bounded queue with a short time-out before them"
    if isinstance(rate, Insufficient) or not many:
        return f"More threads, as many as what lies behind serves; {queue}."
    each = numbers.with_unit(many / rate.point, "s")
    return (
        f"{round(2 * many)} threads carry {numbers.with_unit(2 * rate.point, '1/s')} at {each} a request, "
        f"if what lies behind does; {queue}."
    )


def _silence(facts: Facts, look: Look) -> str:
    return grading.silence(look.found.curve.label, _signals(facts, look), _rivals(facts, look))
