"""One machine of a fleet could not keep up with its share.

**Means.** The other machines sent their shares in time, and this one was late, always busy or without a core.
The figures of the whole contain its delay, and throughput is a lower bound.

**Needs.** Two machines or more. The generator of one was late, starved of CPU, at its limit or stood still,
by its own report, in one trial or more; that of another kept up in all.

**Ruled out by.** All machines in the same state: then the load is too large for the fleet, or the fleet's
machines share what they lack.

**Thresholds.** Those of the generator's own report (`gen.bottleneck` has them): none of its own.

**Do.** Give that machine a smaller weight, more cores, or leave it out.

**Confirm.** Run the same load without it: the verdict of the generator becomes `kept up`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe.levels import Level
from loadlens.diagnose.observe.nodes import fleets
from loadlens.model.facts import Facts
from loadlens.model.finding import Grade
from loadlens.model.quality import NodeWatch
from loadlens.present.numbers import percent

ID = "node.limit"
TITLE = "one node of the fleet was the limit"
EXPLAINS: tuple[str, ...] = ("node.slow-one",)

BEHIND: Final = {
    "late": "sent late",
    "starved": "waited for a core",
    "limit": "was always busy",
    "stood_still": "stood still",
}
MOST_IMPACT = 0.04  # of the figures' worth; it names no limit of the service


def observe(facts: Facts) -> Sequence[Level[tuple[NodeWatch, ...]]] | Lacking | Nothing:
    """Return the levels of load that several machines made."""
    return fleets(facts)


def claim(_: Facts, level: Level[tuple[NodeWatch, ...]]) -> Claim | Nothing:
    """Claim that some machines were behind while others kept up."""
    behind = [node for node in level.detail if node.verdict in BEHIND]
    if not behind:
        return Nothing(f"all {len(level.detail)} nodes sent their shares in time")
    first, count = behind[0], len(level.detail)
    is_some = len(behind) < count
    signals = [
        grading.stated(
            "nodes.behind",
            is_some,
            text=f"{len(behind)} of {count} nodes could not keep up"
            + ("" if is_some else ": it is the whole fleet"),
            chip=f"{len(behind)} of {count} nodes behind",
        )
    ]

    def words(_: Grade) -> Words:
        which = "One" if len(behind) == 1 else f"{len(behind)}"
        part = sum(node.part for node in behind)
        return Words(
            statement=f"{which} of {count} nodes {BEHIND[first.verdict]}: its share is a lower bound",
            explanation=f"Node {first.label} {BEHIND[first.verdict]}, with {percent(part)} of the load; the "
            "others sent in time. Its delay is in the figures of the whole.",
            advice="Give that node a smaller weight or more cores, or run without it.",
            confirm="the same load without it: every generator keeps up",
            impact=MOST_IMPACT,
        )

    return on_curve(level.curve, signals, [], words, where=level.label)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
