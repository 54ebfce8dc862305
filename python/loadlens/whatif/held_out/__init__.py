"""Held-out cases, predicted before they run: a queueing model fitted to the measured cases, and simulated.

Reads a record as `measure` does and starts nothing. A model takes its structure from the topology, from what
the study declares of its services (`model:`) and from which candidate reproduces the measured cases; no name
of a study, service or factor has a meaning. Where no model can be fitted the reason is given, and there is no
prediction. docs/explain/predictions.md is the page for people.
"""

from loadlens.whatif.held_out.prediction import predict

__all__ = ["predict"]
