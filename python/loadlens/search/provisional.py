"""Judgements while a search goes on: a provisional line after each level, and whether the answer is certain.

A judgement is what the final answer would say of the trials so far: the same rules on the same record.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from loadlens import diagnose
from loadlens.diagnose import root_of
from loadlens.diagnose.rules.capacity_limits import healthy, saturation_plateau
from loadlens.diagnose.rules.measurement import steady_none
from loadlens.diagnose.rules.processor import hol_correlation, host_interference
from loadlens.diagnose.rules.waiting import downstream_serialised
from loadlens.measure import whole_run
from loadlens.measure.source import study_of
from loadlens.measure.whole_run import MeasureTrial
from loadlens.model.facts import Curve, Step
from loadlens.model.finding import Estimate, Figure, Finding, Grade
from loadlens.model.notes import NOTES
from loadlens.present import words
from loadlens.present.numbers import short
from loadlens.record import open_run
from loadlens.search.answer import Reach, main_curve, reach_of

NO_CAUSE: Final = frozenset({healthy.ID, saturation_plateau.ID})  # that throughput stops, and not why
WHERE_ONLY: Final = frozenset(
    {downstream_serialised.ID, hol_correlation.ID}
)  # that requests wait, and not for what
NARROW: Final = 0.30  # width of an interval over its estimate
ALIKE: Final = 2  # judgements in a row that name the same cause
ALIKE_WHERE: Final = 3  # the same where it says only where requests wait: higher loads may say for what


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on the trials so far."""

    cause: str | None  # rule of the limit, at least probable; none: no cause is named
    claims: frozenset[str]  # rules of findings that are at least probable, notes left out
    suspected: frozenset[str]  # consequences of others left out, and a little noise of the machine
    capacity: Figure
    line: str  # for the user
    is_sampled: bool = False  # threads were sampled before
    is_unsteady: bool = False  # throughput varies within trials, and nothing says why


@dataclass(slots=True)
class Judge:
    """Judges a growing record; each trial is measured once."""

    path: Path
    _measure: MeasureTrial = field(default_factory=whole_run.remembering)

    def rate(self) -> float | None:
        """Return the successes per second of the last trial, as the rules know them; none: not measured."""
        record = open_run(self.path)
        if not record.trials:
            return None
        load = self._measure(record.trials[-1], study_of(record).window).load
        return None if load is None else load.rate_by_little

    def judge(self, *, probe_is_load: bool) -> Judgement:
        """Return the verdict on the trials that are sealed."""
        measured = whole_run.measured(open_run(self.path), self._measure)
        facts = measured.facts
        findings = diagnose.assess(facts).findings
        curve = main_curve(facts, findings)
        reach = reach_of(curve, probe_is_load=probe_is_load)
        root = root_of(findings)
        weighty = [finding for finding in findings if finding.rule not in NOTES]
        return Judgement(
            cause=None if root is None or root.rule in NO_CAUSE else root.rule,
            claims=frozenset(f.rule for f in weighty if f.grade >= Grade.PROBABLE),
            suspected=frozenset(
                f.rule
                for f in weighty
                if f.grade < Grade.PROBABLE and f.explained_by is None and f.rule != host_interference.ID
            ),
            capacity=reach.capacity,
            line=_line(curve, reach, root, facts.cores),
            is_sampled=bool(measured.stacks),
            is_unsteady=any(
                f.rule == steady_none.ID and f.grade >= Grade.PROBABLE and f.explained_by is None
                for f in findings
            ),
        )


def is_certain(judgements: Sequence[Judgement]) -> bool:
    """Return whether further trials would hardly change the answer.

    A cause is named. Nothing is merely suspected. Trials are steady: pauses show best under the light load
    that would follow. The judgement before, with a trial or a pair of repeats between them, names the same
    cause and the same findings, or it came before threads were sampled, which show more; where the cause says
    only where requests wait, two judgements before do. Each capacity lies within the interval of the next,
    which is narrow now.
    """
    if not judgements or (now := judgements[-1]).cause is None or now.suspected or now.is_unsteady:
        return False
    is_where = now.cause in WHERE_ONLY
    alike = judgements[-(ALIKE_WHERE if is_where else ALIKE) :]
    pairs = list(itertools.pairwise(alike))
    is_same = all((a.cause, a.claims) == (b.cause, b.claims) for a, b in pairs)
    has_more = not is_where and now.is_sampled and not alike[0].is_sampled
    return (
        len(alike) == (ALIKE_WHERE if is_where else ALIKE)
        and (is_same or has_more)
        and all(_agree(a.capacity, b.capacity) for a, b in pairs)
    )


def is_settled(judgements: Sequence[Judgement]) -> bool:
    """Return whether a level that shows no queueing may be left out.

    Nothing is merely suspected, and the findings, if there are any, are those of the judgement before.
    """
    if not judgements or judgements[-1].suspected - {healthy.ID}:
        return False
    claims = judgements[-1].claims - {healthy.ID}
    return not claims or (len(judgements) > 1 and judgements[-2].claims - {healthy.ID} == claims)


def _agree(before: Figure, now: Figure) -> bool:
    if not isinstance(before, Estimate) or not isinstance(now, Estimate):
        return False
    if before.low is None or before.high is None or now.low is None or now.high is None:
        return False
    return (
        before.low <= now.point <= before.high
        and now.low <= before.point <= now.high
        and now.high - now.low <= NARROW * now.point
    )


def _line(curve: Curve | None, reach: Reach, root: Finding | None, cores: int) -> str:
    """Return throughput, response time and CPU of the highest level, and the verdict so far."""
    if curve is None or not curve.steps:
        return "no level of load could be measured yet"
    top = curve.steps[-1]
    parts = [f"{_short(top.throughput)} with {words.users(top.load)}", f"mean {_short(top.response.mean)}"]
    parts += _busy(top, cores)
    if root is not None:
        return f"{', '.join(parts)}. {root.statement} ({root.grade.word})"
    capacity = reach.capacity
    if isinstance(capacity, Estimate):
        return f"{', '.join(parts)}. Capacity {short(capacity)}; its cause is not known yet"
    return f"{', '.join(parts)}. The capacity is not reached yet"


def _busy(step: Step, cores: int) -> list[str]:
    if not step.processes:
        return []
    return [f"the service uses {step.server_cores:.2f} of {words.plural(cores, 'core')}"]


def _short(figure: Figure) -> str:
    return short(figure) if isinstance(figure, Estimate) else "?"
