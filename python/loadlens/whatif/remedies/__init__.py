"""What a remedy would bring: the cause that was found as a small queueing model, changed as the advice says.

A model is taken only if it reproduces the measured levels of the curve; otherwise nothing is predicted, and
the reason stands in its place. Some remedies need no model: their arithmetic has a file of its own. No rule
knows of this: a finding gets its predictions after all rules have spoken. docs/explain/predictions.md is the
page for people.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from loadlens.diagnose import Verdict
from loadlens.errors import LoadlensError
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Finding, Grade, Prediction
from loadlens.whatif.remedies.curve_facts import known_of
from loadlens.whatif.remedies.predict import predictions, undecided
from loadlens.whatif.remedies.service_model import NoModel
from loadlens.whatif.remedies.table import ARITHMETIC, TREATMENTS

__all__ = ["ARITHMETIC", "TREATMENTS", "foretold"]

MOST_FINDINGS = 2  # that are simulated, the weightiest: a report must not wait for more


def foretold(facts: Facts, verdict: Verdict) -> Verdict:
    """The verdict, with what remedies would bring: simulated of the weightiest causes, or reckoned."""
    sure = [f for f in verdict.findings if f.explained_by is None and f.grade >= Grade.PROBABLE]
    simulated = [cause for cause in sure if cause.rule in TREATMENTS][:MOST_FINDINGS]
    found = {cause.rule: _simulated(facts, cause) for cause in simulated}
    for cause in sure:
        if cause.rule in ARITHMETIC:
            found[cause.rule] = _reckoned(facts, cause, verdict.findings)
    return replace(
        verdict,
        findings=tuple(
            replace(f, predictions=(*f.predictions, *found.get(f.rule, ()))) for f in verdict.findings
        ),
    )


def _simulated(facts: Facts, cause: Finding) -> tuple[Prediction, ...]:
    """From the first of its curves that a model reproduces; else why that of the first does not."""
    reasons: list[str] = []
    for curve in _curves(facts, cause):
        found = _told(partial(_of_curve, facts, curve, cause))
        if not isinstance(found, str):
            return found
        reasons.append(found)
    return (undecided(reasons[0] if reasons else "it holds on no load curve"),)


def _of_curve(facts: Facts, curve: Curve, cause: Finding) -> tuple[Prediction, ...]:
    return predictions(known_of(facts, curve), cause, TREATMENTS[cause.rule])


def _reckoned(facts: Facts, cause: Finding, findings: Sequence[Finding]) -> tuple[Prediction, ...]:
    found = _told(partial(ARITHMETIC[cause.rule], facts, cause, findings))
    return (undecided(found),) if isinstance(found, str) else found


def _told(predict: Callable[[], tuple[Prediction, ...]]) -> tuple[Prediction, ...] | str:
    """What it tells, or why that is nothing."""
    try:
        return predict()
    except NoModel as why:
        return str(why)
    except LoadlensError as fault:
        return fault.message
    except (ArithmeticError, LookupError, ValueError) as fault:
        # Facts that nobody foresaw: the finding stands, and says why nothing is foretold.
        return f"the model could not be made: {type(fault).__name__} {fault}"


def _curves(facts: Facts, cause: Finding) -> Sequence[Curve]:
    by_label = {curve.label: curve for curve in facts.curves}
    return [by_label[label] for label in cause.curves if label in by_label]
