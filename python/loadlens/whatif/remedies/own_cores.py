"""What it brings when a service shares its cores no more: arithmetic, cores over the CPU time of a request.

Only of a service that is short of them: what it uses and what it waits for must make up the cores that would
be there, else something else limits it too. And the CPU time of a request must account for what it uses.

A generator on the same cores hands its requests over for nothing: whoever runs next finds them. From a core
of its own it wakes the service, across cores, and a request of a tenth of a millisecond costs a fifth more.
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
from loadlens.model.finding import Estimate, Finding, Prediction
from loadlens.whatif.remedies.arithmetic import capacity_now, capacity_then, mean_then
from loadlens.whatif.remedies.curve_facts import (
    T_95,
    Known,
    error_of,
    generator_of,
    known_of,
)
from loadlens.whatif.remedies.fitting import AGREES
from loadlens.whatif.remedies.service_model import NoModel

WITHOUT_OTHERS: Final = "without the other programs"
WITHOUT_GENERATOR: Final = "without the generator"
SAME_WORK: Final = "the CPU time of a request stays the same"
# Seconds of CPU that a request costs more; docs/explain/predictions.md says where that was measured.
WOKEN_S: Final = Interval(20e-6, 5e-6, 35e-6, 1.0, "measured")
WOKEN_WORK: Final = "a request costs 5 to 35 µs more CPU time where the service is woken across cores"


def without_others(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return what it brings when programs of others are gone, and the generator stays.

    Raises:
        NoModel: Nothing can be told.
    """
    if any(piece.signal == "host.steal" for piece in finding.evidence):
        raise NoModel("how much of the service's own time other machines took is not known")
    curve = _curve(facts, finding)
    known = known_of(facts, curve)
    if curve.cores_allotted < facts.cores:
        return _brought(known, known.cores - _held_too(known), 0.0, WITHOUT_OTHERS)
    lab, back = generator_of(facts, curve), used_by_others(curve, known.top)
    cores = min(curve.cores_allotted - lab.always, known.cores + back)
    return _brought(known, cores, lab.per_request, WITHOUT_OTHERS)


def without_generator(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return what it brings when the generator is elsewhere, and other programs stay.

    Raises:
        NoModel: Nothing can be told.
    """
    curve = _curve(facts, finding)
    known = known_of(facts, curve)
    cores = min(curve.cores_allotted, known.cores + generator_of(facts, curve).always)
    return _brought(known, cores, 0.0, WITHOUT_GENERATOR, woken=WOKEN_S)


def _held_too(known: Known) -> float:
    """Cores of the generator where it is held to those of the service."""
    own = held_together(known.curve, known.top)
    return 0.0 if own is None else own.lab


def _curve(facts: Facts, finding: Finding) -> Curve:
    found = next((curve for curve in facts.curves if curve.label in finding.curves), None)
    if found is None:
        raise NoModel("it holds on no load curve")
    return found


def _brought(
    known: Known, cores: float, aside_s: float, who: str, *, woken: Interval | None = None
) -> tuple[Prediction, ...]:
    """As many as the CPU time of each allows on so many cores.

    Args:
        known: The curve.
        cores: That the service may use then.
        aside_s: CPU seconds of a request in the generator, on the same cores.
        who: Is gone.
        woken: CPU seconds that a request costs more then; none: it costs the same.
    """
    work = _work(known)
    waited, used = cores_waited(known.top), known.top.server_cores
    if waited is None:
        raise NoModel("how long the service waits for a core was not read")
    if used + waited < SATURATED * cores:
        raise NoModel(
            f"the service uses and waits for {used + waited:.2f} cores: {cores:.2f} are not what it lacks"
        )
    each = _with_point(work, work.point + aside_s)
    if woken is not None:
        each = total(each, woken, method=each.method)
    now = capacity_now(known)
    method = "cores over the CPU time of a request"
    found = product(_exactly(cores), inverse(each), _off(known, work), method=method)
    if woken is None:  # whoever gets more of the cores, and works as before, does no less than before
        found = replace(
            found,
            point=max(found.point, now.point),
            high=None if found.high is None else max(found.high, now.point),
        )
    then = capacity_then(known, found)
    words = f"{cores:.3g} {'core' if cores == 1 else 'cores'} {who}"
    told = (Prediction("capacity", now, then), *mean_then(known, then, each.point))
    assumes = SAME_WORK if woken is None else WOKEN_WORK
    return tuple(replace(one, remedy=words, assumes=assumes) for one in told)


def _work(known: Known) -> Estimate:
    """CPU seconds of a request, which must account for what the service uses at the highest load."""
    work, used = known.curve.work_all, known.top.server_cores
    if not isinstance(work, Estimate) or work.point <= 0 or used <= 0:
        raise NoModel("the CPU time of a request is not known")
    rate = completed(known.top)
    if not rate or abs(math.log(work.point * rate / used)) > AGREES + 2 * error_of(work):
        raise NoModel(
            f"{work.point * 1e3:.3g} ms of CPU a request are {work.point * rate:.2f} cores at {rate:.4g}/s, "
            f"{used:.2f} were used"
        )
    return work


def _off(known: Known, work: Estimate) -> Interval:
    """How far that account is off, as a factor around 1."""
    off = abs(math.log(work.point * completed(known.top) / known.top.server_cores))
    return Interval(1.0, math.exp(-T_95 * off), math.exp(T_95 * off), 1.0, "what is left of the CPU used")


def _exactly(value: float) -> Interval:
    return Interval(value, value, value, 1.0, "as told")


def _with_point(work: Estimate, point: float) -> Interval:
    """The same error, of another figure."""
    spread = math.exp(T_95 * error_of(work))
    return replace(figures.known(work), point=point, low=point / spread, high=point * spread)
