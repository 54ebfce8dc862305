"""How many requests, trials and pairs an answer takes, before it is asked.

Sources: C. Stein, Ann. Math. Stat. 16 (3), 1945 (two stages); T. Kalibera and R. Jones, ISMM 2013 (where
    repeats
belong); W. Whitt, Management Science 35 (11), 1989 (run lengths of queues).
"""

from __future__ import annotations

import math

from scipy import stats as distributions

from loadlens.estimate.over_trials import FEWEST_TRIALS

MOST_TRIALS = 1000
POWER = 0.80


def pairs_for(effect: float, spread: float, *, power: float = POWER, level: float = 0.05) -> int:
    """Return how many pairs of trials show a difference with the wanted power.

    Args:
        effect: Log of the ratio to be seen, not 0.
        spread: Standard deviation of the log ratios of pairs.
        power: Chance to see it.
        level: Of the two-sided test.

    Returns:
        At least 3, at most 1,000; from the noncentral t.
    """
    for pairs in range(FEWEST_TRIALS, MOST_TRIALS):
        if power_of_pairs(pairs, effect, spread, level=level) >= power:
            return pairs
    return MOST_TRIALS


def power_of_pairs(pairs: int, effect: float, spread: float, *, level: float = 0.05) -> float:
    """Return the chance that the paired t test sees a difference.

    Args:
        pairs: At least 2.
        effect: Log of the true ratio.
        spread: Standard deviation of the log ratios of pairs; 0 sees everything.
        level: Of the two-sided test.
    """
    if spread == 0:
        return 1.0
    freedom, shift = pairs - 1, abs(effect) / spread * math.sqrt(pairs)
    bound = float(distributions.t.ppf(1 - level / 2, freedom))
    above = float(distributions.nct.sf(bound, freedom, shift))
    below = float(distributions.nct.cdf(-bound, freedom, shift))
    # Far from zero the lower tail underflows to NaN; it is nothing there.
    return above + (0.0 if math.isnan(below) else below)
