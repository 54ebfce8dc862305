"""Mortality by the law of Gompertz and Makeham."""

import math

AGES = range(50, 86)
LAST_AGE = 120
SEXES = {"f": (0.0004, 0.0000160, 0.103), "m": (0.0005, 0.0000270, 0.101)}


def monthly_death(sex: str, age: float) -> float:
    """Probability of dying within a month at an age."""
    base, level, growth = SEXES[sex]
    return 1 - math.exp(-(base + level * math.exp(growth * age)) / 12)
