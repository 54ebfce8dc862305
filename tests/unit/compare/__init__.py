"""Comparisons of two versions."""
