"""What a remedy would bring: the cause that was found as a small queueing model, changed as the advice says.

A model is taken only if it reproduces the measured levels of the curve; otherwise nothing is predicted, and
the reason stands in its place. No rule knows of this: a finding gets its predictions after all rules have
spoken. docs/explain/predictions.md is the page for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loadlens.analyse.remedies.foretold import predictions, undecided
from loadlens.analyse.remedies.known import known_of
from loadlens.analyse.remedies.plant import NoModel
from loadlens.analyse.remedies.table import TREATMENTS
from loadlens.errors import LoadlensError
from loadlens.findings import Verdict
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Finding, Grade, Prediction

__all__ = ["TREATMENTS", "foretold"]

MOST_FINDINGS = 2  # the weightiest: a report must not wait for more


def foretold(facts: Facts, verdict: Verdict) -> Verdict:
    """The verdict, with what the remedies of its weightiest causes would bring."""
    causes = [f for f in verdict.findings if _is_cause(f)][:MOST_FINDINGS]
    found = {cause.rule: _predicted(facts, cause) for cause in causes}
    return replace(
        verdict,
        findings=tuple(
            replace(f, predictions=(*f.predictions, *found.get(f.rule, ()))) for f in verdict.findings
        ),
    )


def _is_cause(finding: Finding) -> bool:
    return finding.rule in TREATMENTS and finding.explained_by is None and finding.grade >= Grade.PROBABLE


def _predicted(facts: Facts, cause: Finding) -> tuple[Prediction, ...]:
    """From the first of its curves that a model reproduces; else why that of the first does not."""
    reasons: list[str] = []
    for curve in _curves(facts, cause):
        try:
            return predictions(known_of(facts, curve), cause, TREATMENTS[cause.rule])
        except NoModel as why:
            reasons.append(str(why))
        except LoadlensError as fault:
            reasons.append(fault.message)
        except (ArithmeticError, LookupError, ValueError) as fault:
            # Facts that nobody foresaw: the finding stands, and says why nothing is foretold.
            reasons.append(f"the model could not be made: {type(fault).__name__} {fault}")
    return (undecided(reasons[0] if reasons else "it holds on no load curve"),)


def _curves(facts: Facts, cause: Finding) -> Sequence[Curve]:
    by_label = {curve.label: curve for curve in facts.curves}
    return [by_label[label] for label in cause.curves if label in by_label]
