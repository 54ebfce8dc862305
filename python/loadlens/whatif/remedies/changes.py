"""What advice of a rule does to a model: each change in words, with what it takes for granted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from loadlens.whatif.remedies.curve_facts import Known
from loadlens.whatif.remedies.service_model import POLICIES, Plant

NO_SLOW_PATH = "the slow path gone"
AS_THE_OTHERS = "who took it takes what the others take"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a service."""

    words: str  # "2 processes in place of 1"
    assumes: str
    ways: tuple[Callable[[Plant], Plant], ...]  # in which it may turn out, equally likely

    def apply(self, plant: Plant, way: int = 0) -> Plant:
        """The plant after it."""
        return self.ways[way % len(self.ways)](plant)


Remedy = Callable[[Known, Plant], Change | None]  # none: it would change nothing here


def more_processes(known: Known, plant: Plant) -> Change | None:
    """Twice as many, or one for each core."""
    many = min(2 * plant.members, math.floor(known.curve.cores_allotted))
    if many <= plant.members:
        return None

    def by(policy: str) -> Callable[[Plant], Plant]:
        return lambda before: replace(before, members=many, policy=policy)

    # How several share the requests shows where there are several, and nowhere else.
    policies = POLICIES if plant.members == 1 else (plant.policy,)
    return Change(
        f"{many} processes in place of {plant.members}",
        "each takes requests as one does now",
        tuple(by(policy) for policy in policies),
    )


def into_threads(known: Known, plant: Plant) -> Change | None:
    """The work beside the loop, on any core."""
    return Change(
        "the work in threads",
        "it runs on all cores there (native code that lets go of the interpreter, or processes)",
        (lambda before: replace(before, gate=None, members=1),),
    )


def one_pass(known: Known, plant: Plant) -> Change | None:
    """A request that queues for the loop once."""
    if plant.gate is None or plant.gate.passes == 1:
        return None
    return Change(
        "one pass through the loop",
        "the work stays the same",
        (_once,),
    )


def twice_the_cores(known: Known, plant: Plant) -> Change | None:
    """For the service and what runs beside it on them."""
    return Change(
        f"{2 * known.curve.cores_allotted:g} cores in place of {known.curve.cores_allotted:g}",
        "the work spreads over them",
        (lambda before: replace(before, cores=2 * before.cores),),
    )


def half_the_work(known: Known, plant: Plant) -> Change | None:
    """Half the CPU time of a request."""
    return Change(
        f"half the CPU time of a request ({plant.work_s * 500:.3g} ms)",
        "the rest stays the same",
        (lambda before: replace(before, work_s=before.work_s / 2),),
    )


def twice_the_share(known: Known, plant: Plant) -> Change | None:
    """Twice the CPU time that a control group allows, up to the cores of the machine."""
    most = min(2 * plant.cores, max(plant.cores, known.curve.cores_allotted, known.cores))
    if most <= plant.cores:
        most = 2 * plant.cores
    return Change(
        f"a share of {most:.3g} cores in place of {plant.cores:.3g}",
        "the machine has them to spare",
        (lambda before: replace(before, cores=most, speed=min(1.0, most)),),
    )


def twice_as_many(what: str, *, assumes: str) -> Remedy:
    """Twice the places of what lets so many through at once."""

    def remedy(known: Known, plant: Plant) -> Change | None:
        if plant.gate is None:
            return None
        width = plant.gate.width
        words = f"{2 * width} {what} in place of {width}"
        return Change(words, assumes, (_wider,))

    return remedy


def let_through_twice(known: Known, plant: Plant) -> Change | None:
    """What is behind takes twice as many at once, whatever holds them there."""
    return Change("twice as many at once behind it", "each takes as long as now", (_wider,))


def held_half_as_long(known: Known, plant: Plant) -> Change | None:
    """Half the time under the lock, for each request."""
    if plant.gate is None:
        return None
    return Change(
        f"half the time under the lock ({plant.gate.hold_s * 500:.3g} ms)",
        "what moves out of it waits for nobody",
        (_shorter,),
    )


def half(what: str) -> Remedy:
    """Half of what passes the limit, for each request."""

    def remedy(known: Known, plant: Plant) -> Change | None:
        return Change(f"half of {what}", "the limit stays where it is", (_faster,))

    return remedy


def alike(words: str) -> Remedy:
    """All replicas get as much, and take as long."""

    def remedy(known: Known, plant: Plant) -> Change | None:
        return Change(words, "they share nothing that was not seen", (_alike,)) if plant.replicas else None

    return remedy


def shared(known: Known, plant: Plant) -> Change | None:
    """What happens under the lock at once for all."""
    return Change(
        "the lock shared",
        "nobody needs it for oneself, and the work under it goes at once",
        (_ungated,),
    )


def no_slow_path(known: Known, plant: Plant) -> Change | None:
    """Nobody takes it any more."""
    if plant.slow is None:
        return None
    return Change(NO_SLOW_PATH, AS_THE_OTHERS, (lambda before: replace(before, slow=None),))


def twice_the_pace(known: Known, plant: Plant) -> Change | None:
    """A limiter that lets twice as many through in a second."""
    return Change(
        f"a limit of {2 * known.most_per_s:.4g}/s in place of {known.most_per_s:.4g}",
        "the limiter delays and refuses nobody",
        (_faster,),
    )


def _wider(before: Plant) -> Plant:
    if before.gate is None:
        return before
    return replace(before, gate=replace(before.gate, width=2 * before.gate.width))


def _faster(before: Plant) -> Plant:
    if before.gate is None:
        return before
    return replace(before, gate=replace(before.gate, hold_s=before.gate.hold_s / 2))


def _shorter(before: Plant) -> Plant:
    """Half of the time under it goes on elsewhere."""
    if before.gate is None:
        return before
    half = before.gate.hold_s / 2
    return replace(before, rest_s=before.rest_s + half, gate=replace(before.gate, hold_s=half))


def _ungated(before: Plant) -> Plant:
    if before.gate is None:
        return before
    return replace(before, rest_s=before.rest_s + before.gate.hold_s, gate=None)


def _once(before: Plant) -> Plant:
    return before if before.gate is None else replace(before, gate=replace(before.gate, passes=1))


def _alike(before: Plant) -> Plant:
    return replace(before, replicas=(), members=len(before.replicas), policy="round_robin")
