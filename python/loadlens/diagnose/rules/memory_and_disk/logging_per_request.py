"""A line of a log for each request costs capacity.

**Means.** Each request writes to a log and waits for it, or pays for it in CPU time. Without the log the same
service does more.

**Needs.** Files that the service writes at their end grow by 40 bytes or more for each request, in proportion
to the requests. And a cost: storage holds requests up by what `disk.bound` asks for, threads that sleep until
it has done something included; else some task of the machine waits for storage at least 5 % of the time.

**Ruled out by.** More than 4 KiB a request: that is data, not a line. A comparison, where the study has one:
two curves that are asked the same and differ in one factor only, of which one writes lines and the other does
not. A generator that did not send in time, or other programs on one of the two, leave such a pair out or
unsure.

**Thresholds.** 40 bytes are a time, a path and a status. 5 %: the least that a change of capacity is worth.
5 % of the looks at which another file had changed: data that is kept for requests changes at every look. A
page beyond those of the line: the file system's own.

**Grade.** Suspected at most where the sleep may be for something else: that lines are written and storage is
waited for does not show that it is for them. Probable where storage holds requests up and lines are all that
there is to wait for: no other file that the service holds open changed, hardly anything is read, and what
goes to storage for a request is the pages of its line and one more. A file that is opened, written and closed
again within a request is not seen, so it is no surer than that. With a comparison it is probable when the
curve without lines does at least 1.05 times as much, its whole interval above, and absent when it does not:
what grows at the end of a file may be a journal of data, and whoever chose the factor knows what else it
changes.

**Do.** Write lines in batches or from another thread, sample them, or log less.

**Confirm.** The same load with the log off: throughput rises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.observe import disk_writes
from loadlens.diagnose.rules.memory_and_disk import disk_bound
from loadlens.estimate.comparison import compare_pairs
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.thresholds import PAGED_IN
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Absent, Counter, Evidence, Finding, Grade, NotAssessed
from loadlens.present import load_text, numbers

ID = "logging.per-request"
TITLE = "logging each request costs capacity"
EXPLAINS: tuple[str, ...] = ("disk.bound", "saturation.plateau", "downstream.serialised", "db.lock")

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
class _Pair:
    """Two curves that differ in one factor, at the highest load that both have."""

    logged: Curve
    silent: Curve
    line: float  # bytes of a request
    at: Step  # of the one with lines
    off: Step  # of the one without
    ratio: Interval  # throughput without over with


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look for a comparison first, else for who waits for lines, else for lines and waiting."""
    lines = {
        c.label: line for c in facts.curves if (line := disk_writes.per_request(c, "appended")) is not None
    }
    if not lines:
        return NotAssessed(ID, TITLE, f"{disk_writes.why_none(facts)}, or nobody looked at logs then")
    pairs = [pair for one in facts.curves for other in facts.curves if (pair := _pair(one, other, lines))]
    if pairs:
        return _compared(facts, max(pairs, key=lambda pair: pair.ratio.point))
    told = [(curve, lines[curve.label]) for curve in facts.curves if curve.label in lines]
    found = [f for curve, line in told if (f := _waited_for(curve, line) or _suspected(curve, line))]
    if found:
        best = max(one.grade for one in found)
        return grading.for_all([one for one in found if one.grade == best])
    return _silence(*max(told, key=lambda one: one[1].mean))


# --- a comparison -----------------------------------------------------------------------------------------


def _pair(logged: Curve, silent: Curve, lines: dict[str, disk_writes.PerRequest]) -> _Pair | None:
    if logged.label not in lines or silent.label not in lines or not _differ_once(logged, silent):
        return None
    line, other = lines[logged.label].mean, lines[silent.label].mean
    if not LEAST_LINE <= line <= MOST_LINE or other > WITHOUT * line:
        return None
    by_load = {step.load: step for step in silent.steps}
    common = [(step, by_load[step.load]) for step in logged.steps if step.load in by_load]
    if not common:
        return None
    with_lines, without = common[-1]
    if not _ask_the_same(with_lines, without):
        return None  # who reads instead of writing writes no line either
    ratio = _ratio(with_lines.throughput_trials, without.throughput_trials)
    return (
        None if isinstance(ratio, Insufficient) else _Pair(logged, silent, line, with_lines, without, ratio)
    )


def _ask_the_same(one: Step, other: Step) -> bool:
    return [kind.request for kind in one.classes] == [kind.request for kind in other.classes]


def _differ_once(one: Curve, other: Curve) -> bool:
    mine, theirs = dict(one.levels), dict(other.levels)
    return mine.keys() == theirs.keys() and sum(mine[factor] != theirs[factor] for factor in mine) == 1


def _ratio(with_lines: tuple[float, ...], without: tuple[float, ...]) -> Interval | Insufficient:
    """Trials of one block belong together."""
    pairs = min(len(with_lines), len(without))
    arms = np.array(with_lines[:pairs]), np.array(without[:pairs])
    if any((arm <= 0).any() for arm in arms):
        return Insufficient("a trial without a success")
    found = compare_pairs(*arms)
    return found if isinstance(found, Insufficient) else found.ratio


def _compared(facts: Facts, pair: _Pair) -> Finding | Absent:
    ratio, low, high = pair.ratio.point, pair.ratio.low, pair.ratio.high
    interval = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
    text = f"without lines of {pair.line:.0f} bytes a request it does {ratio:.2f} times as much{interval}"
    if low is None or low < GAIN:
        return Absent(ID, TITLE, f"{text}, needs {GAIN} with its whole interval")
    rivals = _rivals(facts, pair)
    against = grading.against(rivals)
    if against is not None:
        return Absent(ID, TITLE, f"{text}; {against.rival}: {against.text}")
    rise = numbers.with_unit(pair.line, "bytes")
    cost = numbers.percent(1 - 1 / ratio)
    return Finding(
        rule=ID,
        grade=Grade.PROBABLE,
        impact=1 - 1 / ratio,
        scope=f"{pair.logged.label} against {pair.silent.label}",
        statement=grading.statement(f"Lines of {rise} a request cost {cost} of the throughput"),
        explanation=f"At a load of {pair.at.load:g} the curve without lines of {rise} a request does "
        f"{ratio:.2f} times as much, and differs in one factor only.",
        evidence=(
            Evidence("log.ratio", text, f"{ratio:.2f} times without it", ratio, low, high, GAIN, True),
            Evidence(
                "log.bytes", f"{rise} a request", f"{rise} a request", pair.line, None, None, LEAST_LINE, True
            ),
        ),
        counter=rivals,
        advice="Write lines in batches or from another thread, or log a sample of the requests: "
        f"up to {ratio:.2f} times the throughput.",
        confirm="the log alone off, and nothing else changed: the same ratio",
        unknown=("whether what is written is a log, and what else the factor changes",),
        curves=(pair.logged.label,),
    )


def _rivals(facts: Facts, pair: _Pair) -> tuple[Counter, ...]:
    """Of both curves, since each may be the one that something else held down or not."""
    others = [grading.interference_rival(step, facts.cores) for step in (pair.at, pair.off)]
    sent = [grading.generator_rival(step) for step in (pair.at, pair.off)]
    return (
        grading.rival("a journal of data", "what grows at the end of a file need not be a log", None),
        min(sent, key=_weight),
        min(others, key=_weight),
    )


def _weight(rival: Counter) -> int:
    """What was found comes before what is not known, and that before what was ruled out."""
    return (False, None, True).index(rival.ruled_out)


# --- without one ------------------------------------------------------------------------------------------


def _lines(line: disk_writes.PerRequest) -> list[grading.Signal]:
    """Whether each request adds a line, at any load."""
    spread = line.variation
    bytes_ = f"files that are written at their end grow by {disk_writes.size(line.mean)} a request"
    size = grading.stated(
        "log.bytes",
        LEAST_LINE <= line.mean <= MOST_LINE,
        text=f"{bytes_} (limits {LEAST_LINE:.0f} bytes and {disk_writes.size(MOST_LINE)})",
        chip=f"{disk_writes.size(line.mean)} a request",
    )
    steady = grading.stated(
        "log.proportional",
        None if spread is None else spread <= PROPORTIONAL,
        text="there is one level of load only"
        if spread is None
        else (
            f"over the levels that varies by {numbers.percent(spread)} (limit "
            f"{numbers.percent(PROPORTIONAL)})"
        ),
    )
    return [size, steady]


def _signals(curve: Curve, line: disk_writes.PerRequest) -> list[grading.Signal]:
    storage = disk_writes.known(curve)[-1][1]
    waits = grading.at_least(
        "storage.waiting",
        storage.waiting,
        WAITING,
        text=f"some task waits for storage {numbers.shown(storage.waiting)} of the time "
        f"(limit {numbers.percent(WAITING)})",
        chip="storage is waited for",
    )
    return [*_lines(line), waits]


def _waited_for(curve: Curve, line: disk_writes.PerRequest) -> Finding | None:
    """Storage holds requests up, and lines are all that they can wait for; none where that is not sure."""
    step, storage = disk_writes.known(curve)[-1]
    waits = disk_bound.held_up(curve, step, storage)
    signals = [*_lines(line), *waits]
    rivals = [_elsewhere(curve), _whole_files(curve, line), _reading(curve), grading.generator_rival(step)]
    grade = grading.grade_of(signals, rivals, cap=min(Grade.PROBABLE, grading.cap_of(curve)))
    if grade is None or grade < Grade.PROBABLE or any(rival.ruled_out is not True for rival in rivals):
        return None
    each, part = disk_writes.size(line.mean), waits[0].evidence.value or 0.0
    return Finding(
        rule=ID,
        grade=grade,
        impact=min(1.0, part),
        scope=curve.label,
        statement=grading.statement(
            f"Requests wait {numbers.percent(part)} of the time until their {each} of log are on the disk"
        ),
        explanation=f"At {load_text.load_with_unit(curve, step)} these lines are all that the service "
        f"writes, "
        "and it reads nothing: what it waits for in the kernel is that they are on the disk.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Write lines in batches or from another thread, and do not wait until each is on the disk.",
        confirm="the same load with the log off: throughput rises",
        unknown=("files that are opened, written and closed again within a request",),
        curves=(curve.label,),
    )


def _elsewhere(curve: Curve) -> Counter:
    """Of all levels together: a service that keeps data does so at each."""
    name, looks = "data in other files", [storage.stored for _, storage in disk_writes.known(curve)]
    changed, of = (sum(part) for part in zip(*(one or (0, 0) for one in looks), strict=True))
    if None in looks or of < FEWEST_LOOKS:
        return grading.rival(name, f"{of} looks at whether other files changed are too few", None)
    text = (
        f"a file that is written elsewhere than at its end had changed at {changed} of {of} looks "
        f"(limit {numbers.percent(ELSEWHERE)})"
    )
    return grading.rival(name, text, True if changed <= ELSEWHERE * of else None)


def _whole_files(curve: Curve, line: disk_writes.PerRequest) -> Counter:
    """What is kept beside lines, in files that nobody saw, takes pages as well."""
    name, written = "data in files of a request", disk_writes.per_request(curve, "written")
    if written is None:
        return grading.rival(name, "what goes to storage was not read", None)
    most = (math.ceil(line.mean / PAGE) + 1) * PAGE
    text = (
        f"{disk_writes.size(written.mean)} a request go to storage, "
        f"its line needs {disk_writes.size(most)} at most"
    )
    return grading.rival(name, text, True if written.mean <= most else None)


def _reading(curve: Curve) -> Counter:
    name = "reading from storage"
    read, faults = disk_writes.per_request(curve, "read"), disk_writes.per_request(curve, "major_faults")
    if read is None or faults is None:
        return grading.rival(name, "what comes from storage was not read", None)
    text = f"{disk_writes.size(read.mean)} and {faults.mean:.2g} pages of memory a request come from storage"
    is_little = read.mean <= disk_bound.LEAST_BYTES and faults.mean <= PAGED_IN
    return grading.rival(name, text, True if is_little else None)


def _suspected(curve: Curve, line: disk_writes.PerRequest) -> Finding | None:
    signals, (step, storage) = _signals(curve, line), disk_writes.known(curve)[-1]
    rivals = [disk_writes.own_rival(storage), grading.generator_rival(step)]
    # A cost that nobody looked at is none that may be told: nearly every service writes a log.
    if any(s.evidence.passed is not True for s in signals) or any(r.ruled_out is False for r in rivals):
        return None
    each = disk_writes.size(line.mean)
    return Finding(
        rule=ID,
        grade=Grade.SUSPECTED,
        impact=min(1.0, signals[2].evidence.value or 0.0),
        scope=curve.label,
        statement=grading.statement(f"Each request adds {each} to a log, and storage is waited for"),
        explanation="Whether the lines cost capacity shows only where the same load runs without them.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice="Run the same load once with the log off; if throughput rises, write lines in batches.",
        confirm="the same load with the log off: throughput rises by more than 5 %",
        unknown=("what the log costs: nothing was run without it",),
        curves=(curve.label,),
        explains_others=False,  # so much is true of many services that wait for their data
    )


def _silence(curve: Curve, line: disk_writes.PerRequest) -> Absent | NotAssessed:
    """Of the curve with the longest lines."""
    signals = _signals(curve, line)
    if any(signal.evidence.passed is False for signal in signals):
        return Absent(ID, TITLE, grading.unclear(signals))
    return NotAssessed(ID, TITLE, f"{grading.unclear(signals)}; the same load with the log off would decide")
