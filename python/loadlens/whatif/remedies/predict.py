"""Effect of remedies on a fitted model, with intervals: capacity, and response times of users and probes.

Each draw takes other times within their errors and the next of the models that fit, so that indistinguishable
models widen the interval; what the model misses of the measured levels widens it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from loadlens.model.finding import (
    Z_95,
    Estimate,
    Figure,
    Finding,
    NotMeasured,
    Prediction,
    Undecided,
)
from loadlens.present import words
from loadlens.whatif.queueing import LOAD, NoModel
from loadlens.whatif.remedies import fitting
from loadlens.whatif.remedies.changes import Change, Remedy
from loadlens.whatif.remedies.curve_facts import Ladder, error_of
from loadlens.whatif.remedies.fitting import Candidate, Fitted, Values, service_of, simulated, typical
from loadlens.whatif.remedies.service_model import PROBE, ServiceModel

DRAWS, FEWEST_DRAWS = 24, 12
MOST_REQUESTS: Final = 100_000  # simulated for a remedy: about a fifth of a second
FURTHEST: Final = 4.0  # times what was measured: beyond, another, unseen limit will apply
WELL_BEYOND: Final = 3.0  # times the knee: there throughput is the capacity
MOST_USERS: Final = 4000

# Logarithms of each draw, by "capacity", "throughput", "response" or "probe", and users.
Drawn = dict[tuple[str, int], list[float]]


@dataclass(frozen=True, slots=True)
class Treatment:
    """The models of a cause, and its remedies."""

    candidates: Callable[[Ladder, Finding], Sequence[Candidate]]
    remedies: tuple[Remedy, ...]


def predictions(ladder: Ladder, finding: Finding, treatment: Treatment) -> tuple[Prediction, ...]:
    """Return what each remedy would bring.

    Raises:
        NoModel: No model of this cause reproduces the curve.
    """
    if ladder.top.load > MOST_USERS:
        raise NoModel(f"{ladder.top.load:g} users are more than are simulated")
    fitted = fitting.fit(ladder, treatment.candidates(ladder, finding))
    model = service_of(fitted.candidates[0], ladder, typical(ladder))
    changes = [change for remedy in treatment.remedies if (change := remedy(ladder, model)) is not None]
    return tuple(prediction for change in changes for prediction in _of_change(ladder, fitted, model, change))


def undecided(why: str) -> Prediction:
    """Return the reason why nothing is predicted, in place of a prediction."""
    before = NotMeasured("capacity", "no model reproduces the curve")
    return Prediction("capacity", before, Undecided("capacity", "1/s", why))


def _of_change(ladder: Ladder, fitted: Fitted, model: ServiceModel, change: Change) -> list[Prediction]:
    after = change.apply(model)
    think_s, probe, probe_load = ladder.curve.think_s, ladder.probe, ladder.probe_load
    far = _too_far(ladder, after) or too_many(after, think_s)
    # The response time of one user alone is measured, and hardly changes.
    is_low = ladder.knee is ladder.top or ladder.knee.load == 1
    levels = [ladder.top] if is_low else [ladder.top, ladder.knee]
    wanted = [round(step.load) for step in levels]
    full = _saturating(after, think_s)
    drawn = _draws(ladder, fitted, change, wanted, None if far else full)
    extra = probe_load.per_s if probe_load is not None and probe_load.is_load else 0.0
    predicted: list[Prediction] = []

    def note(what: str, before: Figure, figure: Figure) -> None:
        predicted.append(Prediction(what, before, figure, remedy=change.words, assumes=change.assumes))

    capacity: Figure = Undecided("capacity", "1/s", far)
    if not far:
        miss = fitted.misses.throughput
        capacity = more(_figure("capacity", "1/s", drawn.get(("capacity", full), []), miss), extra)
    note("capacity", more(ladder.rate, extra), capacity)
    beyond = {users: _beyond(ladder, drawn, users) for users in wanted}
    for step, users in zip(levels, wanted, strict=True):
        response: Figure = Undecided("response", "s", beyond[users])
        if not beyond[users]:
            miss = fitted.misses.response
            response = _figure("response", "s", drawn.get(("response", users), []), miss)
        note(f"mean at {words.users(users)}", step.response.mean, response)
    logs = drawn.get(("probe", wanted[0]))
    if probe is not None and not (probe_load is not None and probe_load.is_load) and logs is not None:
        what = f"{words.probe(probe.label, probe.request)} at {words.users(wanted[0])}"
        miss = fitted.misses.probe
        if miss > fitting.MOST_PROBE_MISS:
            off = f"the model misses the measured ones by {math.expm1(miss):.0%}"
            note(what, probe.response.mean, Undecided("probe", "s", off))
        elif not beyond[wanted[0]]:
            note(what, probe.response.mean, _figure("probe", "s", logs, miss))
    return predicted


def _draws(ladder: Ladder, fitted: Fitted, change: Change, wanted: Sequence[int], full: int | None) -> Drawn:
    random = np.random.default_rng(fitting.SEED)
    rounds = [*wanted, *([] if full is None else [full])]
    cost = sum(fitting.REQUESTS + max(2 * users, fitting.REQUESTS // 5) for users in rounds)
    draws = int(min(DRAWS, max(FEWEST_DRAWS, MOST_REQUESTS / cost)))
    drawn: Drawn = {}

    def note(kind: str, users: int, value: float | None) -> None:
        if value:
            drawn.setdefault((kind, users), []).append(math.log(value))

    for draw in range(draws):
        way, place = divmod(draw, len(fitted.candidates))
        candidate = fitted.candidates[place]
        after = change.apply(service_of(candidate, ladder, _drawn_values(ladder, random)), way)
        for place, users in enumerate(rounds):
            seed = 1000 * (draw + 1) + place
            figures = simulated(after, users, ladder.curve.think_s, pause=candidate.pause, seed=seed)
            if users == full and place == len(rounds) - 1:
                note("capacity", users, figures[LOAD].rate_per_s)
                continue
            note("throughput", users, figures[LOAD].rate_per_s)
            note("response", users, figures[LOAD].mean_s)
            if PROBE in figures:
                note("probe", users, figures[PROBE].mean_s)
    return drawn


def _drawn_values(ladder: Ladder, random: np.random.Generator) -> Values:
    """Return the measured quantities, each within its error."""

    def drawn(figure: Figure | None) -> float:
        if not isinstance(figure, Estimate):
            return 0.0
        return figure.point * math.exp(error_of(figure) * float(random.standard_normal()))

    values = Values(drawn(ladder.rate), drawn(ladder.alone), drawn(ladder.work))
    if ladder.slow is None:
        return values
    return replace(values, usual=drawn(ladder.slow.usual), longer=drawn(ladder.slow.longer))


def _figure(metric: str, unit: str, logs: Sequence[float], miss: float) -> Figure:
    """Return the middle of the draws; their spread and what the model missed make the interval."""
    if len(logs) < FEWEST_DRAWS / 2:
        return Undecided(metric, unit, "nothing was answered in the simulation")
    middle = float(np.mean(logs))
    spread = math.hypot(float(np.std(logs, ddof=1)), miss)
    low, high = math.exp(middle - Z_95 * spread), math.exp(middle + Z_95 * spread)
    method = f"predicted by simulation, {len(logs)} draws of what fits the measured levels"
    return Estimate(metric, unit, math.exp(middle), low, high, 0, len(logs), method)


def more(figure: Figure, by: float) -> Figure:
    """Return a figure with a constant added to its point and its ends."""
    if not isinstance(figure, Estimate) or not by:
        return figure
    low, high = (None if end is None else end + by for end in (figure.low, figure.high))
    return replace(figure, point=figure.point + by, low=low, high=high)


def _too_far(ladder: Ladder, after: ServiceModel) -> str:
    """Return the reason why the capacity after a change cannot be predicted; empty if there is none."""
    ceiling = after.ceiling
    if ceiling <= FURTHEST * ladder.most_per_s:
        return ""
    if math.isinf(ceiling):
        return "no other limit was seen; the next one is not known"
    return f"no limit was seen below {ceiling:,.0f}/s, more than {FURTHEST:g} times what was measured"


def too_many(after: ServiceModel, think_s: float) -> str:
    """Return the reason why users who would fill the service cannot be simulated; empty if there is none."""
    knee = after.ceiling * (after.alone_s + think_s)
    if math.isinf(knee) or knee <= MOST_USERS:
        return ""
    return f"it would take {knee:,.0f} users to fill it, more than the {MOST_USERS:,} that are simulated"


def _beyond(ladder: Ladder, drawn: Drawn, users: int) -> str:
    """Return the reason why the time at a load cannot be predicted; empty if there is none."""
    logs = drawn.get(("throughput", users), [])
    if logs and math.exp(float(np.mean(logs))) > FURTHEST * ladder.most_per_s:
        return f"it would take more than {FURTHEST:g} times the throughput that was measured"
    return ""


def _saturating(after: ServiceModel, think_s: float) -> int:
    """Return a number of users well beyond the knee."""
    if math.isinf(after.ceiling):
        return 1
    users = math.ceil(WELL_BEYOND * after.ceiling * (after.alone_s + think_s))
    return min(MOST_USERS, max(8, users))
