"""Successes under load whose sizes the lightest load shows none of: other answers with the same status.

Sizes that none of n answers has make up less than 3/n of them at 95 % (the rule of three); of sizes seen once
a share of about singles/n is yet to be seen (I. J. Good, Biometrika 40, 1953).
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.facts import Curve, RequestClass, Step
from loadlens.model.shapes import AnswerSize

FEWEST_LIGHT = 30  # answers at the lightest load: of fewer, a tenth may be of another size by chance
FEWEST = 20
LEAST_SHARE = 0.05
NEXT = 1  # class of sizes next to one that was seen: 19 to 25 % apart
CHEAPER = 0.5  # of the time of the usual answers, at most: throughput then jumps by what they do not cost


@dataclass(frozen=True, slots=True)
class OtherAnswers:
    """Successes of one class at one level that are none of those at the lightest load."""

    light: Step
    step: Step
    request: str  # "POST /x"
    label: str  # of the class
    usual: tuple[AnswerSize, ...]  # at the lightest load
    still: tuple[AnswerSize, ...]  # of these sizes, at the level
    others: tuple[AnswerSize, ...]  # at the level

    @property
    def count(self) -> int:
        """Other answers at the level."""
        return sum(size.count for size in self.others)

    @property
    def successes(self) -> int:
        """All answers at the level."""
        return self.count + sum(size.count for size in self.still)

    @property
    def share(self) -> float:
        """Share of the successes."""
        return self.count / self.successes

    @property
    def others_s(self) -> float:
        """Mean time of the others."""
        return mean_s(self.others)

    @property
    def usual_s(self) -> float:
        """Mean time of the usual ones at the level, or alone where there are none left."""
        return mean_s(self.still or self.usual)

    @property
    def are_cheaper(self) -> bool:
        """True if the others take at most half of the time: then they make throughput jump."""
        return self.others_s <= CHEAPER * self.usual_s


def mean_s(sizes: tuple[AnswerSize, ...]) -> float:
    """Return the mean time of all these answers."""
    return sum(size.mean_s * size.count for size in sizes) / sum(size.count for size in sizes)


def first_cheaper(curve: Curve) -> OtherAnswers | None:
    """Return the lowest level at which other answers make throughput jump; none if there is none."""
    return next((others for others in levels_of(curve) if others.are_cheaper), None)


def levels_of(curve: Curve) -> list[OtherAnswers]:
    """Return the levels above the lightest that have other answers, each of its class with most of them."""
    levels = []
    for step in curve.steps[1:]:
        each = [others for request in step.classes if (others := _others(curve.steps[0], step, request))]
        if each:
            levels.append(max(each, key=lambda others: others.share))
    return levels


def is_light_enough(curve: Curve) -> bool:
    """True if some class has enough answers at the lightest load to compare with."""
    return bool(curve.steps) and any(
        sum(size.count for size in request.answers) >= FEWEST_LIGHT for request in curve.steps[0].classes
    )


def unseen(sizes: tuple[AnswerSize, ...], light: tuple[AnswerSize, ...]) -> tuple[AnswerSize, ...]:
    """Return the sizes that are not those of the lightest load, nor next to one."""
    classes = [size.size_class for size in light]
    return tuple(size for size in sizes if all(abs(size.size_class - other) > NEXT for other in classes))


def _others(light: Step, step: Step, request: RequestClass) -> OtherAnswers | None:
    usual = next((other.answers for other in light.classes if other.label == request.label), ())
    seen, successes = (sum(size.count for size in sizes) for sizes in (usual, request.answers))
    if seen < FEWEST_LIGHT or not successes:
        return None
    others = unseen(request.answers, usual)
    count, singles = sum(size.count for size in others), sum(size.count == 1 for size in usual)
    if count < FEWEST or count / successes < max(LEAST_SHARE, (3 + singles) / seen):
        return None
    still = tuple(size for size in request.answers if size not in others)
    return OtherAnswers(light, step, request.request, request.label, usual, still, others)
