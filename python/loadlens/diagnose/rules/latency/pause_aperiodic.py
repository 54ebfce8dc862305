"""The service stands still now and then, at no period.

**Means.** At irregular moments nothing at all is answered for a while, cheap requests neither: a collection
that allocation brings about, a flush, a lock that everything takes, another tenant of the machine.

**Needs.** Four stretches or more, each of 85 ms or more, in which no stream got an answer although several
requests waited for one, longer than chance allows and than five times the shortest response. They lie where
the service had time to spare: at the light load with dense probes, or at levels whose median is at most 1.5
times that of the lowest and that leave it 30 % of its cores. Their distances keep no period. Two or three of
them are a suspicion, a single one is nothing.

**Ruled out by.** A cause that was found and makes such stretches by itself: an event loop that computes, a
pool of threads or of connections that is full, a CPU quota, paging, connections that are accepted too slowly.
Behind these two or three long jobs in a row stop everything too. Other machines of the host that took as much
time in these very trials as everything stood still. One stretch in each trial at the same moment of it: the
trial makes them. Where they begin just as we read the service's own metrics they are a suspicion.

**Thresholds.** 85 ms: what 200 probes a second can tell from chance within two minutes; a shared machine
stops everything for 50 ms now and then. Levels where requests wait for each other are left out: there
answers come in bursts.

**Do.** Put the service's own log beside these moments: collections, flushes, checkpoints. A service that is
full does 1 / (1 - share) times as much without them. The share is length times how many there were a second,
with the interval of a number that comes by chance (Poisson).

**Confirm.** The collector's log, or a heap of another size: the stretches move or change their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.observe import stalls
from loadlens.estimate import pauses, within_trial
from loadlens.estimate.interval import Interval
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "pause.aperiodic"
TITLE = "the service stands still now and then"
EXPLAINS: tuple[str, ...] = ()

LEAST_S = 0.085
SEVERAL = 2
MAKE_GAPS = (
    "eventloop.blocked",
    "loop.multipass",
    "threads.pool-limit",
    "db.pool",
    "cgroup.throttled",
    "memory.pressure",
    "accept.drops",
    "gen.bottleneck",
)


def assess_after(
    facts: Facts, others: Sequence[Finding | Absent | NotAssessed]
) -> Finding | Absent | NotAssessed:
    """Look at what no other finding explains."""
    services = stalls.services_of(facts)
    if not services:
        return NotAssessed(ID, TITLE, stalls.not_looked(facts))
    known = [service for service in services if math.isfinite(_limit(service))]
    if not known:
        return NotAssessed(ID, TITLE, "needs a load that leaves the service time, with probes or eight users")
    findings = [o for o in others if isinstance(o, Finding) and o.grade >= Grade.PROBABLE]
    found = grading.first(_finding(facts, service, findings) for service in known)
    most = max(known, key=lambda service: len(_stops(service)))
    return found or Absent(ID, TITLE, _silence(most, findings))


def _calm(service: stalls.Service) -> list[stalls.Seen]:
    return [one for one in service.seen if one.is_calm]


def _limit(service: stalls.Service) -> float:
    return max(LEAST_S, min((one.watch.shortest_s for one in _calm(service)), default=math.inf))


def _stopped(service: stalls.Service) -> list[stalls.Seen]:
    """Trials with a stretch that counts; shorter ones are the machine's."""
    return [one for one in _calm(service) if stalls.stops_of([one], least_s=LEAST_S)]


def _stops(service: stalls.Service) -> list[float]:
    found = stalls.stops_of(_calm(service), least_s=LEAST_S)
    return [stop.end_s - stop.begin_s for stop in found]


def _cause(service: stalls.Service, findings: Sequence[Finding]) -> str:
    """A finding that makes such stretches by itself, on the same curves; empty: none."""
    for finding in findings:
        shared = set(finding.curves) & set(service.curves) or not finding.curves
        if shared and (finding.rule in MAKE_GAPS or finding.rule == "pause.periodic"):
            return finding.rule
    return ""


def _finding(facts: Facts, service: stalls.Service, findings: Sequence[Finding]) -> Finding | None:
    calm, lengths = _calm(service), _stops(service)
    length = stalls.length_of(calm, least_s=LEAST_S)
    if len(lengths) < SEVERAL or length is None or _cause(service, findings):
        return None
    if pauses.beat_of_lives(stalls.ends_by_life(calm, least_s=LEAST_S)) is not None:
        return None
    stopped = _stopped(service)
    step = stopped[0].step
    stands = stalls.stopped_share(length, _per_s(service))
    signals = [*_signals(service, length), stalls.share_signal(stands)]
    rivals = [
        grading.generator_rival(step),
        grading.interference_rival(step, facts.cores),
        stalls.stolen_rival(calm, facts.cores, least_s=LEAST_S),
        stalls.trials_rival(stalls.at_one_moment(calm, least_s=LEAST_S)),
        grading.rival(
            "a cause that was found", "no loop, pool or quota was found that stops everything", True
        ),
        grading.rival("chance", f"a gap is chance up to {numbers.with_unit(_limit(service), 's')}", True),
    ]
    grade = grading.grade_of(signals, rivals, cap=Grade.STRONG if len(stopped) > 2 else Grade.PROBABLE)
    if grade is None:
        return None
    share = stands.point
    each = numbers.with_unit(length.point, "s")
    count = f"{len(lengths)} times"
    return Finding(
        rule=ID,
        grade=grade,
        impact=share,
        scope=" and ".join(service.curves) or step.label,
        statement=grading.statement(f"Nothing is answered for {each}, {count} in {_looked_s(service):.0f} s"),
        explanation=f"{stalls.who_stops(step)}, {numbers.percent(share)} of the time"
        f"{'' if len(lengths) < pauses.FEWEST_EVENTS else ' and at no period'}; it had time to spare there.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Look for what lasts about {each} in the service's own log (collections, flushes, "
        "checkpoints) and take it off the path of requests.",
        confirm="collector's log beside these moments, or another heap: their number changes",
        unknown=(stalls.not_looked_for(_limit(service)),),
        curves=service.curves,
    )


def _signals(service: stalls.Service, length: Estimate) -> list[grading.Signal]:
    lengths = _stops(service)
    limit = numbers.with_unit(_limit(service), "s")
    few = len(lengths) < pauses.FEWEST_EVENTS
    signals = [
        grading.at_least(
            "pause.length",
            length,
            _limit(service),
            text=f"{len(lengths)} stretches without any answer at a light load, {numbers.shown(length)} each "
            f"(limit {limit})",
            chip=f"{len(lengths)} pauses of {numbers.with_unit(length.point, 's')}",
        ),
        grading.stated(
            "pause.count",
            None if few else True,
            text=f"{len(lengths)} of them (four are needed to say that they keep no period)",
            chip=f"{len(lengths)} in {_looked_s(service):.0f} s",
        ),
    ]
    return [*signals, *stalls.own_reading(_calm(service), least_s=LEAST_S)]


def _per_s(service: stalls.Service) -> Interval:
    """How many there are in a second: they come by chance, so their number is Poisson's."""
    found = within_trial.rate(np.array([float(len(_stops(service)))]), np.array([_looked_s(service)]))
    assert isinstance(found, Interval)  # it was looked for some time
    return found


def _looked_s(service: stalls.Service) -> float:
    """Seconds at a light load in which the longest stretch, or one of the limit, would have been seen."""
    least = max(_stops(service), default=_limit(service))
    return sum(one.watch.seconds for one in _calm(service) if one.watch.shortest_s <= least)


def _silence(service: stalls.Service, findings: Sequence[Finding]) -> str:
    lengths, limit = _stops(service), numbers.with_unit(_limit(service), "s")
    if not lengths:
        return (
            f"no stretch of {limit} or more without an answer in {_looked_s(service):.0f} s at a light load; "
            "shorter ones not assessed"
        )
    if len(lengths) < SEVERAL:
        return f"one stretch of {numbers.with_unit(lengths[0], 's')} without an answer: anything makes one"
    cause = _cause(service, findings)
    if cause:
        return f"{len(lengths)} stretches of {limit} or more without an answer, which {cause} explains"
    reason = "they keep a period, or the generator, other machines or the begin of each trial made them"
    return f"{len(lengths)} stretches of {limit} or more without an answer: {reason}"
