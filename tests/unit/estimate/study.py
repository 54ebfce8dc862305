"""How often intervals hold the truth and tests see it: the tables of docs/explain/methods.md, printed anew.

    python -m tests.unit.estimate.study [REPLICATIONS]

The tests of this folder ask the same with fewer replications and bounds from the binomial distribution.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable

import numpy as np
from scipy import stats as distributions

from loadlens.estimate.comparison import ratio_of_pairs
from loadlens.estimate.demand import Demand, demand
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import counts_from_values
from loadlens.estimate.mixtures import Mixture, mixture
from loadlens.estimate.over_trials import over_trials, quantile_over_trials
from loadlens.estimate.steady_state import Steadiness, steadiness
from loadlens.estimate.within_trial import quantile, share
from tests.oracles.simulated_queues import by_second, mm1
from tests.unit.estimate.test_demand import observations
from tests.unit.estimate.test_mixtures import ONE_HILL, gathered
from tests.unit.estimate.test_pauses import seen
from tests.unit.estimate.test_steady_state import medians
from tests.unit.estimate.test_within_trial import at_once

SERVICE_RATE = 200.0


def main() -> None:
    """Print all tables."""
    replications = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for title, table in (
        ("Quantiles of a queue", quantiles),
        ("Over trials", trials),
        ("Comparisons", comparisons),
        ("Tests and curves", rest),
    ):
        print(f"\n{title}, {replications} replications\n", flush=True)
        for row in table(replications):
            print("| " + " | ".join(row) + " |", flush=True)


def rate(hits: Iterable[bool]) -> str:
    """Share of hits."""
    return f"{np.mean(list(hits)):.2f}"


def covers(found: Interval | Insufficient, truth: float) -> bool:
    """Whether there is an interval and it holds the truth."""
    return isinstance(found, Interval) and found.covers(truth)


def quantiles(replications: int) -> Iterable[tuple[str, ...]]:
    """Utilisation, independent p50 and p99, ours, and how often ours is open above."""
    for utilisation in (0.5, 0.7, 0.8, 0.9):
        arriving = utilisation * SERVICE_RATE
        cells = []
        runs = [mm1(seed, arriving, SERVICE_RATE, 600) for seed in range(replications)]
        ours = {p: [quantile(by_second(*run, 600), p) for run in runs] for p in (0.5, 0.99)}
        for p in (0.5, 0.99):
            truth = -math.log(1 - p) / (SERVICE_RATE - arriving)
            cells += [
                rate(covers(quantile(at_once(response), p), truth) for _, response in runs),
                rate(covers(found, truth) for found in ours[p]),
            ]
        is_open = rate(isinstance(found, Interval) and found.high is None for found in ours[0.99])
        yield f"{utilisation}", *cells, is_open
    yield "bursts of ten errors: requests, ours", *bursts(replications)


def bursts(replications: int) -> tuple[str, str]:
    """Coverage of an error share of 0.02 in bursts of ten."""
    ours, requests = [], []
    for seed in range(replications):
        failures = np.where(np.random.default_rng(seed).random(120) < 0.2, 10.0, 0.0)
        ours.append(covers(share(failures, np.full(120, 100.0)), 0.02))
        low, high = distributions.binomtest(int(failures.sum()), 12_000).proportion_ci(method="wilson")
        requests.append(low <= 0.02 <= high)
    return rate(requests), rate(ours)


def trials(replications: int) -> Iterable[tuple[str, ...]]:
    """Number of trials, then t on logs with normal variation, with a noisy trial in ten, and percentiles."""
    for m in (3, 5, 10):
        random = np.random.default_rng(m)
        logs = random.normal(0, 0.05, (4 * replications, m))
        noisy = logs * np.where(random.random(logs.shape) < 0.1, 4, 1)
        percentiles = []
        for row in logs:
            means = random.choice(row, (300, m)).mean(axis=1)
            low, high = np.quantile(means, [0.025, 0.975])
            percentiles.append(low <= 0 <= high)
        yield (
            f"{m}",
            rate(covers(over_trials(np.exp(row)), 1.0) for row in logs),
            rate(covers(over_trials(np.exp(row)), 1.0) for row in noisy),
            rate(percentiles),
        )
    for utilisation in (0.5, 0.8, 0.9):
        arriving = utilisation * SERVICE_RATE
        truth = math.log(100) / (SERVICE_RATE - arriving)
        found = [
            quantile_over_trials(
                [by_second(*mm1(10 * seed + k, arriving, SERVICE_RATE, 60), 60) for k in range(5)], 0.99
            )
            for seed in range(replications)
        ]
        bias = np.mean([one.point for one in found if isinstance(one, Interval)]) / truth - 1
        yield (
            f"p99, 5 trials of 60 s at {utilisation}",
            rate(covers(one, truth) for one in found),
            f"{bias:+.1%}",
        )


def comparisons(replications: int) -> Iterable[tuple[str, ...]]:
    """False alarms between equal arms."""
    by_trials, by_requests = [], []
    for seed in range(replications):
        parts = [mm1(100 * seed + k, 200.0, 400.0, 20)[1] for k in range(12)]
        middle = np.array([np.median(part) for part in parts])
        by_trials.append(not covers(ratio_of_pairs(middle[:6], middle[6:]), 1.0))
        first, second = np.concatenate(parts[:6]), np.concatenate(parts[6:])
        by_requests.append(bool(distributions.mannwhitneyu(first, second).pvalue < 0.05))
    yield "equal arms called different: requests, trials", rate(by_requests), rate(by_trials)


def rest(replications: int) -> Iterable[tuple[str, ...]]:
    """Steady state, curves, demands, pauses and mixtures."""
    few = max(10, replications // 5)

    def kinds(
        slower: Callable[[np.ndarray], np.ndarray] | None, utilisation: float = 0.5
    ) -> list[Steadiness]:
        found = [steadiness(medians(1000 + seed, utilisation, slower)) for seed in range(few)]
        return [one for one in found if isinstance(one, Steadiness)]

    for utilisation in (0.5, 0.8):
        yield f"refused at rest, {utilisation}", rate(not one.is_steady for one in kinds(None, utilisation))
    yield (
        "refused, +50 % over two minutes",
        rate(not one.is_steady for one in kinds(lambda t: 1 + 0.5 * t / 120)),
    )
    late = kinds(lambda t: np.where(t > 90, 1.35, 1.0))
    yield "refused, late step of 35 %", rate(not one.is_steady for one in late)
    cuts = [one.cut for one in kinds(lambda t: np.where(t < 15, 1.7, 1.0))]
    yield (
        "cut of a step at 15 s: median, 5 %, 95 %",
        *(f"{q:.0f}" for q in np.quantile(cuts, [0.5, 0.05, 0.95])),
    )
    yield "bias, warm-up of 8 s: untrimmed, cut", *warm_up_bias(few)
    demands = [demand(*observations(seed, 0.04, [0.003, 0.0005])) for seed in range(replications)]
    for place, truth in enumerate((0.003, 0.0005)):
        yield (
            f"demand {truth}",
            rate(covers(d.per_request[place], truth) for d in demands if isinstance(d, Demand)),
        )
    yield (
        "pauses of 200 ms found of 24",
        f"{np.mean([seen(s, 0.5, 5.0, 0.2).begin_s.size for s in range(few)]):.1f}",
    )
    yield (
        "trials with a false pause",
        rate(seen(s, 0.8, 0.0, 0.0).begin_s.size > 0 for s in range(replications)),
    )
    for name, draw in ONE_HILL.items():
        hills = [mixture(gathered(draw(np.random.default_rng(500 + s)))) for s in range(few)]
        yield (
            f"{name} called a mixture",
            rate(isinstance(m, Mixture) and len(m.components) > 1 for m in hills),
        )
    random = np.random.default_rng(1)
    weights = []
    for _ in range(replications):
        slow = random.random(10_000) < 0.1
        values = 0.02 * np.exp(0.3 * random.normal(size=10_000)) + 0.5 * slow
        one = mixture(counts_from_values(50, (np.arange(10_000) % 50).astype(np.int64), values))
        weights.append(isinstance(one, Mixture) and one.components[-1].weight.covers(0.1))
    yield "weight of a slow path covered", rate(weights)


def warm_up_bias(few: int) -> tuple[str, str]:
    """Bias of the mean of medians with a warm-up that fades in 8 s, and after the cut."""
    whole, cut = [], []
    for seed in range(few):
        series = medians(2000 + seed, 0.5, lambda t: 1 + 0.9 * np.exp(-t / 8))
        found = steadiness(series)
        begin = found.cut if isinstance(found, Steadiness) else 0
        whole.append(series.mean())
        cut.append(series[begin:].mean())
    plain = np.mean([medians(2000 + s, 0.5).mean() for s in range(few)])
    return f"{np.mean(whole) / plain - 1:+.1%}", f"{np.mean(cut) / plain - 1:+.1%}"


if __name__ == "__main__":
    main()
