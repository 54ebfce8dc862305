"""The driver that all rules share: it grades what a rule observed, chooses among findings, words the silence.

A rule gives two functions. `observe` looks through the facts and returns its observations, the strongest
first, or why there are none. `claim` takes one observation and returns its signals, its rivals and its texts,
or why it suggests nothing. Everything else is here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from loadlens.diagnose import grading
from loadlens.diagnose.grading import Signal
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import (
    Absent,
    Counter,
    Evidence,
    Finding,
    Grade,
    NotAssessed,
    Prediction,
    Setting,
)

Answer = Finding | Absent | NotAssessed
O = TypeVar("O")  # noqa: E741  an observation, of a type that each rule defines


@dataclass(frozen=True, slots=True)
class Lacking:
    """No observation is possible: which measurement is missing."""

    reason: str


@dataclass(frozen=True, slots=True)
class Nothing:
    """There was enough to see, and nothing of this kind."""

    reason: str


def all_seen(looked: Iterable[O | str], otherwise: str = "no load curve") -> list[O] | Lacking:
    """Return the observations among them, or the first reason for none."""
    observations: list[O] = []
    reasons: list[str] = []
    for observation in looked:
        if isinstance(observation, str):
            reasons.append(observation)
        else:
            observations.append(observation)
    return observations or Lacking(reasons[0] if reasons else otherwise)


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of a finding, and how much is at stake."""

    statement: str  # cut to the length of a headline
    explanation: str
    advice: str
    confirm: str
    impact: float  # share of the throughput or time at stake; kept within 0 and 1
    unknown: tuple[str, ...] = ()
    scope: str | None = None  # default: where the claim holds
    predictions: tuple[Prediction, ...] = ()
    setting: Setting | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A cause that one observation suggests, with all that speaks for and against it."""

    where: str  # a curve's label, or a level's
    signals: Sequence[Signal]
    rivals: Sequence[Counter]
    words: Callable[[Grade], Words]  # asked only where the claim stands
    curves: tuple[str, ...] = ()  # labels of the curves on which it holds
    cap: Grade = Grade.STRONG
    explained_by: str | None = None
    explains_others: bool = True  # False: too weak to make appear what its rule explains
    evidence: Sequence[Evidence] | None = None  # to show; default: that of the signals, which set the grade

    @property
    def objection(self) -> str:
        """The first contradicted signal, else the rival found; a missing signal contradicts nothing."""
        text = grading.contradicted(self.signals)
        if not text and (rival := grading.against(self.rivals)) is not None:
            text = f"{rival.rival}, {rival.text}"
        return f"{self.where}: {text}" if text else self.where


def on_curve(
    curve: Curve,
    signals: Sequence[Signal],
    rivals: Sequence[Counter],
    words: Callable[[Grade], Words],
    *,
    where: str = "",
    curves: tuple[str, ...] = (),
    cap: Grade = Grade.STRONG,
    explained_by: str | None = None,
    explains_others: bool = True,
    evidence: Sequence[Evidence] | None = None,
) -> Claim:
    """Make a claim about one load curve, or about `where` on it; its trials bound the grade."""
    return Claim(
        where or curve.label,
        signals,
        rivals,
        words,
        curves or (curve.label,),
        min(cap, grading.cap_of(curve)),
        explained_by,
        explains_others,
        evidence,
    )


def finding_of(rule: str, claim: Claim) -> Finding | None:
    """Grade a claim; `None` if a signal or a rival contradicts it."""
    grade = grading.grade_of(claim.signals, claim.rivals, cap=claim.cap)
    if grade is None:
        return None
    words = claim.words(grade)
    return Finding(
        rule=rule,
        grade=grade,
        impact=min(1.0, max(0.0, words.impact)),
        scope=claim.where if words.scope is None else words.scope,
        statement=grading.statement(words.statement),
        explanation=words.explanation,
        evidence=tuple([s.evidence for s in claim.signals] if claim.evidence is None else claim.evidence),
        counter=tuple(claim.rivals),
        advice=words.advice,
        confirm=words.confirm,
        predictions=words.predictions,
        unknown=words.unknown,
        curves=claim.curves,
        explained_by=claim.explained_by,
        explains_others=claim.explains_others,
        setting=words.setting,
    )


# --- which finding speaks, and why none does ---------------------------------------------------------------


def first(pairs: Sequence[tuple[O, Finding]]) -> Finding:
    """Return the finding of the first observation."""
    return pairs[0][1]


def strongest(pairs: Sequence[tuple[O, Finding]]) -> Finding:
    """Return the finding of the highest grade, and of those the one with most at stake."""
    return grading.strongest([finding for _, finding in pairs])


def for_all(pairs: Sequence[tuple[O, Finding]]) -> Finding:
    """Return the strongest finding, for the curves of all."""
    return grading.for_all([finding for _, finding in pairs])


def naming_all(pairs: Sequence[tuple[O, Finding]]) -> Finding:
    """Return the strongest finding, whose scope names the curves of all."""
    best = for_all(pairs)
    return replace(best, scope=", ".join(best.curves))


def objecting(
    claim: Callable[[Facts, O], Claim | Nothing], key: Callable[[O], float]
) -> Callable[[Facts, Sequence[O]], str]:
    """Return a wording of silence: the objection to the claim about the observation with the highest key."""

    def silence(facts: Facts, observed: Sequence[O]) -> str:
        made = claim(facts, max(observed, key=key))
        return made.reason if isinstance(made, Nothing) else made.objection

    return silence


def assessing(
    rule: str,
    title: str,
    observe: Callable[[Facts], Sequence[O] | Lacking | Nothing],
    claim: Callable[[Facts, O], Claim | Nothing],
    *,
    choose: Callable[[Sequence[tuple[O, Finding]]], Finding] = first,
    silence: Callable[[Facts, Sequence[O]], str | Lacking] | None = None,
) -> Callable[[Facts], Answer]:
    """Return a rule's `assess`: observe, claim, grade, choose.

    Args:
        rule: The rule's ID.
        title: One line that says what it finds.
        observe: The observations, the strongest first, or the reason for none.
        claim: What one observation suggests, or why it suggests nothing.
        choose: Which finding speaks when several observations have one.
        silence: Why there is no finding; default: why the first observation makes none.
    """
    after = assessing_after(
        rule, title, lambda facts, _: observe(facts), claim, choose=choose, silence=silence
    )

    def assess(facts: Facts) -> Answer:
        """Look through the facts for what this rule finds."""
        return after(facts, ())

    return assess


def assessing_after(
    rule: str,
    title: str,
    observe: Callable[[Facts, Sequence[Answer]], Sequence[O] | Lacking | Nothing],
    claim: Callable[[Facts, O], Claim | Nothing],
    *,
    choose: Callable[[Sequence[tuple[O, Finding]]], Finding] = first,
    silence: Callable[[Facts, Sequence[O]], str | Lacking] | None = None,
) -> Callable[[Facts, Sequence[Answer]], Answer]:
    """Return `assess_after` of a rule that also needs the answers of the rules before it."""

    def assess_after(facts: Facts, others: Sequence[Answer]) -> Answer:
        """Look through the facts and the other rules' answers for what this rule finds."""
        observed = observe(facts, others)
        if isinstance(observed, Lacking):
            return NotAssessed(rule, title, observed.reason)
        if isinstance(observed, Nothing):
            return Absent(rule, title, observed.reason)
        pairs: list[tuple[O, Finding]] = []
        objections: list[str] = []
        for observation in observed:
            made = claim(facts, observation)
            finding = finding_of(rule, made) if isinstance(made, Claim) else None
            if finding is not None:
                pairs.append((observation, finding))
            objections.append(made.objection if isinstance(made, Claim) else made.reason)
        if pairs:
            return choose(pairs)
        reason = objections[0] if silence is None else silence(facts, observed)
        if isinstance(reason, Lacking):
            return NotAssessed(rule, title, reason.reason)
        return Absent(rule, title, reason)

    return assess_after
