"""Predictions: the effect of a remedy, and the outcome of cases that a study holds out."""
