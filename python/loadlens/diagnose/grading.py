"""Grades from signals and rivals: the same for every rule, so that a grade's word means one thing.

A rule collects signals (what it needs) and rivals (what else would look the same). A needed signal that is
contradicted removes the finding; a rival that is found removes it too. What is left is graded by what is
missing: a signal, the sight of a rival, or the distance of an interval from its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure.curve import generator_in_time, others_of
from loadlens.measure.thresholds import FULL_CORES, OTHERS_MATTER
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Evidence, Figure, Finding, Grade
from loadlens.present import numbers
from loadlens.present.numbers import percent

STATEMENT_LENGTH = 90
LITTLE = 0.03  # of the cores: what a service does without the generator is hardly more
LABEL_LENGTH = 24


@dataclass(frozen=True, slots=True)
class Signal:
    """A piece of evidence, and whether its whole interval lies beyond the threshold."""

    evidence: Evidence
    is_clear: bool


def at_least(
    signal: str, figure: Figure | Interval | Insufficient, threshold: float, *, text: str, chip: str = ""
) -> Signal:
    """Require a figure to reach a threshold; a figure that is not known leaves the signal open."""
    return _against(signal, figure, threshold, text, chip, upwards=True)


def at_most(
    signal: str, figure: Figure | Interval | Insufficient, threshold: float, *, text: str, chip: str = ""
) -> Signal:
    """Require a figure to stay below a threshold."""
    return _against(signal, figure, threshold, text, chip, upwards=False)


def stated(
    signal: str,
    passed: bool | np.bool | None,
    *,
    text: str,
    chip: str = "",
    value: float | Estimate | Interval | None = None,
    threshold: float | None = None,
) -> Signal:
    """Make a signal that holds or not, whatever the interval of the value that goes with it."""
    passed = None if passed is None else bool(passed)  # comparisons of numpy give no plain one
    point, low, high = (
        (value.point, value.low, value.high)
        if isinstance(value, (Estimate, Interval))
        else (value, None, None)
    )
    return Signal(Evidence(signal, text, chip, point, low, high, threshold, passed), passed is True)


def _against(
    signal: str,
    figure: Figure | Interval | Insufficient,
    threshold: float,
    text: str,
    chip: str,
    *,
    upwards: bool,
) -> Signal:
    if not isinstance(figure, (Estimate, Interval)):
        lack = f"{text}: {figure.reason}"
        return Signal(Evidence(signal, lack, "", None, None, None, threshold, None), False)
    value, low, high = figure.point, figure.low, figure.high
    passed = bool(value >= threshold if upwards else value <= threshold)
    edge = low if upwards else high
    clear = edge is not None and bool(edge >= threshold if upwards else edge <= threshold)
    return Signal(Evidence(signal, text, chip, value, low, high, threshold, passed), clear)


def grade_of(signals: Sequence[Signal], rivals: Sequence[Counter], *, cap: Grade) -> Grade | None:
    """Return the grade that signals and rivals allow, or none when one of them contradicts the finding.

    Args:
        signals: What the finding needs.
        rivals: What else would look the same; `ruled_out` false: the rival itself was found.
        cap: The highest grade that the design of the run allows.
    """
    if any(s.evidence.passed is False for s in signals) or any(r.ruled_out is False for r in rivals):
        return None
    if any(s.evidence.passed is None for s in signals):
        return Grade.SUSPECTED
    if any(r.ruled_out is None for r in rivals) or not all(s.is_clear for s in signals):
        return min(Grade.PROBABLE, cap)
    return min(Grade.STRONG, cap)


def cap_of(curve: Curve) -> Grade:
    """Return the highest grade that a curve allows: one trial says nothing about the next run."""
    return Grade.PROBABLE if curve.trials < 3 else Grade.STRONG


def unclear(signals: Sequence[Signal]) -> str:
    """Return the first contradicted or missing signal, in words; empty when there is none."""
    for wanted in (False, None):
        for signal in signals:
            if signal.evidence.passed is wanted:
                return signal.evidence.text
    return ""


def contradicted(signals: Sequence[Signal]) -> str:
    """Return the first contradicted signal, in words; empty when there is none."""
    return next((signal.evidence.text for signal in signals if signal.evidence.passed is False), "")


def rival(name: str, text: str, ruled_out: bool | np.bool | None) -> Counter:
    """Return a rival explanation, ruled out or found."""
    return Counter(name, text, None if ruled_out is None else bool(ruled_out))


def left_open(counter: Counter) -> Counter:
    """Return a rival that does not remove the finding by itself: at most it is not excluded."""
    return replace(counter, ruled_out=None) if counter.ruled_out is False else counter


def against(rivals: Sequence[Counter]) -> Counter | None:
    """Return the first rival that was found."""
    return next((counter for counter in rivals if counter.ruled_out is False), None)


# --- what a rule answers ----------------------------------------------------------------------------------


def strongest(findings: Sequence[Finding]) -> Finding:
    """Return the one that stands for all: of the highest grade the one with most at stake."""
    return max(findings, key=lambda finding: (finding.grade, finding.impact))


def for_all(findings: Sequence[Finding]) -> Finding:
    """Return the strongest, with the curves of all."""
    curves = tuple(label for finding in findings for label in finding.curves)
    return replace(strongest(findings), curves=curves)


def seen_on(finding: Finding, curves: Sequence[Curve], *, bounds: Sequence[Curve]) -> Finding:
    """Return a finding for all curves where it was seen; it explains others only where it bounds them."""
    scope = dict.fromkeys(curve.label for curve in curves)
    bound = dict.fromkeys(curve.label for curve in bounds)
    return replace(finding, scope=", ".join(scope), curves=tuple(bound))


def reason(signals: Sequence[Signal], rivals: Sequence[Counter]) -> str:
    """Return why nothing is found: the signal or rival that contradicts it, else what is missing."""
    counter = against(rivals)
    return contradicted(signals) or (unclear(signals) if counter is None else counter.text)


def unwatched(facts: Facts, otherwise: str) -> str:
    """Return why the service's processes are not known: none was watched, or else what else is missing."""
    watched = any(step.processes for curve in facts.curves for step in curve.steps)
    return otherwise if watched else "no process was watched: --pid PID, or --start CMD"


# --- rivals of every rule ---------------------------------------------------------------------------------


def generator_rival(step: Step) -> Counter:
    """Weigh the generator as the cause: ruled out when it sent in time."""
    watch = step.generator
    parts = []
    if watch.busy is not None:
        parts.append(f"busy {percent(watch.busy)}")
    if watch.lag_p99_s is not None:
        parts.append(f"late {numbers.with_unit(watch.lag_p99_s, 's')} at p99")
    if watch.stood_still:
        parts.append(f"stood still {percent(watch.stood_still)} of the time")
    text = ", ".join(parts) or "its health was not recorded"
    if watch.lag_limit_s is not None and watch.lag_p99_s is not None:
        text += f" (limit {numbers.with_unit(watch.lag_limit_s, 's')})"
    return rival("generator", text, generator_in_time(watch))


def shared_cores_rival(curve: Curve, step: Step, cores: int) -> Counter:
    """Weigh contention of generator and services for cores: ruled out when cores were free or apart."""
    generator = step.generator.cpu_cores
    if curve.shares_cores is False:
        return rival("shared cores", "generator and service ran on cores of their own", True)
    if generator is None or not step.processes:
        return rival("shared cores", "CPU of generator or service was not read", None)
    if generator <= LITTLE * cores:
        text = f"the generator uses {generator:.2f} of {cores} cores (limit {percent(LITTLE)})"
        return rival("shared cores", text, True)
    used = generator + step.server_cores
    text = f"generator and service use {used:.2f} of {cores} cores together"
    return rival("shared cores", text, True if used < FULL_CORES * cores else None)


def interference_rival(step: Step, cores: int) -> Counter:
    """Weigh other programs taking the machine's time: ruled out when they used little of it."""
    used = others_of(step)
    if used is None:
        return rival("other programs", "the machine as a whole was not watched", None)
    share = used / cores
    text = f"other programs use {used:.2f} of {cores} cores"
    return rival("other programs", text, True if share < OTHERS_MATTER else None)


# --- figures and words ------------------------------------------------------------------------------------


def short_label(label: str) -> str:
    """Return a label of at most 24 characters; the end is cut."""
    return label if len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH - 2]}.."


def statement(text: str) -> str:
    """Return a statement of at most 90 characters; the end is cut, never the number that stands first."""
    return text if len(text) <= STATEMENT_LENGTH else f"{text[: STATEMENT_LENGTH - 2].rstrip()}.."
