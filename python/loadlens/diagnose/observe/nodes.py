"""The machines of a fleet at each level of load: which of them differs, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Lacking, Nothing
from loadlens.diagnose.observe.levels import Level, levels
from loadlens.estimate.interval import Interval, inverse, product, total
from loadlens.model.facts import Facts
from loadlens.model.finding import Counter, Estimate, Figure
from loadlens.model.quality import NodeWatch
from loadlens.present.numbers import with_unit

ONE_MACHINE: Final = "one machine made the load"


@dataclass(frozen=True, slots=True)
class Longest:
    """The machine with the longest time of one kind against the mean of the others."""

    node: NodeWatch
    own: Interval
    others: Interval

    @property
    def ratio(self) -> Interval:
        """The ratio of its time to that of the others."""
        return product(self.own, inverse(self.others), method="ratio of a node to the others")

    @property
    def more_s(self) -> float:
        """The difference of both times, in seconds."""
        return self.own.point - self.others.point


def fleets(facts: Facts) -> Sequence[Level[tuple[NodeWatch, ...]]] | Lacking | Nothing:
    """Return the levels of load that several machines made."""
    if not facts.curves:
        return Lacking("no load curve")
    several = levels(facts, lambda step: step.quality.nodes if len(step.quality.nodes) > 1 else None)
    return several or Nothing(ONE_MACHINE)


def longest(nodes: Sequence[NodeWatch], figures: Sequence[Figure]) -> Longest | None:
    """Return the machine whose figure is largest; none where a figure is not known or is zero.

    Args:
        nodes: The machines.
        figures: A time of each.
    """
    intervals = [_interval(figure) for figure in figures if isinstance(figure, Estimate) and figure.point > 0]
    if len(intervals) < len(nodes):
        return None
    place = int(np.argmax([interval.point for interval in intervals]))
    others = [interval for at, interval in enumerate(intervals) if at != place]
    return Longest(nodes[place], intervals[place], _mean(others))


def signals_of(
    differing: Longest, name: str, text: str, chip: str, *, ratio: float, lower: float, more_s: float
) -> list[grading.Signal]:
    """Compare a machine with the others: by the ratio of their times, and by the difference.

    Args:
        differing: The machine.
        name: Of both signals, `nodes.NAME-ratio` and `nodes.NAME-more`.
        text: What is compared, with both times.
        chip: What follows "times as" in a few words.
        ratio: The smallest that matters.
        lower: The smallest lower end of its interval.
        more_s: The smallest difference that matters, in seconds.
    """
    times = differing.ratio
    is_beyond: bool | None = times.point >= ratio
    if is_beyond:
        is_beyond = None if times.low is None else times.low >= lower
    return [
        grading.stated(
            f"nodes.{name}-ratio",
            is_beyond,
            text=f"{text} on average: {times.point:.2f} times (limit {ratio:g})",
            chip=f"{times.point:.2f} times as {chip}",
            value=times,
            threshold=ratio,
        ),
        grading.stated(
            f"nodes.{name}-more",
            differing.more_s >= more_s,
            text=f"that is {with_unit(differing.more_s, 's')} more (limit {with_unit(more_s, 's')})",
            value=differing.more_s,
            threshold=more_s,
        ),
    ]


def generator_rival(node: NodeWatch) -> Counter:
    """Weigh the generator of a machine as the cause: ruled out when it kept up."""
    if not node.verdict:
        return grading.rival("its generator", "what its generator did is not known", None)
    is_well = node.verdict == "kept_up"
    return grading.rival("its generator", "it kept up" if is_well else "it did not keep up", is_well)


def _mean(parts: Sequence[Interval]) -> Interval:
    share = 1 / len(parts)
    whole = total(*parts, method="mean of the other nodes")
    return whole.scaled_to(whole.point * share)


def _interval(figure: Estimate) -> Interval:
    return Interval(figure.point, figure.low, figure.high, figure.samples, figure.method)
