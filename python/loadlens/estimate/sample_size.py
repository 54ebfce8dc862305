"""How many requests, trials and pairs an answer takes, before it is asked.

Sources: C. Stein, Ann. Math. Stat. 16 (3), 1945 (two stages); T. Kalibera and R. Jones, ISMM 2013 (where
    repeats
belong); W. Whitt, Management Science 35 (11), 1989 (run lengths of queues).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import stats as distributions

from loadlens.estimate.over_trials import FEWEST_TRIALS
from loadlens.estimate.within_trial import fewest_for_two_sided

MOST_TRIALS = 1000
POWER = 0.80
TAIL_CORRELATION = 4.0  # fitted to M/M/1: within a factor 1.4 for p99 from a utilisation of 0.3 on
MIDDLE_CORRELATION = 1.3  # the same for p50, within 1.6 from 0.5 on


@dataclass(frozen=True, slots=True)
class Split:
    """How to spend a given time on trials."""

    trials: int
    seconds: float  # of each, without restart and warm-up
    half_width: float  # expected of the 95 % interval, relative


def half_width_factor(trials: int, *, confidence: float = 0.95) -> float:
    """Return the half-width of Student's interval in standard deviations between trials.

    Args:
        trials: At least 2; with 2 it is 9, which is no answer.
        confidence: Of the interval.

    Returns:
        t(trials - 1) / sqrt(trials).
    """
    return float(distributions.t.ppf(0.5 + confidence / 2, trials - 1)) / math.sqrt(trials)


def trials_for(half_width: float, pilot_spread: float, pilot_trials: int) -> int:
    """Return how many trials in all give an interval of the wanted width, fixed after a pilot.

    Adding trials until the interval is narrow enough is not the same: it stops when the spread is small by
    luck.

    Args:
        half_width: Wanted of the 95 % interval, relative (log scale), above 0.
        pilot_spread: Standard deviation of the logs of the pilot's trials.
        pilot_trials: At least 2; the pilot's trials count.

    Returns:
        The larger of the pilot and (t s / h)^2, t with the pilot's degrees of freedom.

    Source: Stein 1945.
    """
    t = float(distributions.t.ppf(0.975, pilot_trials - 1))
    return max(pilot_trials, math.ceil((t * pilot_spread / half_width) ** 2 - 1e-9))


def best_split(between: float, within_at_1_s: float, restart_s: float, total_s: float) -> Split | None:
    """Return how many trials of which length give the narrowest interval in a given time.

    Args:
        between: Standard deviation between trials, log scale.
        within_at_1_s: Standard error within a trial of one second, log scale; it falls with the root of the
            length.
        restart_s: Restart and warm-up of a trial, seconds.
        total_s: What may be spent, seconds.

    Returns:
        The best of 3 and more trials; none when not even three of one second fit.

    Source: Kalibera and Jones 2013.
    """
    best: Split | None = None
    for trials in range(FEWEST_TRIALS, MOST_TRIALS + 1):
        seconds = total_s / trials - restart_s
        if seconds < 1:
            break
        spread = math.sqrt(between**2 + within_at_1_s**2 / seconds)
        width = half_width_factor(trials) * spread
        if best is None or width < best.half_width:
            best = Split(trials, seconds, width)
    return best


def best_trial_length(between: float, within_at_1_s: float, restart_s: float) -> float:
    """Return the length of a trial, seconds, that gains most from a long budget.

    Returns:
        sqrt(restart) x within / between; infinite when trials do not vary between each other.

    Source: Kalibera and Jones 2013.
    """
    return math.sqrt(restart_s) * within_at_1_s / between if between > 0 else math.inf


def requests_for_quantile(
    p: float, half_width: float, *, correlation: float = 1.0, variability: float = 1.0
) -> int:
    """Return how many requests place a quantile of an exponential tail within a relative half-width.

    Args:
        p: Level, between 0 and 1.
        half_width: Wanted of the 95 % interval, relative, above 0.
        correlation: Requests that carry as much as one independent request (`correlation_time`), at least 1.
        variability: (1 + squared coefficient of variation of the service time) / 2.

    Returns:
        (1.96 / h)^2 p / ((1 - p) ln^2(1 - p)) times both; never fewer than a two-sided interval needs.
    """
    independent = (1.959964 / half_width) ** 2 * p / ((1 - p) * math.log(1 - p) ** 2)
    return max(math.ceil(independent * max(1.0, correlation) * variability - 1e-9), fewest_for_two_sided(p))


def correlation_time(utilisation: float, p: float) -> float:
    """Return how many requests of a queue carry as much as one independent request: a rule for planning.

    Args:
        utilisation: 0 to 1.
        p: Level of the quantile; above 0.5 the factor of the tail is taken.

    Returns:
        4 rho / (1 - rho)^2 for tails and 1.3 rho / (1 - rho)^2 for the median, at least 1; infinite at 1.
        What a pilot measured (`within.correlation_time`) replaces it.

    Source: fitted to M/M/1; Whitt 1989 for the form.
    """
    if utilisation >= 1:
        return math.inf
    factor = TAIL_CORRELATION if p > 0.5 else MIDDLE_CORRELATION
    return max(1.0, factor * utilisation / (1 - utilisation) ** 2)


def relaxation_time(service_rate: float, utilisation: float) -> float:
    """Return the time in which an M/M/1 queue forgets how it began, seconds; infinite at full load.

    Source: 1 / (mu (1 - sqrt(rho))^2), Whitt 1989.
    """
    return math.inf if utilisation >= 1 else 1 / (service_rate * (1 - math.sqrt(utilisation)) ** 2)


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
