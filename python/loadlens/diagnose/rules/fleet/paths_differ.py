"""The network paths of a fleet's machines to the service differ.

**Means.** Connections of one machine take longer to be established than those of the others: it is farther
away. The quantiles of the whole then mix distances with what the service does.

**Needs.** Ten connections of each machine. The mean time to connect of the farthest is twice that of the
others, the lower end of the interval above 1.5, and 1 ms longer.

**Ruled out by.** A generator there that did not keep up: it reads the answer to a connect late.

**Thresholds.** Twice, and 1 ms: within one data centre round trips differ by less than 1 ms. The median of a
request over a kept connection contains one such round trip.

**Do.** Read the times of each node by its own row, and set objectives for each place.

**Confirm.** `ping` the service from both machines: the difference is there without load.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level
from loadlens.diagnose.observe.nodes import Longest, fleets, generator_rival, longest, signals_of
from loadlens.model.facts import Facts
from loadlens.model.finding import Estimate, Grade
from loadlens.model.quality import NodeWatch
from loadlens.present.numbers import with_unit

ID = "paths.differ"
TITLE = "nodes have different network paths"
EXPLAINS: tuple[str, ...] = ("node.slow-one",)

LONGER = 2.0
LEAST_LONGER = 1.5  # the lower end
LEAST_S = 0.001
FEWEST = 10  # connections of each machine
MOST_IMPACT = 0.04


def observe(facts: Facts) -> Sequence[Level[tuple[NodeWatch, ...]]] | Lacking | Nothing:
    """Return the levels of load that several machines made."""
    return fleets(facts)


def claim(_: Facts, level: Level[tuple[NodeWatch, ...]]) -> Claim | Nothing:
    """Compare the times in which connections stood."""
    nodes = level.detail
    farthest = farthest_of(nodes)
    if farthest is None:
        return Nothing(f"how long {FEWEST} connections of each node took is not known")
    own, others = with_unit(farthest.own.point, "s"), with_unit(farthest.others.point, "s")
    text = f"connections of the farthest take {own}, of the others {others}"
    signals = signals_of(farthest, "connect", text, "far", ratio=LONGER, lower=LEAST_LONGER, more_s=LEAST_S)
    rivals = [generator_rival(farthest.node)]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"Connections of one of {len(nodes)} nodes take {own}, those of the others {others}",
            explanation=f"It is node {farthest.node.label}: it is farther from the service, and quantiles of "
            "the whole mix the distances.",
            advice="Read the times of each node by its own row in the details of the case.",
            confirm="ping the service from both machines: the difference is there without load",
            impact=MOST_IMPACT,
        )

    return on_curve(level.curve, signals, rivals, words, where=level.label)


def farthest_of(nodes: Sequence[NodeWatch]) -> Longest | None:
    """Return the machine whose connections take longest; none with too few of one."""
    figures = [node.connect for node in nodes]
    has_few = any(isinstance(figure, Estimate) and figure.samples < FEWEST for figure in figures)
    return None if has_few else longest(nodes, figures)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
