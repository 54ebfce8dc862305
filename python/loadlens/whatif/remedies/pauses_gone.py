"""What it brings when a service stands still no more: arithmetic over the share of the time that it does.

Between standstills it does what it does now. So a closed load that fills it gets 1 / (1 - share) times as
much, and times without them are those of the requests that met none. What waits elsewhere goes on meanwhile:
at the lower end of the interval a standstill is shorter by the time of a request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadlens.diagnose.observe import stalls
from loadlens.estimate.interval import Interval, product
from loadlens.measure import figures
from loadlens.model.facts import Facts, ProbeWatch, Step
from loadlens.model.finding import Estimate, Evidence, Figure, Finding, Grade, Prediction
from loadlens.model.shapes import Spared
from loadlens.whatif.remedies.arithmetic import capacity_now, capacity_then, mean_then
from loadlens.whatif.remedies.curve_facts import Known, known_of, signal
from loadlens.whatif.remedies.predict import FURTHEST
from loadlens.whatif.remedies.service_model import NoModel

NO_STANDSTILLS: Final = "no standstills"
AS_BETWEEN: Final = "it always does what it does between them"
CATCHES_UP: Final = "ratelimit.active"  # what goes by the clock lets through later what it kept back
WHERE: Final = "at a light load"


def predicted(facts: Facts, finding: Finding, others: Sequence[Finding]) -> tuple[Prediction, ...]:
    """Return what it brings to the capacity of a full service, and to times at a light load.

    Raises:
        NoModel: Nothing can be told.
    """
    curves = [curve for curve in facts.curves if curve.label in finding.curves]
    found: list[Prediction] = []
    reasons: list[str] = []
    for curve in curves:
        try:
            found += _full(known_of(facts, curve), finding, others)
            break
        except NoModel as why:
            reasons.append(str(why))
    found += _light(facts, finding)
    if not found:
        raise NoModel(reasons[0] if reasons else "no level of load met one")
    return tuple(replace(one, remedy=NO_STANDSTILLS, assumes=AS_BETWEEN) for one in found)


# --- a service that is full -------------------------------------------------------------------------------


def _full(known: Known, finding: Finding, others: Sequence[Finding]) -> list[Prediction]:
    """The capacity without them, and what users at the highest level wait then."""
    limiter = [o for o in others if o.rule == CATCHES_UP and o.grade >= Grade.PROBABLE]
    if any(known.curve.label in other.curves for other in limiter):
        raise NoModel("a limiter goes by the clock, and lets through later what was kept back meanwhile")
    known.must_be_reached()
    share, length = signal(finding, "pause.share"), signal(finding, "pause.length")
    if share is None or length is None or share.value is None or length.value is None:
        raise NoModel("for what share of the time it stands still is not known")
    gain = _gain(share, length.value, known.alone.point)
    if gain.point > FURTHEST:
        raise NoModel(f"more than {FURTHEST:g} times what was measured: the next limit was not seen")
    now = capacity_now(known)
    method = "capacity over the share of the time that it does not stand still"
    then = capacity_then(known, product(figures.known(now), gain, method=method))
    alone_s = known.alone.point / gain.point  # at least so much of it is no standstill
    return [Prediction("capacity", now, then), *mean_then(known, then, alone_s)]


def _gain(share: Evidence, length_s: float, alone_s: float) -> Interval:
    """Throughput without standstills over that with them."""
    assert share.value is not None
    going_on = max(0.0, 1 - alone_s / length_s)
    low = None if share.low is None else 1 / (1 - share.low * going_on)
    high = None if share.high is None or share.high >= 1 else 1 / (1 - share.high)
    point = 1 / max(1e-9, 1 - share.value)
    return Interval(point, low, high, 1.0, "1 / (1 - share)")


# --- times that met one -----------------------------------------------------------------------------------


def _light(facts: Facts, finding: Finding) -> list[Prediction]:
    """Where the service has time to spare and most were seen: of the load, and of cheap requests, which come
    at any moment.
    """
    service = next((one for one in stalls.services_of(facts) if one.curves == finding.curves), None)
    calm = [] if service is None else [seen.step for seen in service.seen if seen.is_calm]
    probes = [probe for step in calm for probe in step.probes]
    step, probe = max(calm, key=_seen, default=None), max(probes, key=_seen, default=None)
    found: list[Prediction] = []
    if step is not None and step.spared is not None:
        now, then = step.response, step.spared.took
        pairs = (f"mean {WHERE}", now.mean, then.mean), (f"p99 {WHERE}", now.p99, then.p99)
        found += _told(step.spared, *pairs)
    if probe is not None and probe.spared is not None:
        what = f"p99 of {probe.request} {WHERE}"
        found += _told(probe.spared, (what, probe.response.p99, probe.spared.took.p99))
    return found


def _seen(one: Step | ProbeWatch) -> int:
    return 0 if one.spared is None else one.spared.requests


def _told(spared: Spared, *figures: tuple[str, Figure, Figure]) -> list[Prediction]:
    """Those that are known; a quantile only where standstills reach it."""
    found = []
    for what, before, after in figures:
        if not isinstance(before, Estimate) or not isinstance(after, Estimate):
            continue
        if what.startswith("p99") and before.point <= (after.high or after.point):
            continue
        method = f"arithmetic: of the {spared.requests:,} requests that met none; {after.method}"
        found.append(Prediction(what, before, replace(after, method=method)))
    return found
