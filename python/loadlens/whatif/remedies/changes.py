"""Changes of a service model that advice of a rule amounts to, in words and with what they assume."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from loadlens.whatif.queueing import POLICIES
from loadlens.whatif.remedies.curve_facts import Ladder
from loadlens.whatif.remedies.service_model import Limiter, ServiceModel

NO_SLOW_PATH = "the slow path gone"
AS_THE_OTHERS = "requests that took it take as long as the others"

Edit = Callable[[ServiceModel], ServiceModel]


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a service."""

    words: str  # "2 processes in place of 1"
    assumes: str
    ways: tuple[Edit, ...]  # in which it may turn out, equally likely

    def apply(self, model: ServiceModel, way: int = 0) -> ServiceModel:
        """Return the model after the change."""
        return self.ways[way % len(self.ways)](model)


Remedy = Callable[[Ladder, ServiceModel], Change | None]  # none: it would change nothing here


def more_processes(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Change to twice as many processes, or one per core."""
    many = min(2 * model.members, math.floor(ladder.curve.cores_allotted))
    if many <= model.members:
        return None

    def by(policy: str) -> Edit:
        return lambda before: replace(before, members=many, policy=policy)

    # How several share the requests shows only where there are several.
    policies = POLICIES if model.members == 1 else (model.policy,)
    return Change(
        f"{many} processes in place of {model.members}",
        "each takes requests as one does now",
        tuple(by(policy) for policy in policies),
    )


def into_threads(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Move the work out of the loop, to any core."""
    return Change(
        "the work in threads",
        "it runs on all cores there (native code that lets go of the interpreter, or processes)",
        (lambda before: replace(before, limiter=None, members=1),),
    )


def one_pass(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Queue for the loop once per request."""
    if model.limiter is None or model.limiter.passes == 1:
        return None
    once = _limiter_edit(lambda limiter: replace(limiter, passes=1))
    return Change("one pass through the loop", "the work stays the same", (once,))


def twice_the_cores(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Double the cores of the service and of what shares them."""
    return Change(
        f"{2 * ladder.curve.cores_allotted:g} cores in place of {ladder.curve.cores_allotted:g}",
        "the work spreads over them",
        (lambda before: replace(before, cores=2 * before.cores),),
    )


def half_the_work(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Halve the CPU time of a request."""
    return Change(
        f"half the CPU time of a request ({model.work_s * 500:.3g} ms)",
        "the rest stays the same",
        (lambda before: replace(before, work_s=before.work_s / 2),),
    )


def twice_the_share(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Double the CPU time that a control group allows, up to the cores of the machine."""
    most = min(2 * model.cores, max(model.cores, ladder.curve.cores_allotted, ladder.cores))
    if most <= model.cores:
        most = 2 * model.cores
    return Change(
        f"a share of {most:.3g} cores in place of {model.cores:.3g}",
        "the machine has them to spare",
        (lambda before: replace(before, cores=most, speed=min(1.0, most)),),
    )


def twice_as_many(what: str, *, assumes: str) -> Remedy:
    """Double the width of the limiter."""

    def remedy(ladder: Ladder, model: ServiceModel) -> Change | None:
        if model.limiter is None:
            return None
        width = model.limiter.width
        return Change(f"{2 * width} {what} in place of {width}", assumes, (_wider,))

    return remedy


def let_through_twice(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Double the width of what is behind, whatever limits it there."""
    return Change("twice as many at once behind it", "each takes as long as now", (_wider,))


def held_half_as_long(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Halve the time under the lock; the other half goes on elsewhere."""
    if model.limiter is None:
        return None

    def shorter(before: ServiceModel) -> ServiceModel:
        if before.limiter is None:
            return before
        half = before.limiter.hold_s / 2
        return replace(before, rest_s=before.rest_s + half, limiter=replace(before.limiter, hold_s=half))

    return Change(
        f"half the time under the lock ({model.limiter.hold_s * 500:.3g} ms)",
        "what moves out of it waits for no other request",
        (shorter,),
    )


def half(what: str) -> Remedy:
    """Halve what passes the limit, for each request."""

    def remedy(ladder: Ladder, model: ServiceModel) -> Change | None:
        return Change(f"half of {what}", "the limit stays where it is", (_faster,))

    return remedy


def alike(words: str) -> Remedy:
    """Give all replicas equal shares and equal speed."""

    def even(before: ServiceModel) -> ServiceModel:
        return replace(before, replicas=(), members=len(before.replicas), policy="round_robin")

    def remedy(ladder: Ladder, model: ServiceModel) -> Change | None:
        return Change(words, "they share nothing that was not seen", (even,)) if model.replicas else None

    return remedy


def shared(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Let all requests do the work under the lock at once."""

    def unlimited(before: ServiceModel) -> ServiceModel:
        if before.limiter is None:
            return before
        return replace(before, rest_s=before.rest_s + before.limiter.hold_s, limiter=None)

    return Change(
        "the lock shared",
        "no request needs it exclusively, and the work under it goes at once",
        (unlimited,),
    )


def no_slow_path(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Remove the slow path."""
    if model.slow is None:
        return None
    return Change(NO_SLOW_PATH, AS_THE_OTHERS, (lambda before: replace(before, slow=None),))


def twice_the_pace(ladder: Ladder, model: ServiceModel) -> Change | None:
    """Double the rate that a limiter lets through."""
    return Change(
        f"a limit of {2 * ladder.most_per_s:.4g}/s in place of {ladder.most_per_s:.4g}",
        "the limiter delays and refuses no request",
        (_faster,),
    )


def _limiter_edit(edit: Callable[[Limiter], Limiter]) -> Edit:
    """Return an edit of the limiter; models without one stay as they are."""

    def of_model(before: ServiceModel) -> ServiceModel:
        return before if before.limiter is None else replace(before, limiter=edit(before.limiter))

    return of_model


_wider = _limiter_edit(lambda limiter: replace(limiter, width=2 * limiter.width))
_faster = _limiter_edit(lambda limiter: replace(limiter, hold_s=limiter.hold_s / 2))
