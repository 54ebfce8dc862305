"""What it brings when nobody takes a slow path any more.

The mean falls by its share times its time longer: to that of the other requests, which is known far better
than either. Where it holds a thread of a pool that is full, the pool's model has it as a class of its own,
and without it each thread answers more. Of other limits nobody knows whether it holds them, and no throughput
is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Estimate, Finding, Grade, Prediction
from loadlens.model.shapes import SlowPath, Took
from loadlens.present.load_text import load_with_unit
from loadlens.whatif.remedies import changes
from loadlens.whatif.remedies.curve_facts import T_95, Known, SlowKnown, known_of, signal
from loadlens.whatif.remedies.fitting import Candidate, held_error, mean_with, varied
from loadlens.whatif.remedies.predict import predictions, undecided
from loadlens.whatif.remedies.service_model import NoModel
from loadlens.whatif.remedies.treatment import Treatment

HOLDS_ALL_ALONG: Final = ("threads.pool-limit",)  # rules of limits that a request holds to its end
BEYOND_P99: Final = 0.01  # of the requests
MOST_WIDTHS: Final = 5


def predicted(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return the times at the lowest load without it, and where it holds what limits, the capacity.

    Raises:
        NoModel: Nothing can be told.
    """
    curve, path = _path(facts, finding)
    found = (*_full(facts, curve, path, others), *_light(curve, path))
    if not found:
        raise NoModel("how long requests take beside it is not known")
    return found


def _path(facts: Facts, finding: Finding) -> tuple[Curve, SlowPath]:
    """The one that the finding claims, by its share."""
    told = signal(finding, "component.weight")
    for curve in facts.curves:
        for path in curve.slow_paths if curve.label in finding.curves else ():
            weight = path.weight
            if told is not None and isinstance(weight, Estimate) and weight.point == told.value:
                return curve, path
    raise NoModel("which requests take it is not known")


# --- times ------------------------------------------------------------------------------------------------


def _light(curve: Curve, path: SlowPath) -> list[Prediction]:
    """At the lowest load, of the same requests; p99 where the slow path reaches it."""
    level = path.alone
    if level is None or level.took is None or level.usual is None:
        return []
    of = f" of {path.request}" if len(curve.steps[0].classes) > 1 else ""
    where = f"{of} at {load_with_unit(curve, curve.steps[0])}"
    pairs = [(f"mean{where}", level.took.mean, level.usual.mean)]
    if isinstance(level.weight, Estimate) and level.weight.point > BEYOND_P99:
        pairs.append((f"p99{where}", level.took.p99, level.usual.p99))
    return [
        Prediction(what, before, _reckoned(after), changes.NO_SLOW_PATH, changes.AS_THE_OTHERS)
        for what, before, after in pairs
        if isinstance(after, Estimate)
    ]


def _reckoned(after: Estimate) -> Estimate:
    return replace(after, method=f"arithmetic: of the requests that do not take it; {after.method}")


# --- a pool that is full ----------------------------------------------------------------------------------


def _full(facts: Facts, curve: Curve, path: SlowPath, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """From the model of the pool, if one was found full; why not, where no model reproduces the curve."""
    limit = next((other for other in others if _holds(other, curve)), None)
    usual = None if path.alone is None else path.alone.usual
    if limit is None or usual is None:
        return ()
    known: Known | None = None
    try:
        known = known_of(facts, curve)
        held = replace(known, slow=_slow(curve, path, usual))
        return predictions(held, limit, Treatment(_pools, (changes.no_slow_path,)))
    except NoModel as why:
        told = replace(undecided(str(why)), remedy=changes.NO_SLOW_PATH)
        return (told if known is None else replace(told, before=known.rate),)


def _holds(other: Finding, curve: Curve) -> bool:
    is_sure = other.rule in HOLDS_ALL_ALONG and other.grade >= Grade.PROBABLE
    return is_sure and curve.label in other.curves


def _slow(curve: Curve, path: SlowPath, usual: Took) -> SlowKnown:
    if len(curve.steps[0].classes) > 1:
        raise NoModel("requests of several kinds: which of them fill the pool is not known")
    if not isinstance(path.weight, Estimate) or not isinstance(path.shift, Estimate):
        raise NoModel("share and time of the slow path are not known")
    if not isinstance(usual.mean, Estimate):
        raise NoModel(f"the time of the other requests is not known: {usual.mean.reason}")
    return SlowKnown(path.weight, path.shift, usual.mean)


def _pools(known: Known, limit: Finding) -> list[Candidate]:
    return [
        Candidate("pool", law=law, pause=pause, width=width)
        for width in _widths(known, limit)
        for law, pause in varied(known)
    ]


def _widths(known: Known, limit: Finding) -> list[int]:
    """As many as are told, within what capacity and mean time allow (Little's law), the nearest first."""
    assert known.slow is not None
    at_once = known.most_per_s * mean_with(known.slow).point
    spread = math.exp(T_95 * held_error(known))
    low, high = max(1, math.ceil(at_once / spread)), math.floor(at_once * spread)
    told = signal(limit, "pool.size")
    if told is not None and told.value is not None:
        least, most = (told.value if end is None else end for end in (told.low, told.high))
        low, high = max(low, round(least)), min(high, round(most))
    near = sorted(range(low, high + 1), key=lambda width: abs(width - at_once))[:MOST_WIDTHS]
    return near or [max(1, round(at_once if told is None or told.value is None else told.value))]
