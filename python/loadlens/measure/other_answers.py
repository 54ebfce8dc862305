"""Successes under load whose sizes the lightest load shows none of: other answers with the same status.

Sizes that none of n answers has make up less than 3/n of them at 95 % (the rule of three); of sizes seen once
a share of about singles/n is yet to be seen (I. J. Good, Biometrika 40, 1953).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.measure import figures
from loadlens.model.facts import Curve, RequestClass, Step
from loadlens.model.shapes import AnswerSize

FEWEST_LIGHT = 30  # answers at the lightest load: of fewer, a tenth may be of another size by chance
FEWEST = 20
LEAST_SHARE = 0.05
NEXT = 1  # class of sizes next to one that was seen: 19 to 25 % apart
APART = 1.1  # times the size: two kinds, where one of them also comes far faster
FAR_FASTER = 0.1  # of the time of any answer at the lightest load, on average
CHEAPER = 0.5  # of the time of the usual answers, at most: throughput then jumps by what they do not cost


@dataclass(frozen=True, slots=True)
class OtherAnswers:
    """Successes of one class at one level that are none of those at the lightest load."""

    light: Step  # the lightest load
    upto: Step  # the highest level that was counted to it
    step: Step
    request: str  # "POST /x"
    label: str  # of the class
    usual: tuple[AnswerSize, ...]  # at the lightest load, and at the next ones while those are few
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
    def usual_per_s(self) -> float:
        """Return the rate of the usual answers at the level."""
        return figures.point(self.step.throughput) * (1 - self.share)

    @property
    def usual_at_once(self) -> float:
        """Return how many usual answers of the class were under way there, by Little's law."""
        rates = [figures.point(request.rate) for request in self.step.classes if request.label == self.label]
        return sum(rates) * (1 - self.share) * self.usual_s

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
    """Return the levels above the lightest that have other answers, each of its class with most of them.

    Where the lightest level has few answers of a class, the next ones are part of it until there are enough.
    """
    levels = []
    for i, step in enumerate(curve.steps[1:], start=1):
        each = [
            others
            for request in step.classes
            if (others := _others(curve.steps[:i], step, request)) is not None
        ]
        if each:
            levels.append(max(each, key=lambda others: others.share))
    return levels


def is_light_enough(curve: Curve) -> bool:
    """True if some class has enough answers below the highest load to compare with."""
    labels = [request.label for step in curve.steps[:1] for request in step.classes]
    below = curve.steps[:-1] or curve.steps
    return any(_seen(_answers(_light(below, label), label)) >= FEWEST_LIGHT for label in labels)


def unseen(sizes: tuple[AnswerSize, ...], light: tuple[AnswerSize, ...]) -> tuple[AnswerSize, ...]:
    """Return the sizes that are not those of the lightest load, nor next to one at about its time."""
    return tuple(size for size in sizes if all(_differ(size, other) for other in light))


def _differ(size: AnswerSize, other: AnswerSize) -> bool:
    steps = abs(size.size_class - other.size_class)
    is_apart = (
        size.most_bytes * APART <= other.least_bytes or other.most_bytes * APART <= size.least_bytes
    ) and size.mean_s <= FAR_FASTER * other.mean_s
    return steps > NEXT or (steps == NEXT and is_apart)


def _light(steps: Sequence[Step], label: str) -> Sequence[Step]:
    """Return the lightest level, and the next ones until there are enough answers of a class."""
    count = 1
    while count < len(steps) and _seen(_answers(steps[:count], label)) < FEWEST_LIGHT:
        count += 1
    return steps[:count]


def _answers(steps: Sequence[Step], label: str) -> tuple[AnswerSize, ...]:
    return tuple(
        size
        for step in steps
        for request in step.classes
        if request.label == label and not request.is_varied
        for size in request.answers
    )


def _seen(sizes: tuple[AnswerSize, ...]) -> int:
    return sum(size.count for size in sizes)


def _others(lower: Sequence[Step], step: Step, request: RequestClass) -> OtherAnswers | None:
    light = _light(lower, request.label)
    usual = _answers(light, request.label)
    seen, successes = _seen(usual), _seen(request.answers)
    if seen < FEWEST_LIGHT or not successes:
        return None
    others = unseen(request.answers, usual)
    count, singles = _seen(others), sum(size.count == 1 for size in usual)
    if count < FEWEST or count / successes < max(LEAST_SHARE, (3 + singles) / seen):
        return None
    still = tuple(size for size in request.answers if size not in others)
    return OtherAnswers(light[0], light[-1], step, request.request, request.label, usual, still, others)
