"""The service stands still now and then, at no period.

**Means.** At irregular moments nothing is answered for a while, not even cheap requests: a garbage collection
that allocations trigger, a flush, a lock that every request takes, another tenant of the machine.

**Needs.** Four stretches or more, each of 85 ms or more, in which no stream got an answer although several
requests waited for one, longer than chance allows and than five times the shortest response. Several requests
took longer than a quarter of their kind by half of the stretch at least: users who are answered in step leave
such stretches, too, and none of them waits any longer for it. They lie where the service had time to spare:
at the light load with dense probes, or at levels whose median is at most 1.5 times that of the lowest and
that leave the service 30 % of its cores. Their distances keep no period. Two or three of them are a
suspicion, a single one is nothing.

**Ruled out by.** A cause with a finding of its own that makes such stretches: an event loop that computes, a
full pool of threads or of connections, a CPU quota, paging, connections that are accepted too slowly. Behind
these, two or three long jobs in a row stop everything too. Other machines of the host that took as much time
in these very trials as the service stood still. One stretch per trial at the same moment of it: the trial
causes them. If they begin just as we read the service's own metrics, the finding is suspected.

**Thresholds.** 85 ms: what 200 probes per second can distinguish from chance within two minutes; a shared
machine stops everything for 50 ms now and then. Levels where requests wait for each other are left out:
answers come in bursts there.

**Do.** Compare the service's own log with these moments: collections, flushes, checkpoints. Without them a
full service does 1 / (1 - share) times as much. The share is length times number per second, with the
interval of a number of random events (Poisson).

**Confirm.** The collector's log, or a heap of another size: the stretches move or change their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Answer, Claim, Lacking, Nothing, Words, assessing_after
from loadlens.diagnose.observe import service_pauses
from loadlens.estimate import pauses, within_trial
from loadlens.estimate.interval import Insufficient
from loadlens.model.facts import Facts
from loadlens.model.finding import Finding, Grade
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
    "downstream.full",
    "calls.at-once",
    "cgroup.throttled",
    "memory.pressure",
    "accept.drops",
    "gen.bottleneck",
    "pause.periodic",
)


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches without an answer of one service, at light load; shorter ones are the machine's."""

    curves: tuple[str, ...]
    trials: Sequence[service_pauses.TrialPauses]  # at light load
    cause: str  # the rule of a finding that makes such stretches by itself; empty: none

    @property
    def limit_s(self) -> float:
        """Return the shortest stretch that is looked for; infinite if none differs from chance."""
        return max(LEAST_S, min((trial.watch.shortest_s for trial in self.trials), default=math.inf))

    @property
    def lengths_s(self) -> list[float]:
        """Return how long they are."""
        stops = service_pauses.stops_of(self.trials, least_s=LEAST_S)
        return [stop.end_s - stop.begin_s for stop in stops]

    @property
    def looked_s(self) -> float:
        """Return the seconds in which the longest stretch, or one of the limit, would have been seen."""
        least = max(self.lengths_s, default=self.limit_s)
        return sum(trial.watch.seconds for trial in self.trials if trial.watch.shortest_s <= least)


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[Stretches] | Lacking:
    """Return the stretches of every service that was watched at light load."""
    services = service_pauses.services_of(facts)
    if not services:
        return Lacking(service_pauses.not_looked(facts))
    causes = [
        other
        for other in others
        if isinstance(other, Finding) and other.grade >= Grade.PROBABLE and other.rule in MAKE_GAPS
    ]
    all_stretches = []
    for service in services:
        trials = [trial for trial in service.seen if trial.is_calm]
        shared = (c.rule for c in causes if not c.curves or set(c.curves) & set(service.curves))
        all_stretches.append(Stretches(service.curves, trials, next(shared, "")))
    return [stretches for stretches in all_stretches if math.isfinite(stretches.limit_s)] or Lacking(
        "needs a load that leaves the service time, with probes or eight users"
    )


def claim(facts: Facts, stretches: Stretches) -> Claim | Nothing:
    """Check that several stretches are long enough, keep no period, and have no cause of their own."""
    trials, limit_s, lengths = stretches.trials, stretches.limit_s, stretches.lengths_s
    length = service_pauses.length_of(trials, least_s=LEAST_S)
    if len(lengths) < SEVERAL or length is None or stretches.cause:
        return Nothing("too few stretches, or another finding explains them")
    if pauses.beat_of_lives(service_pauses.ends_by_life(trials, least_s=LEAST_S)) is not None:
        return Nothing("the stretches keep a period")
    stopped = [trial for trial in trials if service_pauses.stops_of([trial], least_s=LEAST_S)]
    step, looked_s = stopped[0].step, stretches.looked_s
    # They are random events, so that their number is Poisson's.
    per_s = within_trial.rate(np.array([float(len(lengths))]), np.array([looked_s]))
    if isinstance(per_s, Insufficient):
        return Nothing("no trial would have shown stretches as short as these")
    share = service_pauses.stopped_share(length, per_s)
    each, limit = numbers.with_unit(length.point, "s"), numbers.with_unit(limit_s, "s")
    is_few = len(lengths) < pauses.FEWEST_EVENTS
    signals = [
        grading.at_least(
            "pause.length",
            length,
            limit_s,
            text=f"{len(lengths)} stretches without any answer at a light load, {numbers.shown(length)} each "
            f"(limit {limit})",
            chip=f"{len(lengths)} pauses of {each}",
        ),
        grading.stated(
            "pause.count",
            None if is_few else True,
            text=f"{len(lengths)} of them (four are needed to say that they keep no period)",
            chip=f"{len(lengths)} in {looked_s:.0f} s",
        ),
        *service_pauses.own_reading(trials, least_s=LEAST_S),
        service_pauses.share_signal(share),
    ]
    no_cause = "no loop, pool or quota was found that stops everything"
    rivals = [
        grading.generator_rival(step),
        grading.interference_rival(step, facts.cores),
        service_pauses.stolen_rival(trials, facts.cores, least_s=LEAST_S),
        service_pauses.trials_rival(service_pauses.at_one_moment(trials, least_s=LEAST_S)),
        grading.rival("a cause that was found", no_cause, True),
        grading.rival("chance", f"a gap is chance up to {limit}", True),
    ]

    def words(grade: Grade) -> Words:
        no_period = "" if is_few else " and at no period"
        return Words(
            statement=f"Nothing is answered for {each}, {len(lengths)} times in {looked_s:.0f} s",
            explanation=f"{service_pauses.who_stops(step)}, {numbers.percent(share.point)} of the time"
            f"{no_period}; it had time to spare there.",
            advice=f"Look for what lasts about {each} in the service's own log (collections, flushes, "
            "checkpoints) and take it off the path of requests.",
            confirm="collector's log at these moments, or another heap: their number changes",
            impact=share.point,
            unknown=(service_pauses.not_looked_for(limit_s),),
        )

    where, curves = " and ".join(stretches.curves) or step.label, stretches.curves
    return Claim(where, signals, rivals, words, curves, Grade.STRONG if len(stopped) > 2 else Grade.PROBABLE)


def _silence(facts: Facts, observed: Sequence[Stretches]) -> str:
    stretches = max(observed, key=lambda stretches: len(stretches.lengths_s))
    lengths, limit = stretches.lengths_s, numbers.with_unit(stretches.limit_s, "s")
    if not lengths:
        return (
            f"no stretch of {limit} or more without an answer in {stretches.looked_s:.0f} s at a light load; "
            "shorter ones not assessed"
        )
    if len(lengths) < SEVERAL:
        return f"one stretch of {numbers.with_unit(lengths[0], 's')} without an answer: anything makes one"
    text = f"{len(lengths)} stretches of {limit} or more without an answer"
    if stretches.cause:
        return f"{text}, which {stretches.cause} explains"
    return (
        f"{text}: they keep a period, or the generator, other machines or the begin of each trial made them"
    )


assess_after = assessing_after(ID, TITLE, observe, claim, silence=_silence)
