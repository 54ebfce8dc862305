"""Observations that several rules share."""
