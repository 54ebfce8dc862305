"""What is done about the cause of a rule: changes of models that may stand for it, or arithmetic alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loadlens.model.facts import Facts
from loadlens.model.finding import Finding, Prediction
from loadlens.whatif.remedies.changes import Remedy
from loadlens.whatif.remedies.curve_facts import Known
from loadlens.whatif.remedies.fitting import Candidate

Candidates = Callable[[Known, Finding], Sequence[Candidate]]

# From the facts, the finding and all findings. It raises NoModel where nothing can be told.
Arithmetic = Callable[[Facts, Finding, Sequence[Finding]], tuple[Prediction, ...]]


@dataclass(frozen=True, slots=True)
class Treatment:
    """The models of a cause, and what may be done about it."""

    candidates: Candidates
    remedies: tuple[Remedy, ...]
