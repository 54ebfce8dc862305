"""The service stands still at equal distances.

**Means.** At equal distances nothing at all is answered for a while, cheap requests neither: a garbage
collection that stops the world, a job of a timer, a flush of what was gathered. Whoever asks meanwhile waits
for its end, so the slowest requests are those that met one.

**Needs.** Four stretches or more in which no stream got an answer although several requests waited for one,
each longer than chance allows (ln(n / 0.001) / rate of the probes and of half of a crowd's answers, or of all
answers where probes that are not slow otherwise waited together for its end), than five times the shortest
response and than 50 ms. Their ends keep a period, within trials and from trial to
trial of the same processes: distances vary by less than 10 % (30 % from eight on), missed beats divided out.
At least half of the beats that fell into what was watched were seen.

**Ruled out by.** The generator's own stalls, which are left out. Stretches that come once in each trial at
the same moment of it: the trial makes them. A period of 0.5, 1, 5, 10, 15, 30 or 60 s may be that of a
scrape; where they begin just as we read the service's own metrics they are a suspicion. One below half a
second may be that of a CPU quota, unless none stopped the service there.

**Thresholds.** Chance: a gap as long comes once in a thousand trials of an even service. Five responses:
behind a request that computes alone others wait too. 50 ms: a machine that others share stops everything for
as long now and then. 10 % and 30 %: three distances at random are as alike about one time in a hundred, so
that fewer than six pauses are probable at best. Pauses shorter than the limit that the finding prints were
not looked for.

**Do.** Find what runs at that period: the collector's log, timers, flushes. Give the heap more room or
collect concurrently; move the work elsewhere. A service that is full then does 1 / (1 - share) times as much,
share being length over period.

**Confirm.** Half of the heap, or half of the timer's period: the period changes with it. The collector's log
has an entry at each of these moments.
"""

from __future__ import annotations

import math

from loadlens.diagnose import grading
from loadlens.diagnose.observe import stalls
from loadlens.estimate import pauses
from loadlens.estimate.interval import inverse
from loadlens.measure import figures
from loadlens.measure.thresholds import THROTTLED
from loadlens.model.facts import Facts, Step
from loadlens.model.finding import Absent, Counter, Estimate, Finding, Grade, NotAssessed
from loadlens.present import numbers

ID = "pause.periodic"
TITLE = "the service stands still at equal distances"
EXPLAINS: tuple[str, ...] = ()

SEEN_OF_BEATS = 0.5
SCRAPES_S = (0.5, 1.0, 5.0, 10.0, 15.0, 30.0, 60.0)
LIKE_A_SCRAPE = 0.005
QUOTA_BELOW_S = 0.5  # quotas have periods of 100 ms, rarely more
SURE = 6  # pauses: five distances at random are as alike less than once in a thousand times


def assess(facts: Facts) -> Finding | Absent | NotAssessed:
    """Look at every service that was watched request by request."""
    services = stalls.services_of(facts)
    if not services:
        return NotAssessed(ID, TITLE, stalls.not_looked(facts))
    known = [service for service in services if math.isfinite(service.shortest_s)]
    if not known:
        return NotAssessed(
            ID, TITLE, "needs probes, or at least eight users at once, to tell a pause from chance"
        )
    found = grading.first(_finding(facts, service) for service in known)
    most = max(known, key=lambda service: len(stalls.stops_of(service.seen)))
    return found or Absent(ID, TITLE, _silence(most))


def _finding(facts: Facts, service: stalls.Service) -> Finding | None:
    lives = stalls.ends_by_life(service.seen)
    beat = pauses.beat_of_lives(lives)
    length = stalls.length_of(service.seen)
    if beat is None or length is None:
        return None
    stopped = [one.watch for one in service.seen if one.watch.stops]
    trials = len(stopped)
    between_s = sum(watch.between_s for watch in stopped) / trials
    period = stalls.period_of(lives, beat, between_s=between_s)
    stands = stalls.stopped_share(length, inverse(figures.known(period)))
    signals = [*_signals(service, beat, period, length), stalls.share_signal(stands)]
    step = _shown_step(service)
    rivals = _rivals(facts, service, period, step)
    is_sure = trials > 1 and len(stalls.stops_of(service.seen)) >= SURE
    grade = grading.grade_of(signals, rivals, cap=Grade.STRONG if is_sure else Grade.PROBABLE)
    if grade is None:
        return None
    share = stands.point
    every = numbers.with_unit(period.point, "s")
    text = f"{numbers.with_unit(length.point, 's')} every {every}"
    return Finding(
        rule=ID,
        grade=grade,
        impact=share,
        scope=" and ".join(service.curves) or step.label,
        statement=grading.statement(f"Nothing is answered for {text}: {numbers.percent(share)} of the time"),
        explanation=f"{stalls.who_stops(step)}; {numbers.percent(share)} of the "
        f"requests meet such a pause and wait up to {numbers.with_unit(length.point, 's')} longer.",
        evidence=tuple(signal.evidence for signal in signals),
        counter=tuple(rivals),
        advice=f"Look for what runs every {every}: collector, timer or flush. Give the heap more room, "
        "collect concurrently, or move that work out of the process.",
        confirm=f"another heap, or twice the timer: the period of {every} changes",
        unknown=(stalls.not_looked_for(service.shortest_s),),
        curves=service.curves,
    )


def _signals(
    service: stalls.Service, beat: pauses.Beat, period: Estimate, length: Estimate
) -> list[grading.Signal]:
    count = len(stalls.stops_of(service.seen))
    limit = numbers.with_unit(service.shortest_s, "s")
    looked = [one.watch for one in service.seen if one.watch.shortest_s < length.point or one.watch.stops]
    due = sum(watch.seconds for watch in looked) / period.point
    share = min(1.0, count / due) if due else 0.0
    every = numbers.with_unit(period.point, "s")
    signals = [
        grading.at_least(
            "pause.length",
            length,
            service.shortest_s,
            text=f"{count} stretches without any answer, {numbers.shown(length)} each (limit {limit})",
            chip=f"{count} pauses of {numbers.with_unit(length.point, 's')}",
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
            share >= SEEN_OF_BEATS,
            text=f"{count} of about {due:.0f} beats that fell into what was watched were seen "
            f"(limit {numbers.percent(SEEN_OF_BEATS)})",
            chip=f"{count} of about {due:.0f} beats",
        ),
    ]
    return [*signals, *stalls.own_reading(service.seen)]


def _shown_step(service: stalls.Service) -> Step:
    """The calmest level at which it stood still."""
    stopped = [one for one in service.seen if one.watch.stops]
    return next((one for one in stopped if one.is_calm), stopped[0]).step


def _rivals(facts: Facts, service: stalls.Service, period: Estimate, step: Step) -> list[Counter]:
    every = numbers.with_unit(period.point, "s")
    off_s = 0.0 if period.high is None else period.high - period.point  # how well it is known
    is_scrape = any(abs(period.point - usual) <= max(LIKE_A_SCRAPE * usual, off_s) for usual in SCRAPES_S)
    return [
        grading.generator_rival(step),
        stalls.trials_rival(stalls.follows_the_trials(service.seen, period.point)),
        grading.rival(
            "scrapes of metrics",
            f"every {every} is {'a' if is_scrape else 'no'} usual period of scrapes",
            None if is_scrape else True,
        ),
        _quota_rival(step, period.point),
        grading.interference_rival(step, facts.cores),
        _stolen(service, facts.cores),
    ]


def _quota_rival(step: Step, period: float) -> Counter:
    """A quota that stopped the service at that level, or whose periods are of another length."""
    every = numbers.with_unit(period, "s")
    if period > QUOTA_BELOW_S:
        return grading.rival("CPU quota", f"its periods are of 100 ms mostly, this one of {every}", True)
    known = [quota.throttled for quota in step.quotas if isinstance(quota.throttled, Estimate)]
    if not known:
        return grading.rival("CPU quota", "whether one stopped the service was not read", None)
    most = max(share.point for share in known)
    return grading.rival("CPU quota", f"stopped in {numbers.percent(most)} of its periods", most < THROTTLED)


def _stolen(service: stalls.Service, cores: int) -> Counter:
    """Time that other machines took keeps no period as a rule: it alone never takes the finding away."""
    return grading.left_open(stalls.stolen_rival(service.seen, cores))


def _silence(service: stalls.Service) -> str:
    count = len(stalls.stops_of(service.seen))
    if not count:
        return stalls.none_seen(service)
    limit = numbers.with_unit(service.shortest_s, "s")
    if count < pauses.FEWEST_EVENTS:
        looked = f"in {service.looked_s:.0f} s"
        return f"{count} stretches of {limit} or more without an answer {looked}: a period needs four"
    return f"{count} stretches of {limit} or more without an answer keep no period"
