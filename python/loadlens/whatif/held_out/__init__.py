"""Held-out cases, predicted before they run: a queueing model fitted to what was measured, and simulated.

Reads a record as `analyse` does and starts nothing. A model takes its structure from the topology, from what
the study declares of its services (`model:`) and from which candidate reproduces the measured cases; no name
of a study, service or factor means anything to it. What cannot be fitted is said, and then there is no
prediction. docs/explain/predictions.md is the page for people.
"""

from loadlens.whatif.held_out.predict import foretell

__all__ = ["foretell"]
