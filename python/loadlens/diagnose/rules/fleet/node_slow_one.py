"""One machine of a fleet sees longer times than the others.

**Means.** All machines send the same requests to the same service, and those of one take longer. What lies
between is that machine: its processors, its network interface, or the replica and region that it is led to.

**Needs.** The median response time of the slowest machine is 1.25 times the mean of the others, the lower end
of the interval above 1.1, and 1 ms longer.

**Ruled out by.** A generator there that did not keep up. Connections that take as much longer to be
established, half of the difference or more: then it is the way to it (`paths.differ`).

**Thresholds.** 1.25: of four machines one such moves the mean of the whole by 6 %. 1 ms: machines of one kind
differ by less, through their timers and interrupts.

**Do.** Look at the row of that node in the details of the case. Swap its place or its weight with another's.

**Confirm.** Run with two nodes that exchange their machines: the slowness moves with the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level
from loadlens.diagnose.observe.nodes import fleets, generator_rival, longest, signals_of
from loadlens.diagnose.rules.fleet.paths_differ import farthest_of
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.model.quality import NodeWatch
from loadlens.present.numbers import with_unit

ID = "node.slow-one"
TITLE = "one node sees longer times"
EXPLAINS: tuple[str, ...] = ()

SLOWER = 1.25
LEAST_SLOWER = 1.1  # the lower end
LEAST_S = 0.001
OF_THE_PATH = 0.5  # of the difference
MOST_IMPACT = 0.04


def observe(facts: Facts) -> Sequence[Level[tuple[NodeWatch, ...]]] | Lacking | Nothing:
    """Return the levels of load that several machines made."""
    return fleets(facts)


def claim(_: Facts, level: Level[tuple[NodeWatch, ...]]) -> Claim | Nothing:
    """Compare the slowest median with the others; its generator and its path are rivals."""
    nodes = level.detail
    slowest = longest(nodes, [node.p50 for node in nodes])
    if slowest is None:
        return Nothing("the median of a node is not known")
    ratio, more_s = slowest.ratio, slowest.more_s
    own, others = with_unit(slowest.own.point, "s"), with_unit(slowest.others.point, "s")
    text = f"the slowest has a median of {own}, the others {others}"
    signals = signals_of(slowest, "slowest", text, "slow", ratio=SLOWER, lower=LEAST_SLOWER, more_s=LEAST_S)
    farthest = farthest_of(nodes)
    is_path = (
        farthest is not None and farthest.node is slowest.node and farthest.more_s >= OF_THE_PATH * more_s
    )
    how = "how long connections take is not known"
    if farthest is not None:
        how = f"its connections take {with_unit(max(farthest.more_s, 0.0), 's')} longer at most"
    rivals = [
        generator_rival(slowest.node),
        grading.rival("its network path", how, None if farthest is None else not is_path),
    ]

    def words(_: Grade) -> Words:
        return Words(
            statement=f"One of {len(nodes)} nodes sees {ratio.point:.2f} times the median of the others "
            f"({own}, not {others})",
            explanation=f"It is node {slowest.node.label}: the same requests take longer from there.",
            advice="Look at that machine, and at what it is led to: its row is in the details of the case.",
            confirm="exchange two nodes: slowness goes along with the machine, or stays with the place",
            impact=MOST_IMPACT,
        )

    return on_curve(level.curve, signals, rivals, words, where=level.label)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
