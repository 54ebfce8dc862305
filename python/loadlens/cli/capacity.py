"""`loadlens capacity URL`: searches the highest rate that meets objectives, and what limits the service."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from loadlens import units
from loadlens.cli.explain import answered
from loadlens.cli.explain_options import OUTPUT, SEARCH, ExplainFlags
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import Example, argument, option, verb
from loadlens.errors import UsageError

RATES_SHARE: Final = 0.6  # of the budget; the ladder has the rest
SHORTEST_BUDGET_S: Final = 90
RATE: Final = "throughput"


@dataclass(frozen=True, slots=True)
class CapacityFlags(ExplainFlags):
    """The text of each option: those of `explain`, with objectives that a rate must meet."""

    targets: tuple[str, ...] = argument(
        "URL...",
        "URLs of one service to load; the cheapest of several is also the probe. Or the record of an earlier "
        "search.",
    )
    budget: str = option(
        "--budget TIME",
        "Finish within TIME, start-up included; at least 90s. Default: 3m.",
        default="3m",
        group=SEARCH,
    )
    objectives: tuple[str, ...] = option(
        "--objective METRIC<BOUND",
        "Find the highest rate at which METRIC (p50 to p999, mean, failed) stays within BOUND; repeatable. "
        "Without one on failures, failed<1% is added. Example: --objective "
        "'p99<200ms' --objective 'failed<0.1%'",
        default=(),
        group=OUTPUT,
    )


@verb(
    CapacityFlags,
    Example("loadlens capacity http://127.0.0.1:8080/ --objective 'p99<50ms'", "three minutes"),
    Example("loadlens capacity URL --objective 'p95<1s' --budget 6m", "a narrower answer"),
    Example("loadlens capacity URL --start 'node app.js' --objective 'mean<20ms'", "starts the service"),
)
def capacity(given: CapacityFlags) -> None:
    """Find the highest rate that meets all objectives, and what limits the service.

    Climbs as `explain` does, then sends requests at a rate, whatever the responses: halves the distance
    between rates that meet the objectives and rates that do not, and confirms the answer on five trials
    that the search did not see. Undecided is an answer too, and exits 0.
    """
    from loadlens.study.objectives import objective

    is_url = "://" in given.targets[0]
    if is_url and not given.objectives:
        raise UsageError(
            "capacity needs an objective that the rate must meet",
            hint="--objective 'p99<100ms'; without an objective: loadlens explain URL",
        )
    for text in given.objectives:
        if quantity(objective, text, "--objective").metric == RATE:
            raise UsageError(
                "the rate is what `capacity` searches for",
                where=f"--objective {text}",
                hint="--objective 'p99<100ms', mean<... or failed<...",
            )
    if is_url and quantity(units.duration_ns, given.budget, "--budget") / 1e9 < SHORTEST_BUDGET_S:
        raise UsageError(
            f"a budget of {given.budget} is too short for rates",
            where="--budget",
            hint=f"at least {SHORTEST_BUDGET_S}s; the default is 3m",
        )
    sys.exit(int(answered(given, RATES_SHARE)))
