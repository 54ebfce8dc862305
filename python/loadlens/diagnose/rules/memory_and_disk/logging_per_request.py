"""A line of a log for each request costs capacity.

**Means.** Each request writes to a log and waits for it, or pays for it in CPU time. Without the log the same
service does more.

**Needs.** Files to which the service appends grow by 40 bytes or more per request, in proportion to the
requests. In addition, a cost: storage holds requests up as `disk.bound` requires, including threads that
sleep until the storage has finished; otherwise some task of the machine waits for storage at least 5 % of the
time.

Where stacks were sampled, they show it as well: throughput has stopped growing, and at the highest load more
than half of the threads or tasks at work, beyond chance, are in a library that logs, called from the
service's own code. Such a finding stands on one trial and is at most probable. A generator that is the limit
rules it out.

**Ruled out by.** More than 4 KiB per request: that is data, not a line. A comparison, where the study has
one: two curves with the same requests that differ in one factor only, of which one writes lines and the other
does not. A generator that did not send in time, or other programs on one of the two curves, exclude such a
pair or leave it unsure.

**Thresholds.** 40 bytes are a time, a path and a status. 5 %: the least change of capacity that is worth it.
5 % of the readings at which another file had changed: data that is stored per request changes at every
reading. One page beyond those of the line: the file system's own.

**Grade.** At most suspected where the sleep may have another reason: written lines and waits for storage do
not show that the waits are for the lines. Probable where storage holds requests up and the lines are all that
there is to wait for: no other file that the service holds open changed, hardly anything is read, and the
bytes that go to storage per request are the pages of its line and one more. A file that is opened, written
and closed within a request is not seen, so the grade is not higher. With a comparison the finding is probable
if the curve without lines does at least 1.05 times as much, its whole interval above that, and absent
otherwise: an appended file may be a journal of data, and only the author of the study knows what else the
factor changes.

**Do.** Write lines in batches or from another thread, sample them, or log less.

**Confirm.** The same load with the log off: throughput rises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, for_all, on_curve
from loadlens.diagnose.observe import disk_writes
from loadlens.diagnose.observe.waits import saturated
from loadlens.diagnose.rules.memory_and_disk import disk_bound
from loadlens.estimate.comparison import ratio_of_pairs
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.thresholds import PAGED_IN
from loadlens.model.facts import Curve, Facts, Logging, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade
from loadlens.present import load_text, numbers
from loadlens.present.numbers import about

ID = "logging.per-request"
TITLE = "logging each request costs capacity"
EXPLAINS: tuple[str, ...] = (
    *("disk.bound", "saturation.plateau", "downstream.serialised", "db.lock", "threads.pool-limit"),
    "outside.handler-wait",
)

LEAST_LINE = 40.0  # bytes of a request
MOST_LINE = 4096.0
PROPORTIONAL = 0.25  # coefficient of variation over the levels: buffers are written in bursts
WITHOUT = 0.1  # of the bytes of a request: a curve below is one without lines
WAITING = 0.05  # of the time some task waits for storage
GAIN = 1.05  # throughput without lines over that with them
ELSEWHERE = 0.05  # of the looks at which another file had changed
FEWEST_LOOKS = 10
PAGE = 4096.0


@dataclass(frozen=True, slots=True)
class Pair:
    """Two curves that differ in one factor, at the highest load that both have."""

    logged: Curve
    silent: Curve
    line: float  # bytes of a request
    at: Step  # of the one with lines
    off: Step  # of the one without
    ratio: Interval  # throughput without over with


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one curve, which is compared with none."""

    level: disk_bound.Level
    line: disk_writes.PerRequest


@dataclass(frozen=True, slots=True)
class LogCall:
    """A plateau at whose highest level most of what is at work logs."""

    curve: Curve
    top: Step
    rate: Estimate
    calls: Logging


def observe(facts: Facts) -> Sequence[Pair | Lines | LogCall] | Lacking:
    """Return the comparison with the largest ratio; where there is none, code that logs, or all lines."""
    calls = [call for curve in facts.curves if (call := _call(curve)) is not None]
    lines = [
        Lines(disk_bound.Level(curve, *disk_writes.known(curve)[-1]), line)
        for curve in facts.curves
        if (line := disk_writes.per_request(curve, "appended")) is not None
    ]
    if not lines and not calls:
        return Lacking(f"{disk_writes.why_none(facts)}, or which files grew was not read")
    pairs = [pair for logged in lines for silent in lines if (pair := _pair(logged, silent)) is not None]
    return [max(pairs, key=lambda pair: pair.ratio.point)] if pairs else [*calls, *lines]


def claim(facts: Facts, seen: Pair | Lines | LogCall) -> Claim | Nothing:
    """Compare the curves of a pair; without one, look for what requests that write lines wait for."""
    if isinstance(seen, LogCall):
        return _in_code(facts, seen)
    return _compared(facts, seen) if isinstance(seen, Pair) else _waited_for(seen) or _suspected(seen)


# --- a comparison -----------------------------------------------------------------------------------------


def _pair(logged: Lines, silent: Lines) -> Pair | None:
    with_lines, without, line = logged.level.curve, silent.level.curve, logged.line.mean
    factors, others = dict(with_lines.levels), dict(without.levels)
    if factors.keys() != others.keys() or sum(factors[name] != others[name] for name in factors) != 1:
        return None
    if not LEAST_LINE <= line <= MOST_LINE or silent.line.mean > WITHOUT * line:
        return None
    by_load = {step.load: step for step in without.steps}
    common = [(step, by_load[step.load]) for step in with_lines.steps if step.load in by_load]
    if not common:
        return None
    at, off = common[-1]
    if [kind.request for kind in at.classes] != [kind.request for kind in off.classes]:
        return None  # who reads instead of writing writes no line either
    trials = min(len(at.throughput_trials), len(off.throughput_trials))  # those of one block belong together
    ratio = ratio_of_pairs(np.array(at.throughput_trials[:trials]), np.array(off.throughput_trials[:trials]))
    return None if isinstance(ratio, Insufficient) else Pair(with_lines, without, line, at, off, ratio)


def _compared(facts: Facts, pair: Pair) -> Claim | Nothing:
    ratio, low, high = pair.ratio.point, pair.ratio.low, pair.ratio.high
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    text = f"without lines of {pair.line:.0f} bytes per request it does {ratio:.2f} times as much{interval}"
    if low is None or low < GAIN:
        return Nothing(f"{text}, needs {GAIN} with its whole interval")
    # Of both curves, as each may be the one that something else held down.
    sent = [grading.generator_rival(step) for step in (pair.at, pair.off)]
    others = [grading.interference_rival(step, facts.cores) for step in (pair.at, pair.off)]
    rivals = [
        grading.rival("a journal of data", "what grows at the end of a file need not be a log", None),
        min(sent, key=_weight),
        min(others, key=_weight),
    ]
    if (rival := grading.against(rivals)) is not None:
        return Nothing(f"{text}; {rival.rival}: {rival.text}")
    rise = numbers.with_unit(pair.line, "bytes")
    each = f"{rise} per request"
    signals = [
        grading.at_least("log.ratio", pair.ratio, GAIN, text=text, chip=f"{ratio:.2f} times without it"),
        grading.stated("log.bytes", True, text=each, chip=each, value=pair.line, threshold=LEAST_LINE),
    ]

    def words(grade: Grade) -> Words:
        return Words(
            statement=f"Lines of {each} cost {numbers.percent(1 - 1 / ratio)} of the throughput",
            explanation=f"At a load of {pair.at.load:g} the curve without lines of {each} does "
            f"{ratio:.2f} times as much, and differs in one factor only.",
            advice="Write lines in batches or from another thread, or log a sample of the requests: "
            f"up to {ratio:.2f} times the throughput.",
            confirm="the log alone off, and nothing else changed: the same ratio",
            impact=1 - 1 / ratio,
            unknown=("whether what is written is a log, and what else the factor changes",),
            scope=f"{pair.logged.label} against {pair.silent.label}",
        )

    return on_curve(pair.logged, signals, rivals, words)


def _weight(rival: Counter) -> int:
    """Order rivals: found, not known, ruled out."""
    return (False, None, True).index(rival.ruled_out)


# --- code that logs ---------------------------------------------------------------------------------------


def _call(curve: Curve) -> LogCall | None:
    plateau = saturated(curve)
    if plateau is None:
        return None
    top, rate = plateau
    return None if top.logging is None else LogCall(curve, top, rate, top.logging)


def _in_code(facts: Facts, call: LogCall) -> Claim:
    """Claim that the log is the limit, unless the generator is; other programs leave it open."""
    calls, rate = call.calls, numbers.short(call.rate)
    who = f"{numbers.about(calls.inside)} of {numbers.about(calls.at_work)} {calls.plural}"
    signals = [
        grading.stated(
            "log.code",
            True,
            text=f"{who} at work are in {calls.function}, called at {calls.line} (limit: more than half)",
            chip=f"in the log at {calls.line}",
            value=calls.inside / calls.at_work,
        )
    ]
    rivals = [grading.generator_rival(call.top), grading.interference_rival(call.top, facts.cores)]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"The log holds requests up at {rate}: {who} are in it at {calls.line}",
            explanation=f"They are in {calls.function}: they write, or wait until the others have written.",
            advice="Hand lines to a queue that another thread empties, write them in batches, or log less.",
            confirm="the same load with the log off: throughput rises",
            impact=calls.inside / calls.at_work,
        )

    return on_curve(call.curve, signals, rivals, words, cap=Grade.PROBABLE)


# --- without one ------------------------------------------------------------------------------------------


def _waited_for(lines: Lines) -> Claim | None:
    """Claim that requests wait for their lines; none unless these are all that they can wait for."""
    level, line = lines.level, lines.line
    waits = disk_bound.held_up(level)
    signals = [*_added(line), *waits]
    rivals = [
        _elsewhere(level.curve),
        _whole_files(level.curve, line),
        _reading(level.curve),
        grading.generator_rival(level.step),
    ]
    if not all(s.evidence.passed for s in signals) or not all(rival.ruled_out for rival in rivals):
        return None

    def words(grade: Grade) -> Words:
        part = waits[0].evidence.value or 0.0
        return Words(
            statement=f"Requests wait {numbers.percent(part)} of the time until their "
            f"{disk_writes.size(line.mean)} of log are on the disk",
            explanation=f"At {load_text.load_with_unit(level.curve, level.step)} these lines are all that "
            "the service writes, and it reads nothing: what it waits for in the kernel is that they are on "
            "the disk.",
            advice="Write lines in batches or from another thread, and do not wait until each is on the "
            "disk.",
            confirm="the same load with the log off: throughput rises",
            impact=part,
            unknown=("files that are opened, written and closed again within a request",),
        )

    return on_curve(level.curve, signals, rivals, words, cap=Grade.PROBABLE)


def _added(line: disk_writes.PerRequest) -> list[grading.Signal]:
    """Return the signals that each request adds a line, at any load."""
    each, spread = f"{disk_writes.size(line.mean)} per request", line.variation
    limits = f"(limits {LEAST_LINE:.0f} bytes and {disk_writes.size(MOST_LINE)})"
    steady = "there is one level of load only"
    if spread is not None:
        limit = numbers.percent(PROPORTIONAL)
        steady = f"over the levels that varies by {numbers.percent(spread)} (limit {limit})"
    return [
        grading.stated(
            "log.bytes",
            LEAST_LINE <= line.mean <= MOST_LINE,
            text=f"files that are written at their end grow by {each} {limits}",
            chip=each,
        ),
        grading.stated("log.proportional", None if spread is None else spread <= PROPORTIONAL, text=steady),
    ]


def _elsewhere(curve: Curve) -> Counter:
    """Return the rival of data in other files, over all levels: a service that keeps data does so at each."""
    name, looks = "data in other files", [storage.stored for _, storage in disk_writes.known(curve)]
    changed, of = (sum(part) for part in zip(*(look or (0, 0) for look in looks), strict=True))
    if None in looks or of < FEWEST_LOOKS:
        return grading.rival(name, f"{of} looks at whether other files changed are too few", None)
    text = (
        f"a file that is written elsewhere than at its end had changed at {changed} of {of} looks "
        f"(limit {numbers.percent(ELSEWHERE)})"
    )
    return grading.rival(name, text, True if changed <= ELSEWHERE * of else None)


def _whole_files(curve: Curve, line: disk_writes.PerRequest) -> Counter:
    """Return the rival of data in files that no look found: they take pages besides those of the line."""
    name, written = "data in files of a request", disk_writes.per_request(curve, "written")
    if written is None:
        return grading.rival(name, "what goes to storage was not read", None)
    most = (math.ceil(line.mean / PAGE) + 1) * PAGE
    text = (
        f"{disk_writes.size(written.mean)} per request go to storage, its line needs {disk_writes.size(most)}"
    )
    return grading.rival(name, f"{text} at most", True if written.mean <= most else None)


def _reading(curve: Curve) -> Counter:
    name = "reading from storage"
    read, faults = disk_writes.per_request(curve, "read"), disk_writes.per_request(curve, "major_faults")
    if read is None or faults is None:
        return grading.rival(name, "what comes from storage was not read", None)
    pages = about(faults.mean)
    text = f"{disk_writes.size(read.mean)} and {pages} pages of memory per request come from storage"
    is_little = read.mean <= disk_bound.LEAST_BYTES and faults.mean <= PAGED_IN
    return grading.rival(name, text, True if is_little else None)


def _suspected(lines: Lines) -> Claim | Nothing:
    level, signals = lines.level, _cost(lines)
    rivals = [disk_writes.own_rival(level.storage), grading.generator_rival(level.step)]
    # A cost that was not looked at is not reported: nearly every service writes a log.
    if not all(signal.evidence.passed for signal in signals):
        return Nothing("lines are written, and storage is not waited for")

    def words(grade: Grade) -> Words:
        return Words(
            statement=f"Each request adds {disk_writes.size(lines.line.mean)} to a log, and storage is "
            "waited for",
            explanation="Whether the lines cost capacity shows only where the same load runs without them.",
            advice="Run the same load once with the log off; if throughput rises, write lines in batches.",
            confirm="the same load with the log off: throughput rises by more than 5 %",
            impact=signals[2].evidence.value or 0.0,
            unknown=("what the log costs: nothing was run without it",),
        )

    # So much is true of many services that wait for their data.
    return on_curve(level.curve, signals, rivals, words, cap=Grade.SUSPECTED, explains_others=False)


def _cost(lines: Lines) -> list[grading.Signal]:
    """Return the signals that lines are written and that storage is waited for."""
    waiting, limit = lines.level.storage.waiting, numbers.percent(WAITING)
    text = f"some task waits for storage {numbers.shown(waiting)} of the time (limit {limit})"
    chip = "storage is waited for"
    return [
        *_added(lines.line),
        grading.at_least("storage.waiting", waiting, WAITING, text=text, chip=chip),
    ]


def _surest(pairs: Sequence[tuple[Pair | Lines | LogCall, Finding]]) -> Finding:
    best = max(finding.grade for _, finding in pairs)
    return for_all([pair for pair in pairs if pair[1].grade == best])


def _silence(facts: Facts, seen: Sequence[Pair | Lines | LogCall]) -> str | Lacking:
    """Return why the only pair makes no finding; without one, why the longest lines make none."""
    if isinstance(seen[0], LogCall):
        return _in_code(facts, seen[0]).objection
    if isinstance(seen[0], Pair):
        made = _compared(facts, seen[0])
        return made.reason if isinstance(made, Nothing) else made.objection
    lines = [lines for lines in seen if isinstance(lines, Lines)]
    signals = _cost(max(lines, key=lambda lines: lines.line.mean))
    unclear = grading.unclear(signals)
    if grading.contradicted(signals):
        return unclear
    return Lacking(f"{unclear}; the same load with the log off would decide")


assess = assessing(ID, TITLE, observe, claim, choose=_surest, silence=_silence)
