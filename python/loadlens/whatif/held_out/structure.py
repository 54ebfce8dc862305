"""Choice of the structure of a service: the one whose simulation comes closest to the measured cases.

A cheap probe alongside the load distinguishes the candidates: shared cores, an event loop, a pool that all
requests need, a section that only the load needs. All that come equally close go into the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from loadlens.whatif.held_out.build import Span, Structure, Values, network_of
from loadlens.whatif.held_out.observed import Observed
from loadlens.whatif.held_out.parameters import Fit
from loadlens.whatif.queueing import LOAD, POLICIES, Misses, NoModel, Tried, as_good, simulate

MOST_CASES = 8  # that candidates are tried on
REQUESTS = 2_500  # simulated of each
MOST_MISS = 0.25  # of a logarithm: a model that is further off explains nothing
MOST_PROBE_MISS = math.log(2)  # a probe that is further off is not predicted
MOST_LOG = math.log(3)  # a single outlier counts no more than this
PASSES = (1, 2, 3)
SEED = 20


@dataclass(frozen=True, slots=True)
class Choice:
    """Structures that reproduce the measured cases, the best first, and how closely the best does."""

    structures: tuple[Structure, ...]
    misses: Misses
    miss: float
    cases: tuple[str, ...]  # that they were tried on


def choose(cases: Sequence[Observed], fit: Fit, cores: float, *, is_kept: bool) -> Choice:
    """Choose the structures of a service.

    Args:
        cases: Measured ones, where the work is not in threads of a declared number.
        fit: Their parameters.
        cores: Of the machine.
        is_kept: True if connections are kept; a worker then keeps its users.

    Raises:
        NoModel: No structure comes close.
    """
    tried = _spread(cases)
    values = Values.typical(fit)
    compared = [
        Tried(candidate, place, *_misses(candidate, tried, values, cores))
        for place, candidate in enumerate(_candidates(tried, fit, is_kept=is_kept))
    ]
    closest = min(compared, key=lambda each: each.misses.of_load)
    if closest.misses.of_load > MOST_MISS:
        raise NoModel(
            f"no structure reproduces the measured cases: the best ({closest.candidate.words}) misses them "
            f"by {math.expm1(closest.misses.of_load):.1%}, more than {math.expm1(MOST_MISS):.1%}"
        )
    best = as_good([each for each in compared if each.misses.of_load <= MOST_MISS])
    names = tuple(case.case.name for case in tried)
    return Choice(tuple(each.candidate for each in best), best[0].misses, best[0].miss, names)


def _spread(cases: Sequence[Observed]) -> list[Observed]:
    """Return at most MOST_CASES cases, from the lightest to the heaviest of every site."""
    ordered = sorted(cases, key=lambda c: (c.site.members, c.load.plan.load, c.case.slug))
    if len(ordered) <= MOST_CASES:
        return ordered
    places = np.unique(np.linspace(0, len(ordered) - 1, MOST_CASES).round().astype(int))
    return [ordered[place] for place in places]


def _candidates(cases: Sequence[Observed], fit: Fit, *, is_kept: bool) -> list[Structure]:
    """Return candidates, the simplest first: it is taken of several that come equally close."""
    alone = sum(c.alone.point for c in fit.classes) / len(fit.classes)
    widths = sorted({width for case in cases for width in _widths(case, alone)})
    kinds: list[Structure] = [Structure("cores"), *(Structure("loop", passes=n) for n in PASSES)]
    kinds += [Structure(kind, width=width) for kind in ("pool", "section") for width in widths]
    first = "sticky_random" if is_kept else "least_connections"
    several = any(case.site.workers > 1 and case.site.replicas == 1 for case in cases)
    policies = sorted(POLICIES, key=lambda policy: policy != first) if several else [first]
    return [replace(structure, policy=policy) for policy, structure in product(policies, kinds)]


def _widths(case: Observed, alone_s: float) -> Iterable[int]:
    """Return requests that each member works on at once: throughput times the time alone (Little's law)."""
    at_once = case.rate * alone_s / case.site.members
    return (max(1, math.floor(at_once + 0.1)), max(1, math.ceil(at_once - 0.1)))


def _misses(
    structure: Structure, cases: Sequence[Observed], values: Values, cores: float
) -> tuple[float, Misses]:
    """Return how far the simulated figures are from the measured ones: of all, and by kind."""
    off: dict[str, list[float]] = {"response": [], "throughput": [], "probe": []}

    def note(kind: str, simulated: float | None, measured: float | None) -> None:
        if simulated and measured:
            off[kind].append(min(MOST_LOG, abs(math.log(simulated / measured))))

    for case in cases:
        # Probes that the case does not have are left out.
        names = {probe.name for probe in case.plan.probes}
        fit = replace(values.fit, probes=tuple(p for p in values.fit.probes if p.name in names))
        counted = REQUESTS / max(case.rate, 1e-3)
        span = Span(max(0.1 * counted, 5 * (case.response or 0.0)), counted)
        model = network_of(case.plan, case.site, structure, replace(values, fit=fit), cores, span, SEED)
        streams = simulate(model)
        note("response", streams[LOAD].all.mean_s, case.response)
        note("throughput", streams[LOAD].all.rate_per_s, case.rate)
        for probe in fit.probes:
            note("probe", streams[f"probe {probe.name}"].all.mean_s, case.probe(probe.name))
    squares = [x * x for part in off.values() for x in part]
    whole = math.sqrt(float(np.mean(squares))) if squares else math.inf
    return whole, Misses(*(math.sqrt(float(np.mean(np.square(x)))) if x else 0.0 for x in off.values()))
