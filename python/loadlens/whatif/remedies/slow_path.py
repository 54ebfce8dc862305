"""Effect of removing a slow path.

The mean falls by its share times its time longer: to that of the other requests, which is more precise than
either. If it holds a thread of a full pool, the pool's model has it as a class of its own, and without
it each thread answers more. Whether it holds other limits is not known, and no throughput is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Z_95, Estimate, Finding, Grade, Prediction
from loadlens.model.shapes import SlowPath, Took
from loadlens.present.load_text import load_with_unit
from loadlens.whatif.queueing import NoModel
from loadlens.whatif.remedies import changes
from loadlens.whatif.remedies.curve_facts import Ladder, SlowShare, ladder_of, signal, value_of
from loadlens.whatif.remedies.fitting import Candidate, held_error, mean_with, varied
from loadlens.whatif.remedies.predict import Treatment, predictions, undecided

HOLDS_ALL_ALONG: Final = ("threads.pool-limit",)  # rules of limits that a request holds to its end
BEYOND_P99: Final = 0.01  # of the requests
MOST_WIDTHS: Final = 5


def predicted(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return times at the lowest load without the slow path, and the capacity if it holds what limits.

    Raises:
        NoModel: Nothing can be predicted.
    """
    curve, path = _path(facts, finding)
    effects = (*_full(facts, curve, path, others), *_light(curve, path))
    if not effects:
        raise NoModel("how long requests take without it is not known")
    return effects


def _path(facts: Facts, finding: Finding) -> tuple[Curve, SlowPath]:
    """Return the path that the finding claims, by its share."""
    claimed = value_of(finding, "component.weight")
    for curve in facts.curves:
        for path in curve.slow_paths if curve.label in finding.curves else ():
            if claimed is not None and isinstance(path.weight, Estimate) and path.weight.point == claimed:
                return curve, path
    raise NoModel("which requests take it is not known")


# --- times ------------------------------------------------------------------------------------------------


def _light(curve: Curve, path: SlowPath) -> list[Prediction]:
    """Return times at the lowest load, of the same requests; p99 where the slow path reaches it."""
    level = path.alone
    if level is None or level.took is None or level.usual is None:
        return []
    of = f" of {path.request}" if len(curve.steps[0].classes) > 1 else ""
    where = f"{of} at {load_with_unit(curve, curve.steps[0])}"
    pairs = [(f"mean{where}", level.took.mean, level.usual.mean)]
    if isinstance(level.weight, Estimate) and level.weight.point > BEYOND_P99:
        pairs.append((f"p99{where}", level.took.p99, level.usual.p99))
    method = "arithmetic: of the requests that do not take it"
    return [
        Prediction(
            what,
            before,
            replace(after, method=f"{method}; {after.method}"),
            changes.NO_SLOW_PATH,
            changes.AS_THE_OTHERS,
        )
        for what, before, after in pairs
        if isinstance(after, Estimate)
    ]


# --- a pool that is full ----------------------------------------------------------------------------------


def _full(facts: Facts, curve: Curve, path: SlowPath, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return the effect by the model of the pool, if one is full; or why no model reproduces the curve."""
    sure = [o for o in others if o.rule in HOLDS_ALL_ALONG and o.grade >= Grade.PROBABLE]
    limit = next((other for other in sure if curve.label in other.curves), None)
    usual = None if path.alone is None else path.alone.usual
    if limit is None or usual is None:
        return ()
    ladder: Ladder | None = None
    try:
        ladder = ladder_of(facts, curve)
        held = replace(ladder, slow=_slow(curve, path, usual))
        return predictions(held, limit, Treatment(_pools, (changes.no_slow_path,)))
    except NoModel as why:
        reason = replace(undecided(str(why)), remedy=changes.NO_SLOW_PATH)
        return (reason if ladder is None else replace(reason, before=ladder.rate),)


def _slow(curve: Curve, path: SlowPath, usual: Took) -> SlowShare:
    if len(curve.steps[0].classes) > 1:
        raise NoModel("requests of several kinds: which of them fill the pool is not known")
    if not isinstance(path.weight, Estimate) or not isinstance(path.shift, Estimate):
        raise NoModel("share and time of the slow path are not known")
    if not isinstance(usual.mean, Estimate):
        raise NoModel(f"the time of the other requests is not known: {usual.mean.reason}")
    return SlowShare(path.weight, path.shift, usual.mean)


def _pools(ladder: Ladder, limit: Finding) -> list[Candidate]:
    return [
        Candidate("pool", law=law, pause=pause, width=width)
        for width in _widths(ladder, limit)
        for law, pause in varied(ladder)
    ]


def _widths(ladder: Ladder, limit: Finding) -> list[int]:
    """Return reported widths that capacity and mean time allow (Little's law), the nearest first."""
    assert ladder.slow is not None
    at_once = ladder.most_per_s * mean_with(ladder.slow).point
    spread = math.exp(Z_95 * held_error(ladder))
    low, high = max(1, math.ceil(at_once / spread)), math.floor(at_once * spread)
    size = signal(limit, "pool.size")
    if size is not None and size.value is not None:
        low = max(low, round(size.value if size.low is None else size.low))
        high = min(high, round(size.value if size.high is None else size.high))
    near = sorted(range(low, high + 1), key=lambda width: abs(width - at_once))[:MOST_WIDTHS]
    return near or [max(1, round(at_once if size is None or size.value is None else size.value))]
