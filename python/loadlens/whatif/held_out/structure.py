"""Which structure a service has: the one whose simulation comes closest to what was measured.

Candidates are what a cheap probe beside the load can tell apart: shared cores, an event loop, a pool that
everyone needs, a section that only the load needs. Several that come equally close all go into the
prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from loadlens import engine
from loadlens.whatif.held_out.build import LOAD, Span, Structure, Values, model_of
from loadlens.whatif.held_out.observed import Observed
from loadlens.whatif.held_out.parameters import Fit
from loadlens.whatif.held_out.site import NoModel

MOST_CASES = 8  # that candidates are tried on
REQUESTS = 2_500  # simulated of each
MOST_MISS = 0.25  # of a logarithm: a model that is further off explains nothing
MOST_PROBE_MISS = math.log(2)  # a probe that is further off is not predicted
AS_GOOD = 1.25  # times the best miss, and ...
SLACK = 0.01  # ... so much more: nobody tells these apart
MOST_LOG = math.log(3)  # one figure that is wholly wrong counts no more than this
PASSES = (1, 2, 3)
POLICIES = ("least_connections", "sticky_random", "random")
SEED = 20

Misses = Mapping[str, float]  # "response", "throughput", "probe" -> root mean square of logarithms


@dataclass(frozen=True, slots=True)
class Chosen:
    """Structures that reproduce the measured cases, the best first, and how closely the best does."""

    structures: tuple[Structure, ...]
    misses: Misses
    miss: float
    cases: tuple[str, ...]  # that they were tried on


def choose(cases: Sequence[Observed], fit: Fit, cores: float, *, is_kept: bool) -> Chosen:
    """Choose the structures of a service.

    Args:
        cases: Measured ones, where the work is not in threads of a declared number.
        fit: Their parameters.
        cores: Of the machine.
        is_kept: Whether connections are kept; a worker then keeps the users that it got.

    Raises:
        NoModel: None comes close.
    """
    tried = _spread(cases)
    values = Values.typical(fit)
    scored = [
        (*_misses(candidate, tried, values, cores), place, candidate)
        for place, candidate in enumerate(_candidates(tried, fit, is_kept=is_kept))
    ]
    closest = min(scored, key=lambda one: _of_load(one[1]))
    if (miss := _of_load(closest[1])) > MOST_MISS:
        raise NoModel(
            f"no structure reproduces the measured cases: the best ({closest[3].words}) misses them by "
            f"{math.expm1(miss):.1%}, more than {math.expm1(MOST_MISS):.1%}"
        )
    scored = [one for one in scored if _of_load(one[1]) <= MOST_MISS]
    best = min(scored, key=lambda one: (round(one[0], 3), one[2]))
    near = [one for one in scored if one[0] <= AS_GOOD * best[0] + SLACK and one is not best]
    near.sort(key=lambda one: (one[0], one[2]))
    names = tuple(case.case.name for case in tried)
    return Chosen((best[3], *(one[3] for one in near)), best[1], best[0], names)


def _of_load(misses: Misses) -> float:
    """How far the load itself is off, whatever probes say."""
    return max(misses["response"], misses["throughput"])


def _spread(cases: Sequence[Observed]) -> list[Observed]:
    """At most so many cases, from the lightest to the heaviest of every site."""
    ordered = sorted(cases, key=lambda c: (c.site.members, c.load.plan.load, c.case.slug))
    if len(ordered) <= MOST_CASES:
        return ordered
    places = np.unique(np.linspace(0, len(ordered) - 1, MOST_CASES).round().astype(int))
    return [ordered[place] for place in places]


def _candidates(cases: Sequence[Observed], fit: Fit, *, is_kept: bool) -> list[Structure]:
    """The simplest first: of several that come equally close it is taken."""
    widths = sorted({width for case in cases for width in _widths(case, fit)})
    found: list[Structure] = [Structure("cores"), *(Structure("loop", passes=n) for n in PASSES)]
    found += [Structure(kind, width=width) for kind in ("pool", "section") for width in widths]
    first = "sticky_random" if is_kept else "least_connections"
    several = any(case.site.workers > 1 and case.site.replicas == 1 for case in cases)
    policies = sorted(POLICIES, key=lambda policy: policy != first) if several else [first]
    return [Structure(one.kind, one.passes, one.width, policy) for policy, one in product(policies, found)]


def _widths(case: Observed, fit: Fit) -> Iterable[int]:
    """How many each member works on at once, as throughput times the time alone has it (Little's law)."""
    alone = sum(c.alone.point for c in fit.classes) / len(fit.classes)
    at_once = case.rate * alone / case.site.members
    return (max(1, math.floor(at_once + 0.1)), max(1, math.ceil(at_once - 0.1)))


def _misses(
    structure: Structure, cases: Sequence[Observed], values: Values, cores: float
) -> tuple[float, dict[str, float]]:
    """How far the simulated figures are from the measured ones: of all, and by kind."""
    found: dict[str, list[float]] = {"response": [], "throughput": [], "probe": []}
    for case in cases:
        outcome = engine.simulate(
            model_of(case.plan, case.site, structure, _without(values, case), cores, _span(case), SEED)
        )
        streams = {stream["name"]: stream["all"] for stream in outcome["streams"]}
        _note(found["response"], streams[LOAD]["mean_s"], case.response)
        _note(found["throughput"], streams[LOAD]["rate_per_s"], case.rate)
        for probe in values.fit.probes:
            if f"probe {probe.name}" in streams:
                _note(found["probe"], streams[f"probe {probe.name}"]["mean_s"], case.probe(probe.name))
    squares = [x * x for part in found.values() for x in part]
    whole = math.sqrt(float(np.mean(squares))) if squares else math.inf
    return whole, {name: math.sqrt(float(np.mean(np.square(x)))) if x else 0.0 for name, x in found.items()}


def _without(values: Values, case: Observed) -> Values:
    """The values without the probes that a case does not have."""
    there = {probe["name"] for probe in case.plan.get("probes") or ()}
    fit = values.fit
    kept = tuple(probe for probe in fit.probes if probe.name in there)
    if kept == fit.probes:
        return values
    return Values(
        replace(fit, probes=kept),
        values.works,
        values.alone,
        values.aside,
    )


def _note(into: list[float], simulated: Any, measured: float | None) -> None:
    if simulated and measured:
        into.append(min(MOST_LOG, abs(math.log(simulated / measured))))


def _span(case: Observed) -> Span:
    counted = REQUESTS / max(case.rate, 1e-3)
    return Span(max(0.1 * counted, 5 * (case.response or 0.0)), counted)
