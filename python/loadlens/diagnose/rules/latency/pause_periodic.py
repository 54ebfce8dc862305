"""The service stands still at equal distances.

**Means.** At equal distances nothing is answered for a while, not even cheap requests: a garbage collection
that stops the world, a timer's job, a flush of a buffer. Requests that arrive meanwhile wait for its end, so
the slowest requests are those that met a pause.

**Needs.** Four stretches or more in which no stream got an answer although several requests waited for one
(they took longer than a quarter of their kind, by half of the stretch at least), each longer than chance
allows (ln(n / 0.001) / rate of the probes and of half of a crowd's answers, or of all answers where probes
that are not slow otherwise waited together for its end), than five times the shortest response and than 50
ms. Their ends keep a period, within trials and from trial to trial of the same processes: distances vary by
less than 10 % (30 % from eight on), missed beats divided out. At least half of the beats that fell into the
observed time were seen.

**Ruled out by.** The generator's own stalls, which are left out. Stretches that come once per trial at the
same moment of it: the trial causes them. A period of 0.5, 1, 5, 10, 15, 30 or 60 s may be that of a scrape;
if they begin just as we read the service's own metrics, the finding is suspected. A period below half a
second may be that of a CPU quota, unless none stopped the service there.

**Thresholds.** Chance: so long a gap comes once in a thousand trials of an even service. Five responses:
other requests wait behind one that computes alone, too. 50 ms: a shared machine stops everything for as long
now and then. 10 % and 30 %: three random distances are as alike about one time in a hundred, so that with
fewer than six pauses the finding is at most probable. Pauses shorter than the limit that the finding prints
were not looked for.

**Do.** Find what runs at that period: the collector's log, timers, flushes. Give the heap more room or
collect concurrently; move the work elsewhere. A full service then does 1 / (1 - share) times as much, share
being length over period.

**Confirm.** Half of the heap, or half of the timer's period: the period changes with it. The collector's log
has an entry at each of these moments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing
from loadlens.diagnose.observe import service_pauses
from loadlens.estimate import pauses
from loadlens.estimate.interval import inverse
from loadlens.measure import figures
from loadlens.measure.thresholds import THROTTLED
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade
from loadlens.present import numbers

ID = "pause.periodic"
TITLE = "the service stands still at equal distances"
EXPLAINS: tuple[str, ...] = ("slow.periodic",)

SEEN_OF_BEATS = 0.5
QUOTA_BELOW_S = 0.5  # quotas have periods of 100 ms, rarely more
SURE = 6  # pauses: five distances at random are as alike less than once in a thousand times


def observe(facts: Facts) -> Sequence[service_pauses.Service] | Lacking:
    """Return every service whose requests can distinguish a pause from chance."""
    services = service_pauses.services_of(facts)
    if not services:
        return Lacking(service_pauses.not_looked(facts))
    return [service for service in services if math.isfinite(service.shortest_s)] or Lacking(
        "needs probes, or at least eight users at once, to distinguish a pause from chance"
    )


def claim(facts: Facts, service: service_pauses.Service) -> Claim | Nothing:
    """Check that pauses keep a period, and compare it with others that would make such a one."""
    lives, length = service_pauses.ends_by_life(service.seen), service_pauses.length_of(service.seen)
    beat = pauses.beat_of_lives(lives)
    if beat is None or length is None:
        return Nothing("the stretches without an answer keep no period")
    stopped = [trial for trial in service.seen if trial.watch.stops]
    between_s = sum(trial.watch.between_s for trial in stopped) / len(stopped)
    period = service_pauses.period_of(lives, beat, between_s=between_s)
    share = service_pauses.stopped_share(length, inverse(figures.known(period)))
    step = next((trial for trial in stopped if trial.is_calm), stopped[0]).step
    count = len(service_pauses.stops_of(service.seen))
    looked = [t.watch for t in service.seen if t.watch.shortest_s < length.point or t.watch.stops]
    beats = sum(watch.seconds for watch in looked) / period.point
    each, every = numbers.with_unit(length.point, "s"), numbers.with_unit(period.point, "s")
    part, limit = numbers.percent(share.point), numbers.with_unit(service.shortest_s, "s")
    signals = [
        grading.at_least(
            "pause.length",
            length,
            service.shortest_s,
            text=f"{count} stretches without any answer, {numbers.shown(length)} each (limit {limit})",
            chip=f"{count} pauses of {each}",
        ),
        grading.at_least(
            "pause.period",
            period,
            0.0,
            text=f"one every {numbers.shown(period)}; distances vary by {numbers.percent(beat.variation)}",
            chip=f"one every {every}",
        ),
        grading.stated(
            "pause.beats",
            bool(beats) and count / beats >= SEEN_OF_BEATS,
            text=f"{count} of about {beats:.0f} beats that fell into what was watched were seen "
            f"(limit {numbers.percent(SEEN_OF_BEATS)})",
            chip=f"{count} of about {beats:.0f} beats",
        ),
        *service_pauses.own_reading(service.seen),
        service_pauses.share_signal(share),
    ]
    off_s = 0.0 if period.high is None else period.high - period.point  # how well it is known
    rivals = [
        grading.generator_rival(step),
        service_pauses.trials_rival(service_pauses.follows_the_trials(service.seen, period.point)),
        service_pauses.scrapes_rival(period.point, off_s),
        _quota_rival(step, period),
        grading.interference_rival(step, facts.cores),
        # Time that other machines took keeps no period as a rule: it alone never takes the finding away.
        grading.left_open(service_pauses.stolen_rival(service.seen, facts.cores)),
    ]

    def words(grade: Grade) -> Words:
        return Words(
            statement=f"Nothing is answered for {each} every {every}: {part} of the time",
            explanation=f"{service_pauses.who_stops(step)}; {part} of the requests meet such a pause and "
            f"wait up to {each} longer.",
            advice=f"Look for what runs every {every}: collector, timer or flush. Give the heap more room, "
            "collect concurrently, or move that work out of the process.",
            confirm=f"another heap, or twice the timer: the period of {every} changes",
            impact=share.point,
            unknown=(service_pauses.not_looked_for(service.shortest_s),),
        )

    where = " and ".join(service.curves) or step.label
    is_sure = len(stopped) > 1 and count >= SURE
    return Claim(where, signals, rivals, words, service.curves, Grade.STRONG if is_sure else Grade.PROBABLE)


def _quota_rival(step: Step, period: Estimate) -> Counter:
    """Return the rival of a quota that stopped the service at that level, unless its periods are shorter."""
    if period.point > QUOTA_BELOW_S:
        every = numbers.with_unit(period.point, "s")
        return grading.rival("CPU quota", f"its periods are of 100 ms mostly, this one of {every}", True)
    throttled = [quota.throttled.point for quota in step.quotas if isinstance(quota.throttled, Estimate)]
    if not throttled:
        return grading.rival("CPU quota", "whether one stopped the service was not read", None)
    most = max(throttled)
    return grading.rival("CPU quota", f"stopped in {numbers.percent(most)} of its periods", most < THROTTLED)


def _silence(facts: Facts, services: Sequence[service_pauses.Service]) -> str:
    service = max(services, key=lambda service: len(service_pauses.stops_of(service.seen)))
    count = len(service_pauses.stops_of(service.seen))
    if not count:
        return service_pauses.none_seen(service)
    stretches = f"{count} stretches of {numbers.with_unit(service.shortest_s, 's')} or more without an answer"
    if count < pauses.FEWEST_EVENTS:
        return f"{stretches} in {service.looked_s:.0f} s: a period needs four"
    return f"{stretches} keep no period"


assess = assessing(ID, TITLE, observe, claim, silence=_silence)
