"""Write reference.json: change points by signal-processing-algorithms 2.1.6 (MongoDB), the reference.

It needs an older numpy than the lab, so it runs in an environment of its own. The command, in this folder:

    python3.11 -m venv /tmp/reference
    /tmp/reference/bin/pip install signal-processing-algorithms==2.1.6
    /tmp/reference/bin/python reference.py > reference.json
"""

from __future__ import annotations

import json

import numpy as np
from signal_processing_algorithms.energy_statistics import (  # type: ignore[import-not-found]
    energy_statistics,
)

PERMUTATIONS = 999
LEVEL = 0.01


def series() -> dict[str, list[float]]:
    """Return series of 30 to 90 figures, as noisy as those of a service from one commit to the next."""
    random = np.random.default_rng(2014)

    def of(*stretches: tuple[int, float]) -> list[float]:
        levels = np.concatenate([np.full(length, level) for length, level in stretches])
        return [round(float(x), 4) for x in levels * np.exp(0.02 * random.standard_normal(levels.size))]

    return {
        "no change": of((40, 420.0)),
        "one step of 10 % up": of((20, 420.0), (20, 462.0)),
        "one step of 10 % down, late": of((24, 420.0), (8, 378.0)),
        "up and down again": of((15, 12.0), (15, 15.0), (15, 12.0)),
        "three steps": of((25, 100.0), (20, 110.0), (25, 125.0), (20, 95.0)),
        "one outlier": [*of((15, 50.0)), 90.0, *of((15, 50.0))],
        "constant": [7.0] * 30,
    }


def main() -> None:
    """Print the series, Q of every first split, and the change points."""
    answers = {}
    for name, values in series().items():
        np.random.seed(1)
        found = energy_statistics.e_divisive(values, pvalue=LEVEL, permutations=PERMUTATIONS)
        matrix = np.abs(np.subtract.outer(values, values))
        statistics = energy_statistics._calculate_t_stats(matrix, use_c_if_possible=False)
        answers[name] = {
            "values": values,
            "first_split": [round(float(x), 9) for x in statistics],
            "change_points": sorted(map(int, found)),
        }
    print("{" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items()) + "}")


if __name__ == "__main__":
    main()
