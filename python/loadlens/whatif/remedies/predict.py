"""What remedies bring to a fitted model, with intervals: capacity, and what users and probes then wait.

Each draw takes other times within their errors and the next of the models that fit, so that what cannot be
told apart widens the interval; what the model misses of the measured levels widens it too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from loadlens.model.finding import (
    Estimate,
    Figure,
    Finding,
    NotMeasured,
    Prediction,
    Undecided,
)
from loadlens.present import words
from loadlens.whatif.remedies.changes import Change
from loadlens.whatif.remedies.curve_facts import Known, error_of
from loadlens.whatif.remedies.fitting import (
    MOST_PROBE_MISS,
    REQUESTS,
    SEED,
    Fitted,
    Values,
    fit,
    plant_of,
    simulated,
    typical,
)
from loadlens.whatif.remedies.service_model import LOAD, PROBE, NoModel, Plant
from loadlens.whatif.remedies.treatment import Treatment

DRAWS, FEWEST_DRAWS = 24, 12
MOST_REQUESTS: Final = 100_000  # simulated for a remedy: about a fifth of a second
FURTHEST: Final = 4.0  # times what was measured: beyond, something else will limit that nobody saw
WELL_BEYOND: Final = 3.0  # times the knee: there throughput is the capacity
MOST_USERS: Final = 4000
T_95: Final = 1.96

Key = tuple[str, int]  # "capacity", "throughput", "response", "probe", and the users


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What one remedy gave in all draws."""

    logs: dict[Key, list[float]]


def predictions(known: Known, finding: Finding, treatment: Treatment) -> tuple[Prediction, ...]:
    """Return what each remedy would bring.

    Raises:
        NoModel: No model of this cause reproduces the curve.
    """
    if known.top.load > MOST_USERS:
        raise NoModel(f"{known.top.load:g} users are more than are simulated")
    fitted = fit(known, treatment.candidates(known, finding))
    plant = plant_of(fitted.candidates[0], known, typical(known))
    found: list[Prediction] = []
    for remedy in treatment.remedies:
        change = remedy(known, plant)
        if change is not None:
            found += _of_change(known, fitted, plant, change)
    return tuple(found)


def undecided(why: str) -> Prediction:
    """Nothing is foretold, and why."""
    before = NotMeasured("capacity", "no model reproduces the curve")
    return Prediction("capacity", before, Undecided("capacity", "1/s", why))


def _of_change(known: Known, fitted: Fitted, plant: Plant, change: Change) -> list[Prediction]:
    typical_after = change.apply(plant)
    far = _too_far(known, typical_after) or too_many(typical_after, known.curve.think_s)
    # What one user alone meets is measured, and hardly changes.
    levels = [known.top] if known.knee is known.top or known.knee.load == 1 else [known.top, known.knee]
    wanted = [round(step.load) for step in levels]
    full = _saturating(typical_after, known.curve.think_s)
    drawn = _draws(known, fitted, change, wanted, None if far else full)
    beside = known.beside.per_s if known.beside is not None and known.beside.is_load else 0.0

    def told(what: str, before: Figure, after: Figure) -> Prediction:
        return Prediction(what, before, after, remedy=change.words, assumes=change.assumes)

    capacity: Figure = (
        Undecided("capacity", "1/s", far)
        if far
        else _figure("capacity", "1/s", drawn, ("capacity", full), fitted, "throughput", more=beside)
    )
    found = [told("capacity", more(known.rate, beside), capacity)]
    for step, users in zip(levels, wanted, strict=True):
        beyond = _beyond(known, drawn, users)
        after: Figure = (
            Undecided("response", "s", beyond)
            if beyond
            else _figure("response", "s", drawn, ("response", users), fitted, "response")
        )
        found.append(told(f"mean at {words.users(users)}", step.response.mean, after))
    probe = known.probe
    is_like_load = known.beside is not None and known.beside.is_load
    if probe is not None and not is_like_load and ("probe", wanted[0]) in drawn.logs:
        what = f"{probe.request} at {words.users(wanted[0])}"
        miss = fitted.misses.get("probe", 0.0)
        if miss > MOST_PROBE_MISS:
            off = f"the model misses the measured ones by {math.expm1(miss):.0%}"
            found.append(told(what, probe.response.mean, Undecided("probe", "s", off)))
        elif not _beyond(known, drawn, wanted[0]):
            after = _figure("probe", "s", drawn, ("probe", wanted[0]), fitted, "probe")
            found.append(told(what, probe.response.mean, after))
    return found


def _draws(known: Known, fitted: Fitted, change: Change, wanted: Sequence[int], full: int | None) -> _Drawn:
    random = np.random.default_rng(SEED)
    rounds = [*wanted, *([] if full is None else [full])]
    cost = sum(REQUESTS + max(2 * users, REQUESTS // 5) for users in rounds)
    draws = int(min(DRAWS, max(FEWEST_DRAWS, MOST_REQUESTS / cost)))
    logs: dict[Key, list[float]] = {}
    for draw in range(draws):
        way, place = divmod(draw, len(fitted.candidates))
        candidate = fitted.candidates[place]
        after = change.apply(plant_of(candidate, known, _drawn_values(known, random)), way)
        for place, users in enumerate(rounds):
            seed = 1000 * (draw + 1) + place
            figures = simulated(after, users, known.curve.think_s, pause=candidate.pause, seed=seed)
            if users == full and place == len(rounds) - 1:
                _note(logs, ("capacity", users), figures[LOAD]["rate_per_s"])
                continue
            _note(logs, ("throughput", users), figures[LOAD]["rate_per_s"])
            _note(logs, ("response", users), figures[LOAD]["mean_s"])
            if PROBE in figures:
                _note(logs, ("probe", users), figures[PROBE]["mean_s"])
    return _Drawn(logs)


def _note(into: dict[Key, list[float]], key: Key, value: float | None) -> None:
    if value:
        into.setdefault(key, []).append(math.log(value))


def _drawn_values(known: Known, random: np.random.Generator) -> Values:
    """The measured quantities, each within its error."""

    def one(figure: Figure | None) -> float:
        if not isinstance(figure, Estimate):
            return 0.0
        return figure.point * math.exp(error_of(figure) * float(random.standard_normal()))

    rate, alone, work = one(known.rate), one(known.alone), one(known.work)
    if known.slow is None:
        return Values(rate, alone, work)
    return Values(rate, alone, work, one(known.slow.usual), one(known.slow.longer))


def _figure(
    metric: str, unit: str, drawn: _Drawn, key: Key, fitted: Fitted, kind: str, *, more: float = 0.0
) -> Figure:
    """The middle of the draws; their spread and what the model missed make the interval."""
    logs = drawn.logs.get(key, [])
    if len(logs) < FEWEST_DRAWS / 2:
        return Undecided(metric, unit, "nothing was answered in the simulation")
    middle = float(np.mean(logs))
    spread = math.hypot(float(np.std(logs, ddof=1)), fitted.misses.get(kind, 0.0))
    method = f"predicted by simulation, {len(logs)} draws of what fits the measured levels"
    return Estimate(
        metric,
        unit,
        math.exp(middle) + more,
        math.exp(middle - T_95 * spread) + more,
        math.exp(middle + T_95 * spread) + more,
        0,
        len(logs),
        method,
    )


def more(figure: Figure, by: float) -> Figure:
    """A figure with so much added to it and its ends."""
    if not isinstance(figure, Estimate) or not by:
        return figure
    low, high = (None if end is None else end + by for end in (figure.low, figure.high))
    return replace(figure, point=figure.point + by, low=low, high=high)


def _too_far(known: Known, after: Plant) -> str:
    """Why the capacity after a change cannot be told; empty: it can."""
    ceiling = after.ceiling
    if ceiling <= FURTHEST * known.most_per_s:
        return ""
    if math.isinf(ceiling):
        return "no other limit was seen; the next one is not known"
    return f"no limit was seen below {ceiling:,.0f}/s, more than {FURTHEST:g} times what was measured"


def too_many(after: Plant, think_s: float) -> str:
    """Why users who would fill the service then cannot be simulated; empty: they can."""
    knee = after.ceiling * (after.alone_s + think_s)
    if math.isinf(knee) or knee <= MOST_USERS:
        return ""
    return f"it would take {knee:,.0f} users to fill it, more than the {MOST_USERS:,} that are simulated"


def _beyond(known: Known, drawn: _Drawn, users: int) -> str:
    """Why the time at a load cannot be told; empty: it can."""
    logs = drawn.logs.get(("throughput", users), [])
    if logs and math.exp(float(np.mean(logs))) > FURTHEST * known.most_per_s:
        return f"it would take more than {FURTHEST:g} times the throughput that was measured"
    return ""


def _saturating(after: Plant, think_s: float) -> int:
    """Users who are well beyond the knee."""
    if math.isinf(after.ceiling):
        return 1
    users = math.ceil(WELL_BEYOND * after.ceiling * (after.alone_s + think_s))
    return min(MOST_USERS, max(8, users))
