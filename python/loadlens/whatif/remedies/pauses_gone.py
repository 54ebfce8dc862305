"""Effect of ending standstills of a service: arithmetic over their share of the time.

Between standstills it does what it does now. So a closed load that fills it gets 1 / (1 - share) times as
much, and times without them are those of the requests that met none. What waits elsewhere goes on meanwhile:
at the lower end of the interval a standstill is shorter by the time of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.diagnose.observe import service_pauses
from loadlens.estimate.interval import Interval, product
from loadlens.measure import figures
from loadlens.model.facts import Facts, ProbeWatch, Step
from loadlens.model.finding import Estimate, Figure, Finding, Grade, Prediction
from loadlens.model.shapes import SparedRequests
from loadlens.present import words
from loadlens.whatif.queueing import NoModel
from loadlens.whatif.remedies.arithmetic import capacity_now, capacity_then, mean_then
from loadlens.whatif.remedies.curve_facts import Ladder, ladder_of, signal, value_of
from loadlens.whatif.remedies.predict import FURTHEST

NO_STANDSTILLS: Final = "no standstills"
AS_BETWEEN: Final = "it always does what it does between them"
CATCHES_UP: Final = "ratelimit.active"  # what goes by the clock lets through later what it kept back
WHERE: Final = "at a light load"


def predicted(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return the effect on the capacity of a full service, and on times at a light load.

    Raises:
        NoModel: Nothing can be predicted.
    """
    effects: list[Prediction] = []
    reasons: list[str] = []
    for curve in facts.curves:
        if curve.label in finding.curves:
            try:
                effects += _full(ladder_of(facts, curve), finding, others)
                break
            except NoModel as why:
                reasons.append(str(why))
    effects += _light(facts, finding)
    if not effects:
        raise NoModel(reasons[0] if reasons else "no level of load met one")
    return tuple(replace(effect, remedy=NO_STANDSTILLS, assumes=AS_BETWEEN) for effect in effects)


# --- a service that is full -------------------------------------------------------------------------------


def _full(ladder: Ladder, finding: Finding, others: Sequence[Finding]) -> list[Prediction]:
    """Return the capacity without standstills, and the mean time at the highest level then."""
    limiter = [o for o in others if o.rule == CATCHES_UP and o.grade >= Grade.PROBABLE]
    if any(ladder.curve.label in other.curves for other in limiter):
        raise NoModel("a limiter goes by the clock, and lets through later what was kept back meanwhile")
    ladder.must_be_reached()
    share, length_s = signal(finding, "pause.share"), value_of(finding, "pause.length")
    if share is None or length_s is None or share.value is None:
        raise NoModel("for what share of the time it stands still is not known")
    # Throughput without standstills over that with them.
    going_on = max(0.0, 1 - ladder.alone.point / length_s)
    gain = Interval(
        1 / max(1e-9, 1 - share.value),
        None if share.low is None else 1 / (1 - share.low * going_on),
        None if share.high is None or share.high >= 1 else 1 / (1 - share.high),
        1.0,
        "1 / (1 - share)",
    )
    if gain.point > FURTHEST:
        raise NoModel(f"more than {FURTHEST:g} times what was measured: the next limit was not seen")
    now = capacity_now(ladder)
    method = "capacity over the share of the time that it does not stand still"
    then = capacity_then(ladder, product(figures.known(now), gain, method=method))
    alone_s = ladder.alone.point / gain.point  # at least so much of it is no standstill
    return [Prediction("capacity", now, then), *mean_then(ladder, then, alone_s)]


# --- times that met one -----------------------------------------------------------------------------------


def _light(facts: Facts, finding: Finding) -> list[Prediction]:
    """Return times where the service has time to spare and most standstills were seen.

    Of the load, and of cheap requests, which come at any moment.
    """
    service = next((s for s in service_pauses.services_of(facts) if s.curves == finding.curves), None)
    light = [] if service is None else [seen.step for seen in service.seen if seen.is_calm]
    probes = [probe for step in light for probe in step.probes]
    step, probe = max(light, key=_seen, default=None), max(probes, key=_seen, default=None)
    effects: list[Prediction] = []
    if step is not None and step.spared is not None:
        now, then = step.response, step.spared.took
        pairs = (f"mean {WHERE}", now.mean, then.mean), (f"p99 {WHERE}", now.p99, then.p99)
        effects += _effects(step.spared, *pairs)
    if probe is not None and probe.spared is not None:
        what = f"p99 of {words.probe(probe.label, probe.request)} {WHERE}"
        effects += _effects(probe.spared, (what, probe.response.p99, probe.spared.took.p99))
    return effects


def _seen(watched: Step | ProbeWatch) -> int:
    return 0 if watched.spared is None else watched.spared.requests


def _effects(spared: SparedRequests, *figures: tuple[str, Figure, Figure]) -> list[Prediction]:
    """Return predictions of the figures with a value; a quantile only where standstills reach it."""
    effects = []
    for what, before, after in figures:
        if not isinstance(before, Estimate) or not isinstance(after, Estimate):
            continue
        if what.startswith("p99") and before.point <= (after.high or after.point):
            continue
        method = f"arithmetic: of the {spared.requests:,} requests that met none; {after.method}"
        effects.append(Prediction(what, before, replace(after, method=method)))
    return effects
