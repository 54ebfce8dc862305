"""The search of `capacity` next to a ramp and a bisection, on simulated queues whose answer is a formula.

    python -m benches.rate_search      writes docs/appendix/rate-search.md

A trial gives the queue's p99 times a log-normal factor: trials of one rate differ. The ramp and the bisection
go by that figure alone, as scripts do, and claim the highest rate that met the bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from tests.oracles import closed_forms

from benches.measuring import ROOT
from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.rates import RateAnswer, RateTrial
from loadlens.model.study import Objective
from loadlens.search import rates

PAGE: Final = ROOT / "docs" / "appendix" / "rate-search.md"
LEVEL: Final = 0.99
TRIAL_S: Final = 8.0
SEARCHES: Final = 1000
SPREADS: Final = (0.02, 0.1, 0.3)
RAMP_FROM: Final = 0.1  # of the capacity


@dataclass(frozen=True)
class Queue:
    """A queue with a bound on its p99, and the highest rate that meets it."""

    name: str
    served_per_s: float
    below: Objective
    p99_s: Callable[[float], float]
    answer_per_s: float

    def span(self, reached: float = 1.0) -> rates.Range:
        """Return what is known before the first rate, given the share of the capacity that was reached."""
        return rates.Range(ceiling_per_s=reached * self.served_per_s, is_capacity=True, cap_per_s=20_000.0)


def _bound(seconds: float) -> Objective:
    return Objective("response_time.p99", None, below=seconds)


def mm1(served_per_s: float = 500.0, below_s: float = 0.05) -> Queue:
    """M/M/1: response times are exponential with rate mu - lambda, so p99 = ln(100) / (mu - lambda)."""
    return Queue(
        "M/M/1",
        served_per_s,
        _bound(below_s),
        lambda rate: math.log(100) / (served_per_s - rate) if rate < served_per_s else math.inf,
        served_per_s - math.log(100) / below_s,
    )


@cache
def mdc(servers: int, service_s: float = 0.01, below_s: float = 0.03) -> Queue:
    """M/D/c: the wait of Franx (2001) and the constant service; between 60 rates linearly."""
    served = servers / service_s
    grid = np.linspace(0.0, 0.97, 60) * served
    times = [
        service_s + closed_forms.mdc_wait_quantile(float(rate), service_s, servers, LEVEL) for rate in grid
    ]
    return Queue(
        f"M/D/{servers}",
        served,
        _bound(below_s),
        lambda rate: float(np.interp(rate, grid, times)) if rate <= grid[-1] else math.inf,
        float(np.interp(below_s, times, grid)),
    )


def trial(
    queue: Queue, rate_per_s: float, p99_s: float, *, spread: float, is_fresh: bool = False
) -> RateTrial:
    """Return a trial with this estimate and an interval of two spreads (of its logarithm) on either side."""
    p99: Figure = Undecided("response_time.p99", "s", "no end")
    if p99_s < math.inf:
        low, high = p99_s * math.exp(-1.96 * spread), p99_s * math.exp(1.96 * spread)
        p99 = Estimate("response_time.p99", "s", p99_s, low, high, 1, 1000, "by hand")
    rate = min(rate_per_s, queue.served_per_s)
    served = Estimate("throughput", "1/s", rate, 0.98 * rate, 1.02 * rate, 1, 1000, "by hand")
    return rates.verdict(rate_per_s, is_fresh, [(queue.below, p99)], served, TRIAL_S)


@dataclass(frozen=True)
class Search:
    """Outcome of one search."""

    claimed_per_s: float | None  # none: it claims nothing
    trials: int


def searched(
    queue: Queue, rng: np.random.Generator, *, spread: float, within_s: float = 120.0, reached: float = 1.0
) -> tuple[RateAnswer, int]:
    """Return the answer of `capacity`, and its trials."""
    seen: list[RateTrial] = []
    span = queue.span(reached)
    while True:
        left_s = within_s - TRIAL_S * len(seen)
        wanted = rates.next_of(seen, span, left_s, lambda _: TRIAL_S)
        if wanted is None:
            return rates.answer_of(seen, [queue.below], span), len(seen)
        p99_s = _measured(queue, wanted.rate_per_s, rng, spread)
        seen.append(trial(queue, wanted.rate_per_s, p99_s, spread=spread, is_fresh=wanted.is_fresh))


def capacity(queue: Queue, rng: np.random.Generator, spread: float) -> Search:
    """Search as the verb does, with a budget of five minutes."""
    answer, trials = searched(queue, rng, spread=spread, within_s=300.0, reached=_reached(rng))
    return Search(answer.low_per_s, trials)


def ramp(queue: Queue, rng: np.random.Generator, spread: float) -> Search:
    """Raise the rate by 6 % until a trial misses the bound, and claim the rate before."""
    rate, claimed, trials = RAMP_FROM * _reached(rng) * queue.served_per_s, None, 0
    while True:
        trials += 1
        if _measured(queue, rate, rng, spread) >= (queue.below.below or 0.0):
            return Search(claimed, trials)
        claimed, rate = rate, rate * rates.NARROW


def bisection(queue: Queue, rng: np.random.Generator, spread: float) -> Search:
    """Halve between nothing and the capacity until 6 % are left, and claim the lower end."""
    low, high, trials = 0.0, _reached(rng) * queue.served_per_s, 0
    while high > rates.NARROW * low:
        middle, trials = (low + high) / 2, trials + 1
        if _measured(queue, middle, rng, spread) < (queue.below.below or 0.0):
            low = middle
        else:
            high = middle
    return Search(low or None, trials)


def _reached(rng: np.random.Generator) -> float:
    """Return the share of the capacity that users without pauses reached: rates differ between searches."""
    return float(rng.uniform(0.9, 1.0))


def _measured(queue: Queue, rate_per_s: float, rng: np.random.Generator, spread: float) -> float:
    return queue.p99_s(rate_per_s) * math.exp(spread * rng.standard_normal())


METHODS: Final = {"capacity": capacity, "ramp": ramp, "bisection": bisection}


@dataclass(frozen=True)
class Summary:
    """Many searches with one method."""

    claims: float  # share of searches that claim a rate
    beyond: float  # share that claim more than the true one
    median: float  # of the claims, over the true one
    trials: float  # mean


def summary(queue: Queue, method: str, spread: float, searches: int = SEARCHES) -> Summary:
    """Run searches with one method; the seed is the same for all methods."""
    rng = np.random.default_rng(7)
    runs = [METHODS[method](queue, rng, spread) for _ in range(searches)]
    claimed = [run.claimed_per_s for run in runs if run.claimed_per_s is not None]
    return Summary(
        len(claimed) / searches,
        sum(rate > queue.answer_per_s for rate in claimed) / searches,
        float(np.median(claimed)) / queue.answer_per_s if claimed else math.nan,
        float(np.mean([run.trials for run in runs])),
    )


def row(queue: Queue, spread: float, method: str) -> str:
    """Return the row of the table for many searches."""
    each = summary(queue, method, spread)
    return (
        f"| {queue.name} | {spread:.0%} | {method} | {each.claims:.1%} | {each.beyond:.1%} | "
        f"{each.median:.1%} | {each.trials:.1f} |"
    ).replace("%", " %")


def table(queues: Sequence[Queue]) -> str:
    """Return the Markdown table of all methods."""
    head = [
        "| queue | trials differ by | method | claims a rate | claims too much | median claim | trials |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    rows = [row(queue, spread, method) for queue in queues for spread in SPREADS for method in METHODS]
    return "\n".join([*head, *rows])


def main(page: Path = PAGE) -> None:
    """Write the table into its page."""
    text = page.read_text(encoding="utf-8")
    made = table([mm1(), mdc(1), mdc(4)])
    page.write_text(re.sub(r"(?<=<!-- table -->\n\n).*?(?=\n\n<!-- end -->)", made, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
