"""Effect of cores that the service shares no more: arithmetic, cores over the CPU time of a request.

Only for a service that is short of cores: its use and its waiting for cores must make up the cores that would
be there, otherwise something else limits it too. And the CPU time of a request must account for the use.

A generator on the same cores hands its requests over for free: the next process to run finds them. From a
core of its own it wakes the service across cores, and a request of 0.1 ms costs a fifth more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.estimate.interval import Interval, inverse, product, total
from loadlens.measure import figures
from loadlens.measure.curve import completed, cores_waited, held_together, used_by_others
from loadlens.measure.thresholds import SATURATED
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Z_95, Estimate, Finding, Prediction
from loadlens.whatif.queueing import NoModel
from loadlens.whatif.remedies.arithmetic import capacity_now, capacity_then, mean_then
from loadlens.whatif.remedies.curve_facts import (
    Ladder,
    error_of,
    generator_of,
    ladder_of,
)
from loadlens.whatif.remedies.fitting import AGREES

WITHOUT_OTHERS: Final = "without the other programs"
WITHOUT_GENERATOR: Final = "without the generator"
SAME_WORK: Final = "the CPU time of a request stays the same"
# Seconds of CPU that a request costs more; docs/explain/predictions.md says where that was measured.
WOKEN_S: Final = Interval(20e-6, 5e-6, 35e-6, 1.0, "measured")
WOKEN_WORK: Final = "a request costs 5 to 35 µs more CPU time where the service is woken across cores"


def without_others(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return the effect of ending other programs, with the generator where it is.

    Raises:
        NoModel: Nothing can be predicted.
    """
    if any(piece.signal == "host.steal" for piece in finding.evidence):
        raise NoModel("how much of the service's own time other machines took is not known")
    curve = _curve(facts, finding)
    ladder = ladder_of(facts, curve)
    if curve.cores_allotted < facts.cores:
        together = held_together(curve, ladder.top)
        cores = ladder.cores - (0.0 if together is None else together.lab)
        return _effect(ladder, cores, 0.0, WITHOUT_OTHERS)
    lab, back = generator_of(facts, curve), used_by_others(curve, ladder.top)
    cores = min(curve.cores_allotted - lab.always, ladder.cores + back)
    return _effect(ladder, cores, lab.per_request, WITHOUT_OTHERS)


def without_generator(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return the effect of moving the generator elsewhere, with other programs where they are.

    Raises:
        NoModel: Nothing can be predicted.
    """
    curve = _curve(facts, finding)
    ladder = ladder_of(facts, curve)
    cores = min(curve.cores_allotted, ladder.cores + generator_of(facts, curve).always)
    return _effect(ladder, cores, 0.0, WITHOUT_GENERATOR, woken=WOKEN_S)


def _curve(facts: Facts, finding: Finding) -> Curve:
    curve = next((curve for curve in facts.curves if curve.label in finding.curves), None)
    if curve is None:
        raise NoModel("it holds on no load curve")
    return curve


def _effect(
    ladder: Ladder, cores: float, other_cpu_s: float, without: str, *, woken: Interval | None = None
) -> tuple[Prediction, ...]:
    """Return capacity and mean time with these cores, from the CPU time of a request.

    Args:
        ladder: The curve.
        cores: That the service may use then.
        other_cpu_s: CPU seconds of a request in the generator, on the same cores.
        without: What is gone, in words.
        woken: CPU seconds that a request costs more then; none: it costs the same.
    """
    work = _work(ladder)
    waited, used = cores_waited(ladder.top), ladder.top.server_cores
    if waited is None:
        raise NoModel("how long the service waits for a core was not read")
    if used + waited < SATURATED * cores:
        raise NoModel(
            f"the service uses and waits for {used + waited:.2f} cores: {cores:.2f} are not what it lacks"
        )
    spread = math.exp(Z_95 * error_of(work))
    point = work.point + other_cpu_s
    each = replace(figures.known(work), point=point, low=point / spread, high=point * spread)
    if woken is not None:
        each = total(each, woken, method=each.method)
    now = capacity_now(ladder)
    # How far the CPU time accounts for the use, as a factor around 1.
    off = math.exp(Z_95 * abs(math.log(work.point * completed(ladder.top) / used)))
    rest = Interval(1.0, 1 / off, off, 1.0, "what is left of the CPU used")
    exact = Interval(cores, cores, cores, 1.0, "as given")
    rate = product(exact, inverse(each), rest, method="cores over the CPU time of a request")
    if woken is None:  # with more cores and the same work per request it does no less than before
        high = None if rate.high is None else max(rate.high, now.point)
        rate = replace(rate, point=max(rate.point, now.point), high=high)
    then = capacity_then(ladder, rate)
    words = f"{cores:.3g} {'core' if cores == 1 else 'cores'} {without}"
    effects = (Prediction("capacity", now, then), *mean_then(ladder, then, each.point))
    assumes = SAME_WORK if woken is None else WOKEN_WORK
    return tuple(replace(effect, remedy=words, assumes=assumes) for effect in effects)


def _work(ladder: Ladder) -> Estimate:
    """Return CPU seconds of a request, which must account for what the service uses at the highest load."""
    work, used = ladder.curve.work_all, ladder.top.server_cores
    if not isinstance(work, Estimate) or work.point <= 0 or used <= 0:
        raise NoModel("the CPU time of a request is not known")
    rate = completed(ladder.top)
    if not rate or abs(math.log(work.point * rate / used)) > AGREES + 2 * error_of(work):
        raise NoModel(
            f"{work.point * 1e3:.3g} ms of CPU a request are {work.point * rate:.2f} cores at {rate:.4g}/s, "
            f"{used:.2f} were used"
        )
    return work
