"""Effect of a remedy: the cause of a finding as a small queueing model, changed as the advice says.

A model is taken only if it reproduces the measured levels of the curve; otherwise nothing is predicted, and
the reason is given instead. Some remedies need no model: their arithmetic has a file of its own. Rules do not
depend on this: a finding gets its predictions after all rules. docs/explain/predictions.md is the page for
people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from loadlens.diagnose import Verdict
from loadlens.errors import LoadlensError
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Finding, Grade, Prediction
from loadlens.whatif.queueing import NoModel
from loadlens.whatif.remedies.curve_facts import ladder_of
from loadlens.whatif.remedies.predict import predictions, undecided
from loadlens.whatif.remedies.table import ARITHMETIC, TREATMENTS

__all__ = ["ARITHMETIC", "TREATMENTS", "with_predictions"]

MOST_FINDINGS = 2  # that are simulated, the weightiest: a report must not wait for more


def with_predictions(facts: Facts, verdict: Verdict) -> Verdict:
    """Return the verdict with the effect of remedies: simulated for the weightiest causes, or computed."""
    sure = [f for f in verdict.findings if f.explained_by is None and f.grade >= Grade.PROBABLE]
    simulated = [cause for cause in sure if cause.rule in TREATMENTS][:MOST_FINDINGS]
    by_rule = {cause.rule: _simulated(facts, cause) for cause in simulated}
    for cause in sure:
        if cause.rule in ARITHMETIC:
            effect = _effect(partial(ARITHMETIC[cause.rule], facts, cause, verdict.findings))
            by_rule[cause.rule] = (undecided(effect),) if isinstance(effect, str) else effect
    findings = (replace(f, predictions=(*f.predictions, *by_rule.get(f.rule, ()))) for f in verdict.findings)
    return replace(verdict, findings=tuple(findings))


def _simulated(facts: Facts, cause: Finding) -> tuple[Prediction, ...]:
    """Return predictions of the first of its curves that a model reproduces; else why the first has none."""
    curves = {curve.label: curve for curve in facts.curves}
    reasons: list[str] = []
    for label in cause.curves:
        if label in curves:
            effect = _effect(partial(_of_curve, facts, curves[label], cause))
            if not isinstance(effect, str):
                return effect
            reasons.append(effect)
    return (undecided(reasons[0] if reasons else "it holds on no load curve"),)


def _of_curve(facts: Facts, curve: Curve, cause: Finding) -> tuple[Prediction, ...]:
    return predictions(ladder_of(facts, curve), cause, TREATMENTS[cause.rule])


def _effect(predict: Callable[[], tuple[Prediction, ...]]) -> tuple[Prediction, ...] | str:
    """Return the predictions, or the reason why there are none."""
    try:
        return predict()
    except NoModel as why:
        return str(why)
    except LoadlensError as fault:
        return fault.message
    except (ArithmeticError, LookupError, ValueError) as fault:
        # Facts of an unforeseen kind: the finding stands, and says why nothing is predicted.
        return f"the model could not be made: {type(fault).__name__} {fault}"
