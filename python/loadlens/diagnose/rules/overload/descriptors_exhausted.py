"""Requests fail because a process of the service may open no more files.

**Means.** Each connection, file and pipe takes one of the descriptors that a process may have. When all are
taken, opening a file and accepting or making a connection fail at once (EMFILE), until a request gives some
back.

**Needs.** At least 0.1 % of the requests fail at the highest load that has failures, or at one that was ended
because of them, and at least twice their share at the lowest load. In addition, one sign of descriptors: a
process that has 90 % of those that it may have at that load; or words of the server, in its log or in failing
answers, once for every ten failures or more. Words alone make the finding at most probable. Where the
processes' descriptors were read and none came near its limit, words leave it suspected.

**Ruled out by.** Failures at the lowest load already. A log that says that a connection found no local port
leaves it open which of the two ran out. Many open descriptors without failures are no finding.

**Thresholds.** 0.1 % and twice: as for `db.lock-timeouts`. 90 %: descriptors are counted twice a second, and
a request that fails gives back at once what it holds; a process at rest has far fewer. One for every ten:
fewer words may be about something else.

**Do.** Allow more open files (`ulimit -n`, `LimitNOFILE`), and close what a request opens before it waits for
something else. Descriptors that stay open after the load are never closed: find who opens them.

**Confirm.** Twice the limit: failures begin at twice as many requests at once. If they begin after twice as
many requests instead, descriptors are not closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve
from loadlens.diagnose.observe.vain_waits import LEAST_SHARE, RISES, SPOKEN_FOR
from loadlens.measure.curve import failed_share
from loadlens.model.facts import Curve, EndedLevel, Facts, LogSign, OpenFiles, Step
from loadlens.model.finding import Counter, Grade, Setting
from loadlens.present import load_text, numbers

ID = "descriptors.exhausted"
TITLE = "a process may open no more files"
EXPLAINS: tuple[str, ...] = (
    "requests.in-flight-limit",
    "requests.stuck",
    "outside.handler-wait",
    "retrograde.throughput",
    "pause.periodic",
    "pause.aperiodic",
    "shed.overload",
    "timeouts.cliff",
    "accept.drops",
    "saturation.plateau",
    "processes.ended",
)

TAKEN = 0.90  # of the descriptors that a process may have


@dataclass(frozen=True, slots=True)
class FailingLevel:
    """A level of a curve that has failures, and its fullest process."""

    curve: Curve
    step: Step | EndedLevel
    process: OpenFiles | None  # none: descriptors were not read

    @property
    def at(self) -> str:
        """Return the load in words."""
        return load_text.load_of(self.curve, self.step)

    @property
    def sign(self) -> LogSign | None:
        """Return what the server says of descriptors."""
        return self.step.sign("descriptors")

    @property
    def is_full(self) -> bool:
        """True if a process has nearly all descriptors that it may have."""
        return self.process is not None and self.process.share >= TAKEN


def observe(facts: Facts) -> Sequence[FailingLevel] | Lacking | Nothing:
    """Return the failing levels that have a sign of descriptors, the one that fails most first."""
    steps = [step for curve in facts.curves for step in curve.steps]
    if not any(step.issued is not None for step in steps):
        return Lacking("needs what became of each request")
    failing = [level for curve in facts.curves if (level := _failing(curve)) is not None]
    if not failing:
        return Nothing("no request failed")
    signed = [level for level in failing if level.sign is not None or level.is_full]
    if signed:
        return sorted(signed, key=lambda level: failed_share(level.step), reverse=True)
    read = [level.process for level in failing if level.process is not None]
    fullest = max(read, key=lambda each: each.share, default=None)
    words = "neither the log nor failing answers name descriptors"
    return Nothing(words if fullest is None else f"{words}; {_open(fullest)}")


def _failing(curve: Curve) -> FailingLevel | None:
    """Return the highest level with failures; if it shows nothing, one that was ended."""
    highest = [step for step in curve.steps if step.failed_count][-1:]
    ended = [level for level in curve.ended if level.failed_count]
    levels = [
        *(FailingLevel(curve, step, _fullest(step)) for step in highest),
        *(FailingLevel(curve, level, level.open_files) for level in ended),
    ]
    return max(levels, key=_shows_most, default=None)


def _shows_most(level: FailingLevel) -> tuple[bool, bool, bool]:
    return level.is_full, level.sign is not None, isinstance(level.step, Step)


def _fullest(step: Step) -> OpenFiles | None:
    opened = [
        OpenFiles(process.label, process.descriptors, process.descriptor_limit)
        for process in step.processes
        if process.descriptors and process.descriptor_limit
    ]
    return max(opened, key=lambda each: each.share, default=None)


def _open(process: OpenFiles) -> str:
    return f"{process.count:,.0f} of {process.limit:,.0f} descriptors are open in {process.label}"


def claim(facts: Facts, level: FailingLevel) -> Claim:
    """Hold failures against the open descriptors and the words of the server."""
    share, named, opened = failed_share(level.step), _named(level), _opened(level)
    failed = grading.stated(
        "errors.share",
        share >= LEAST_SHARE,
        text=f"{numbers.percent(share)} of the requests fail at {level.at} "
        f"(limit {numbers.percent(LEAST_SHARE)})",
        chip=f"{numbers.percent(share)} fail",
    )
    signals = [failed, _rise(level)]
    if level.is_full:
        signals.append(opened)
    else:
        signals += [named] if level.process is None else [named, opened]

    def words(_: Grade) -> Words:
        process, many = level.process, ""
        most = None if process is None else process.limit
        if process is not None and level.is_full:
            many = f", {process.count:,.0f} of {process.limit:,.0f} are open"
        says = "" if level.sign is None else f" {level.sign.text[0].upper()}{level.sign.text[1:]}."
        return Words(
            statement=f"{numbers.percent(share)} of requests fail at {level.at}: descriptors run out{many}",
            explanation=f"Without a descriptor, opening a file or a connection fails at once.{says}",
            advice="Allow more open files (ulimit -n, LimitNOFILE), and close what a request opens before it "
            "waits for something else.",
            confirm="twice the limit: failures begin at twice as many requests at once",
            impact=share,
            unknown=() if level.is_full else ("how many descriptors were open when requests failed",),
            setting=Setting.exactly("files", most) if most else None,
        )

    made = on_curve(
        level.curve,
        signals,
        [_ports(level.step)],
        words,
        cap=Grade.STRONG if level.is_full else Grade.PROBABLE,
        evidence=[signal.evidence for signal in (failed, _rise(level), opened, named)],
    )
    return replace(made, curves=tuple(dict.fromkeys([*made.curves, *_named_on(facts)])))


def _named_on(facts: Facts) -> Iterator[str]:
    """Yield the curves on which the server speaks of descriptors, also where trials give no figures."""
    for curve in facts.curves:
        levels: tuple[Step | EndedLevel, ...] = (*curve.steps, *curve.ended)
        for level in levels:
            sign, failed = level.sign("descriptors"), sum(mode.count for mode in level.failures)
            is_many = failed >= LEAST_SHARE * (level.issued or 0) and failed > 0
            if sign is not None and is_many and sign.count >= SPOKEN_FOR * failed:
                yield curve.label
                break


def _rise(level: FailingLevel) -> grading.Signal:
    lowest, share = level.curve.steps[0], failed_share(level.step)
    if lowest is level.step:
        text = "no lower load shows whether as many fail there"
        return grading.stated("errors.rise", False if level.curve.steps[1:] else None, text=text)
    before = failed_share(lowest)
    text = f"{numbers.percent(before)} at the lowest load, {numbers.percent(share)} at {level.at}"
    return grading.stated("errors.rise", share >= RISES * before, text=text)


def _named(level: FailingLevel) -> grading.Signal:
    sign = level.sign
    if sign is None:
        text = "neither the log nor failing answers name descriptors"
        return grading.stated("server.log", None, text=text)
    passed = True if sign.count >= SPOKEN_FOR * level.step.failed_count else None
    return grading.stated("server.log", passed, text=sign.text, chip=sign.chip)


def _opened(level: FailingLevel) -> grading.Signal:
    process = level.process
    if process is None:
        text = "how many descriptors a process has open was not read"
        return grading.stated("descriptors.open", None, text=text)
    return grading.stated(
        "descriptors.open",
        True if level.is_full else None,  # a look between two peaks finds fewer
        text=f"{_open(process)} (limit {numbers.percent(TAKEN)} of them)",
        chip=f"{process.count:,.0f} of {process.limit:,.0f} open",
        value=process.count,
        threshold=TAKEN * process.limit,
    )


def _ports(step: Step | EndedLevel) -> Counter:
    sign, name = step.sign("ports"), "local ports"
    if sign is None:
        return grading.rival(name, "no log says that a connection found no local port", True)
    return grading.rival(name, sign.text, None)


assess = assessing(ID, TITLE, observe, claim)
