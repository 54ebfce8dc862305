"""Some users wait for an answer that does not come, while others are served.

**Means.** Requests are taken in and never answered: a connection or a lock was not given back, two requests
wait for each other, or a connection was accepted that no thread serves. Percentiles of the answered look
fine, because the stuck requests are not among them.

**Needs.** At the end of every trial of a level at least one request of the load that has waited for 1 s or
more, and three times as long as the longest answer of that trial; they are 1 % of the users or more. Or,
where a time-out within the service ends the wait: twice or more, no request was answered for 1 s, and ten
times as long as a usual success takes, while some waited; then most of the open requests, two or more, failed
at one moment, after waiting for as long themselves. Failures with no success between them count once. Once is
enough where stacks show threads that wait for each other: at the highest load nothing succeeds, all threads
at work wait at one line for others of their process, and of calls, which must have been seen, less than half
of one is under way; the service uses a tenth of a core at most. Threads that wait for a lock in the service's
own code before a load and throughout it are named, if they are as many as the stuck. So are connections that
are not accepted, if they are three quarters of the stuck or more, and a tenth of the users or more are stuck,
as many in each trial.

**Ruled out by.** A generator that came late. As many drops of new connections as stuck users: they may not be
connected at all. Half as many calls or more under way to one program, which take longer there than the
requests that are answered take in all, if it is asked so often meanwhile that it would have answered each:
they wait in a line there. Where fewer than 20 requests were sent later and answered, the service may only
have paused at the end. That these requests take far longer than others by nature cannot be excluded from
outside, so the finding is never more than probable.

**Thresholds.** Three times: a request that waits in a line behind others is answered within the time of the
longest. 1 s: below, a slow path of few requests looks the same. 20: with so many answered since, the service
did not stand still. Ten times: a pause ends in answers, not in failures.

**Do.** Look where these requests wait: a dump of the threads shows it. Give connections and locks back on
every path, errors included, and put a time-out on every wait.

**Confirm.** The same load for twice as long: as many users or more are stuck, and none comes back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import waits
from loadlens.model.facts import Crowd, Curve, EndedLevel, Facts, Jam, Step, StuckWatch
from loadlens.model.finding import Counter, Estimate, Grade, Setting
from loadlens.present import load_text, numbers, words

ID = "requests.stuck"
TITLE = "requests that are never answered"
EXPLAINS: tuple[str, ...] = (
    *("fairness.starvation", "accept.drops", "timeouts.cliff", "db.lock-timeouts"),
    *("retrograde.throughput", "downstream.serialised"),
)

LEAST_SHARE = 0.01  # of the users
JAMS = 2  # one may be chance, such as a restart of what it calls
MOST_PLACES = 2  # of those where threads are locked
MANY_STUCK = 0.1  # of the users: fewer may be stuck next to a queue of others who get their turn
UNACCEPTED = 0.75  # of the stuck, whose connections are not accepted
IN_CALLS = 0.5  # of the stuck, that are in calls to one program
SERVED = 20  # answers since: the service did not stand still
AT_REST = 0.1  # cores


@dataclass(frozen=True, slots=True)
class StuckUsers:
    """The users of one level who wait for an answer that does not come."""

    curve: Curve
    step: Step
    watch: StuckWatch

    @property
    def mean(self) -> float:
        """Stuck requests at the end of a trial, on average."""
        return sum(self.watch.counts) / len(self.watch.counts)


@dataclass(frozen=True, slots=True)
class Jammed:
    """Standstills that ended in failures, over the levels of a curve."""

    curve: Curve
    jams: tuple[Jam, ...]
    together: Crowd | None  # threads that wait for each other meanwhile; none: not seen


def observe(facts: Facts) -> Sequence[StuckUsers | Jammed] | Lacking | Nothing:
    """Return the closed levels with stuck requests, the most first, and curves with standstills."""
    jammed = [
        Jammed(curve, jams, _together(curve))
        for curve in facts.curves
        if (jams := (*_jams(curve.steps), *_jams(curve.ended)))
    ]
    watched = [
        StuckUsers(curve, step, step.stuck)
        for curve in facts.curves
        if curve.is_closed
        for step in curve.steps
        if step.stuck is not None
    ]
    if not watched and not jammed:
        return Lacking("needs each request of a load of users: what made the load does not report them")
    levels = sorted((level for level in watched if any(level.watch.counts)), key=lambda level: -level.mean)
    longest = max((level.watch.longest_s for level in watched), default=0.0)
    reason = f"none was open for long at the end; the longest answer took {numbers.with_unit(longest, 's')}"
    return [*jammed, *levels] or Nothing(reason)


def _jams(levels: Sequence[Step] | Sequence[EndedLevel]) -> Iterator[Jam]:
    return (jam for level in levels for jam in level.jams)


def _together(curve: Curve) -> Crowd | None:
    """Return the threads that wait for each other at the highest load, at which nothing succeeds.

    Calls must have been seen: a thread may wait for another one that waits for an answer.
    """
    top = curve.steps[-1]
    crowd, calls = top.crowd, [each.under_way.mean for each in top.calls]
    if crowd is None or not crowd.is_for_threads or not waits.all_wait(crowd):
        return None
    if not isinstance(top.throughput, Estimate) or top.throughput.point != 0 or not top.failed_count:
        return None
    read = [mean.point for mean in calls if isinstance(mean, Estimate)]
    is_known = bool(calls) and len(read) == len(calls)
    return crowd if is_known and sum(read) < waits.HARDLY and top.server_cores <= AT_REST else None


def claim(facts: Facts, stuck: StuckUsers | Jammed) -> Claim:
    """Hold the stuck requests against a generator that is late and a service that paused."""
    if isinstance(stuck, Jammed):
        return _of_jams(stuck)
    watch, step = stuck.watch, stuck.step
    at, age = load_text.load_of(stuck.curve, step), numbers.with_unit(watch.age_s, "s")
    share = stuck.mean / step.load if step.load else 0.0
    trials = sum(count > 0 for count in watch.counts)
    signals = [
        grading.stated(
            "stuck.trials",
            True if trials == len(watch.counts) else None,
            text=f"in {trials} of {len(watch.counts)} trials requests were open for {age} or more at the "
            f"end, the longest answer took {numbers.with_unit(watch.longest_s, 's')}",
            chip=f"open for {age}",
        ),
        grading.stated(
            "stuck.share",
            share >= LEAST_SHARE,
            text=f"{stuck.mean:.3g} of {step.load:g} users ({numbers.percent(share)}, limit "
            f"{numbers.percent(LEAST_SHARE)})",
            chip=f"{stuck.mean:.3g} users stuck",
            value=stuck.mean,
        ),
    ]
    locked = stuck.curve.locked
    if locked is not None and locked.threads < stuck.mean:
        locked = None  # others of the stuck wait for something else
    if locked is not None:
        where = " and ".join(locked.places[:MOST_PLACES])
        waits = f"{locked.threads} threads wait for a lock while nothing is asked, {where}"
        chip = f"{locked.threads} threads locked"
        signals.append(grading.stated("stuck.locked", True, text=waits, chip=chip, value=locked.threads))
    unaccepted = _unaccepted(stuck) if locked is None else None
    if unaccepted is not None:
        chip = f"{unaccepted:g} not accepted"
        waits = f"{unaccepted:g} connections wait to be accepted, of {stuck.mean:.3g} users who are stuck"
        signals.append(grading.stated("stuck.unaccepted", True, text=waits, chip=chip, value=unaccepted))
    by_nature = "the longest of them was not waited for"
    is_known = locked is not None or unaccepted is not None
    rivals = [
        _pause_rival(watch),
        grading.rival("requests that take longer by nature", by_nature, True if is_known else None),
        *_dropped_rivals(stuck.mean, step),
        *_calls_rivals(stuck.mean, watch, step),
        grading.generator_rival(step),
    ]

    served = round(step.load - stuck.mean)

    def text(grade: Grade) -> Words:
        may = "may " if grade is Grade.SUSPECTED else ""
        users = f"{stuck.mean:.3g} of {step.load:g} users"
        statement = f"{users} {may}wait for an answer that does not come ({age} and more)"
        advice = (
            "Look where they wait (a dump of the threads): connections or locks that are not given "
            "back, a deadlock, a connection that no thread serves. Put a time-out on every wait."
        )
        if locked is not None:
            lines = " and ".join(place.rpartition(" ")[2] for place in locked.places[:MOST_PLACES])
            statement = f"{users} {may}get no answer: threads are locked at {lines}"
            advice = (
                "Take these locks in one order everywhere, do not wait for another while holding one, and "
                "give each back also after a failure."
            )
        if unaccepted is not None:
            statement = (
                f"{users} {may}get no answer: {served} connections are served, the rest is not accepted"
            )
            advice = (
                "Raise the number of connections, threads or processes that serve, or close connections "
                "after a few requests or an idle second: the others then get their turn."
            )
        return Words(
            statement=statement,
            explanation=f"At {at} {watch.answered_since:,} requests were sent later than the oldest of them "
            f"and answered; the longest answer took {numbers.with_unit(watch.longest_s, 's')}.",
            advice=advice,
            confirm="the same load for twice as long: as many are stuck or more, and none comes back",
            impact=share,
            unknown=() if is_known else ("whether they would be answered after all",),
            setting=None if unaccepted is None else Setting.exactly("places", served),
        )

    return on_curve(stuck.curve, signals, rivals, text, cap=Grade.PROBABLE)


def _unaccepted(stuck: StuckUsers) -> float | None:
    """Return the connections that wait to be accepted; none: the stuck users are not these.

    Those of earlier levels, and of probes, may wait there as well; but a queue that moves on is another one.
    """
    kernel, counts = stuck.step.kernel, stuck.watch.counts
    if kernel is None or kernel.unaccepted is None or len(set(counts)) > 1 or stuck.step.load <= counts[0]:
        return None
    is_most = kernel.unaccepted >= max(1.0, UNACCEPTED * stuck.mean)
    return kernel.unaccepted if is_most and stuck.mean >= MANY_STUCK * stuck.step.load else None


def _of_jams(seen: Jammed) -> Claim:
    """Hold standstills that ended in failures against chance and what the service calls."""
    jams = sorted(seen.jams, key=lambda jam: -jam.failed)
    longest, most = numbers.with_unit(max(jam.seconds for jam in jams), "s"), jams[0].failed
    times = words.plural(len(jams), "time")
    together = seen.together
    signals = [
        grading.stated(
            "stuck.jams",
            True if len(jams) >= JAMS or together is not None else None,
            text=f"{times} no request was answered for up to {longest}, and then most that were open failed "
            f"at one moment, {most} of them at most",
            chip=f"{times}, up to {longest}",
            value=float(len(jams)),
        ),
    ]
    called = "what it called was not looked at"
    if together is not None:
        called = "hardly a call is under way, and nothing is computed"
        who = f"{waits.who_waits(together)} at work wait for others of them, at {together.line}"
        chip = f"all wait at {together.line}"
        signals.append(grading.stated("stuck.together", True, text=who, chip=chip, value=together.waiting))
    rivals = [
        grading.rival("something it calls that stood still", called, True if together else None),
        grading.generator_rival(seen.curve.steps[-1]),
    ]

    def text(_: Grade) -> Words:
        if together is not None:
            many = f"{numbers.about(together.waiting)} {together.plural}"
            return Words(
                statement=f"{many} wait for each other at {together.line}: a deadlock",
                explanation="Meanwhile no request succeeds, hardly a call is under way, and the service "
                "computes nothing. A time-out ends these waits.",
                advice="Do not wait in a thread of a pool for work that the same pool has to do: give that "
                "work a pool of its own. Take locks in one order everywhere.",
                confirm="a pool with twice the threads: it stands still at twice the users",
                impact=1.0,
            )
        return Words(
            statement=f"{times} all requests stand still for up to {longest} and then fail together, as in "
            "a deadlock",
            explanation="In between no request was answered, and afterwards the service went on. A pause "
            "ends in answers; a time-out ends these waits.",
            advice="Look where they wait (a dump of the threads or processes at that moment). Take locks in "
            "one order everywhere, and do not wait for another while holding one.",
            confirm="the same load for twice as long: twice as many standstills",
            impact=1.0,
            unknown=("whether they wait for each other or for what the service calls",),
        )

    return on_curve(seen.curve, signals, rivals, text, cap=Grade.PROBABLE)


def _pause_rival(watch: StuckWatch) -> Counter:
    text = f"{watch.answered_since:,} requests were sent later and answered (limit {SERVED})"
    return grading.rival("a pause at the end", text, True if watch.answered_since >= SERVED else None)


def _dropped_rivals(stuck: float, step: Step) -> Iterator[Counter]:
    """Weigh connections that the kernel drops: who is dropped tries again after 1, 3, 7 s and more."""
    drops = None if step.kernel is None else step.kernel.listen_drops
    if drops is not None:
        drops /= max(1, step.trials)
        text = f"{drops:,.3g} drops of new connections in a trial"
        yield grading.rival("connections that were dropped", text, drops < stuck)


def _calls_rivals(stuck: float, watch: StuckWatch, step: Step) -> Iterator[Counter]:
    """Weigh calls that others work off one after the other: who is at the end of that line waits for long."""
    answered = step.response.mean
    if not isinstance(step.throughput, Estimate) or not isinstance(answered, Estimate):
        return
    for calls in step.calls:
        mean, most = calls.under_way.mean, calls.under_way.highest
        rate = calls.per_request * step.throughput.point
        is_longer = isinstance(mean, Estimate) and mean.point > rate * answered.point
        if is_longer and most >= IN_CALLS * stuck:
            asked = f"{numbers.with_unit(rate, '1/s')} are made"
            text = f"up to {most:.3g} calls to {calls.to} are under way, and {asked}"
            is_line = rate * watch.age_s >= stuck
            yield grading.rival("a line before what it calls", text, False if is_line else None)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
