"""All threads are busy, and every request waits for one.

**Means.** A request holds a thread from its beginning to its end, even while it only waits. There are W
threads; when all are busy, a new request waits before the handler, however cheap it is. Throughput is
W / (time a request holds its thread). That time is the mean of all requests. Where a few long requests take a
quarter of it or more, the finding names their share, and what the threads carry without them.

**Needs.** A plateau. CPU to spare: computing and waiting for a core take at most 70 % of the cores, and no
thread is full. A cheap probe waits at least half of the time that the load waits, at both the lowest and the
highest plateau level where the two can be compared; unless samples of the threads show them, because the
probe may be answered by another thread. In addition, one of these signs of a full thread pool; with neither,
the finding is suspected:

- A gauge shows 90 % of the threads busy, or samples show 90 % of the threads of one name in the service's
  own code while there are more users than threads, or most users wait elsewhere in the process; and their
  number W is within 20 % of throughput x unloaded response time (or within its interval). Where threads
  were sampled with one user, too, W over throughput is instead at most 1.25 times the time for which a
  request holds threads there, be they several at a time, and from twice that time on something behind them
  is slow. A gauge that is not full and holds less than half of the requests at work is of other threads.
- The number of threads in the processes no longer grows with users and is at least the number of requests
  being worked on; and either there were fewer threads at the lowest load, or throughput x unloaded response
  time is a whole number within 10 %, at most 0.2 (or within its interval, if that is narrower than half a
  thread). A limiter that delays everything could admit any number.

**Ruled out by.** A lock or pool with requests waiting for it: these requests hold the threads. A busy event
loop or full cores. More requests being worked on than there are threads: something else then limits
admission. An event loop that is in requests nearly all the time. A machine, generator or transfer that is the
limit. Refusals.

**Thresholds.** Half: behind full threads probes waited 1.0 to 1.24 times as long as the load, behind shared
cores 0.09 times, and not at all for a lock behind the service. 90 %: a reading sometimes falls between two
requests. Growth: a quarter of a thread per additional user. Up to half of the threads, plus ten, may have
other work; if more are idle, they may wait for something behind the service.

**Do.** Set W = wanted throughput x time of a request, up to what the systems behind it can serve; put a
bounded queue with a short time-out in front.

**Confirm.** Double the threads: throughput doubles, or reaches the next limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.diagnose.observe import gauge_courses, limits, long_holds, waits
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.measure import figures
from loadlens.measure.thresholds import LOOP_HELD
from loadlens.model.facts import ConcurrencyLimit, Facts, Step
from loadlens.model.finding import Counter, Estimate, Grade, Setting
from loadlens.present import numbers, words

ID = "threads.pool-limit"
TITLE = "all threads are taken"
EXPLAINS: tuple[str, ...] = ("outside.handler-wait", "saturation.plateau", "calls.at-once")

AGREES = 0.20
WHOLE, WHOLE_MORE = 0.10, 0.2  # of a number of threads, at most so many: 10 % covers any beyond 5
LEAST_AT_WORK = 0.5  # of the requests at work at once: threads that hold fewer do not serve them
GROWING = 0.25  # threads for each further user
IDLE_SHARE, IDLE_MORE = 0.5, 10
AS_LONG, TWICE = 1.25, 2.0  # times the time that a request holds threads with one user


@dataclass(frozen=True, slots=True)
class ThreadPool:
    """Threads on a plateau, by their gauge or by what waits."""

    full: waits.Full
    compared: tuple[waits.Waits, ...] | str  # how probes and the load wait
    gauge: ConcurrencyLimit | None
    size: limits.Size | None

    @property
    def is_sampled(self) -> bool:
        """True if each thread was looked at: then a probe that another thread answers says nothing."""
        return self.gauge is not None and self.gauge.seen_in == "stacks"

    @property
    def count(self) -> float:
        """Threads by the gauge, else requests at work at once."""
        if self.gauge is not None and self.size is not None:
            return self.size.count
        parallel = self.full.parallelism
        return parallel.point if isinstance(parallel, Interval) else 0.0

    @property
    def held_before(self) -> Interval | Insufficient:
        """Seconds that a request holds threads, with one user; those of several add up."""
        first = self.full.curve.steps[0]
        rate, held = (
            figures.interval_of(first.throughput),
            None if self.gauge is None else self.gauge.held_alone,
        )
        if held is None or first.load != 1 or not isinstance(held.mean, Estimate):
            return Insufficient("threads were not sampled with one user")
        if isinstance(rate, Insufficient):
            return rate
        seconds = held.mean.point / rate.point
        return replace(rate, point=seconds, low=None, high=None, method="held over throughput, with one user")

    @property
    def hold(self) -> Interval | Insufficient:
        """Seconds that a request holds its thread, by Little's law."""
        rate = self.full.rate
        return replace(rate, point=self.count / rate.point) if isinstance(rate, Interval) else rate


def observe(facts: Facts) -> Sequence[ThreadPool] | Lacking | Nothing:
    """Return the threads of every plateau; of several pools the fullest."""
    plateaus = waits.plateaus(facts)
    if not isinstance(plateaus, tuple):
        return waits.without_plateau(plateaus)
    pools = [_fullest(full) for full in plateaus]
    visible = [pool for pool in pools if pool.gauge is not None or not isinstance(pool.compared, str)]
    return visible or Lacking(next(pool.compared for pool in pools if isinstance(pool.compared, str)))


def _fullest(full: waits.Full) -> ThreadPool:
    sizes = [
        (places, limits.size_of(full, places))
        for places in full.top.places
        if places.kind == "threads" and _may_serve(full, places)
    ]

    def fullness(pair: tuple[ConcurrencyLimit, limits.Size | None]) -> tuple[float, float]:
        """Of several that are full, the one that holds as many as are at work at once."""
        held, work = limits.point(pair[0].held) or 0.0, full.parallelism
        off = 0.0 if isinstance(work, Insufficient) else abs(held - work.point)
        return (min(held / pair[1].count, limits.TAKEN_UP) if pair[1] is not None else 0.0, -off)

    gauge, size = max(sizes, key=fullness, default=(None, None))
    return ThreadPool(full, waits.waits(full), gauge, size)


def _may_serve(full: waits.Full, places: ConcurrencyLimit) -> bool:
    """True for threads that are full; a gauge may also hold about what is at work at once (Little's law)."""
    is_full = limits.is_taken_up(full, places) is True
    if is_full or places.seen_in != "gauges":
        return is_full
    held, work = limits.point(places.held), full.parallelism
    return held is None or isinstance(work, Insufficient) or held >= LEAST_AT_WORK * work.point


def claim(facts: Facts, pool: ThreadPool) -> Claim:
    """Hold the threads against their number, the work at once, and a line behind them."""
    full, compared = pool.full, pool.compared
    signals = [waits.cpu_signal(facts, full.curve, full.top)]
    if not isinstance(compared, str) and not pool.is_sampled:
        signals += [_coupling(level) for level in dict.fromkeys((compared[0], compared[-1]))]
    if pool.gauge is not None:
        signals += [_taken(pool, pool.gauge), _agreement(pool)]
    else:
        signals += [_thread_count(pool), *waits.link_signals(full.top)]

    def text(grade: Grade) -> Words:
        explanation = (
            f"At {words.users(full.top.load)} {numbers.percent(full.waiting_share)} of the response time is "
            "waiting, and the CPU has room."
        )
        if not isinstance(compared, str) and compared[-1].coupling.point >= waits.ALL_WAIT:
            last = compared[-1]
            wait = numbers.with_unit(last.probe_s, "s")
            explanation += f" For {last.probe.label} the wait is {wait}, though it needs nothing else."
        long = long_holds.holders(full, pool.hold)
        if long is not None:
            explanation += f" {long.text(pool.count, 'thread', full)}."
        is_one = pool.gauge is not None and round(pool.count) == 1
        verb = "may be" if grade is Grade.SUSPECTED else "is" if is_one else "are"
        many, most = f"{pool.count:.3g}", f"{full.most}, every further request waits"
        statement = f"Threads {verb} all taken: {many} at once, {most}"
        if pool.gauge is not None:
            statement = f"All {many} threads {verb} taken: {most} for one"
        if is_one:
            statement = f"The only thread {verb} taken: {most} for it"
        if long is not None:
            statement = f"{statement.partition(', every')[0]}; {long.of_places}"
        advice = "More threads, as many as what lies behind serves"
        if isinstance(full.rate, Interval) and pool.count:
            each = numbers.with_unit(pool.count / full.rate.point, "s")
            twice = numbers.with_unit(2 * full.rate.point, "1/s")
            threads = f"{round(2 * pool.count)} threads carry {twice} at {each} per request"
            advice = f"{threads}, if what lies behind does"
        if long is not None:
            advice += f". {long.apart(pool.count)}"
        return Words(
            statement=statement,
            explanation=explanation,
            advice=f"{advice}; put a bounded queue with a short time-out before them.",
            confirm="twice the threads: twice the throughput, or the next limit",
            impact=full.waiting_share,
            unknown=() if pool.gauge is not None else ("how many threads are busy: no gauge was read",),
            setting=Setting.places(pool.count),
        )

    rivals = [*waits.rivals(facts, full), _line_behind(pool), *_loop(full)]
    return on_curve(full.curve, signals, rivals, text)


def _taken(pool: ThreadPool, gauge: ConcurrencyLimit) -> grading.Signal:
    """On a plateau the number at work stays the same whatever holds the rest up: alone it is no bound."""
    full, size = pool.full, pool.size
    if size is None or size.is_read or limits.has_waiters(gauge) is True:
        return limits.taken_signal(full, gauge, size, "pool.size")
    text = f"{limits.reading(gauge.held)}, the same as at the level before, and nothing says of how many"
    return grading.stated("pool.size", None, text=text)


def _coupling(level: waits.Waits) -> grading.Signal:
    return grading.at_least(
        "probe.coupling",
        level.coupling,
        waits.ALL_WAIT,
        text=waits.coupling_text(level, f"limit {waits.ALL_WAIT}"),
        chip=f"probe waits {level.coupling.point:.2f} as long",
    )


def _agreement(pool: ThreadPool) -> grading.Signal:
    """As many as there are threads must be at work at once, else the threads wait for something else.

    Samples say how long a request holds threads with one user, several at a time or for a part of its time.
    """
    parallel, size, before, now = pool.full.parallelism, pool.size, pool.held_before, pool.hold
    if isinstance(before, Interval) and isinstance(now, Interval) and before.point > 0:
        longer = now.point / before.point
        text = (
            f"a request holds threads for {numbers.with_unit(now.point, 's')} in all, "
            f"{numbers.with_unit(before.point, 's')} with one user (limit {AS_LONG:g} times that)"
        )
        passed_now = True if longer <= AS_LONG else False if longer >= TWICE else None
        signal = grading.stated(
            "threads.held", passed_now, text=text, chip=f"held {longer:.2f} times as long"
        )
        return replace(signal, is_clear=False)  # some thirty samples with one user
    if isinstance(parallel, Insufficient) or size is None:
        lack = parallel.reason if isinstance(parallel, Insufficient) else "nothing says how many there are"
        return grading.stated("threads.parallelism", None, text=f"throughput x time alone: {lack}")
    passed = abs(parallel.point / size.count - 1) <= AGREES or (
        parallel.low is not None and parallel.covers(size.count)
    )
    text = (
        f"throughput x time alone is {parallel.point:.3g} at work at once, {size.name} {size.count:.3g} "
        f"(limit {numbers.percent(AGREES)})"
    )
    signal = grading.stated("threads.parallelism", passed, text=text, chip=f"{parallel.point:.3g} at once")
    near = ((1 - AGREES) * size.count, (1 + AGREES) * size.count)
    ends = (parallel.low, parallel.high)
    is_clear = all(end is not None and near[0] <= end <= near[1] for end in ends)  # a wide one covers any
    return replace(signal, is_clear=signal.is_clear and is_clear)


def _thread_count(pool: ThreadPool) -> grading.Signal:
    """Without a gauge: threads of the processes do not grow, and are enough for what is at work at once."""
    full, parallel = pool.full, pool.full.parallelism
    below = [step for step in full.curve.steps if step.load < full.top.load]  # on the plateau or not
    before = below[-1] if below else None
    now, then = _threads(full.top), None if before is None else _threads(before)
    if now is None or isinstance(parallel, Insufficient):
        lack = parallel.reason if isinstance(parallel, Insufficient) else "threads were not read"
        return grading.stated("pool.size", None, text=f"no gauge of busy threads; {lack}")
    grows = before is not None and then is not None and now - then >= GROWING * (full.top.load - before.load)
    too_few = parallel.point > (1 + AGREES) * now and (parallel.low is None or parallel.low > now)
    most_idle = now * IDLE_SHARE - IDLE_MORE > parallel.point
    # A limit by the clock gives no whole numbers. Threads are started with the load, up to some number.
    nearest, first = max(1, round(parallel.point)), _threads(full.curve.steps[0])
    off = abs(parallel.point - nearest)
    is_narrow = parallel.low is not None and parallel.high is not None and parallel.high - parallel.low < 0.5
    is_whole = off <= min(WHOLE * nearest, WHOLE_MORE) or (is_narrow and parallel.covers(nearest))
    is_open = most_idle or then is None or not (is_whole or (first is not None and now >= first + 1))
    passed = False if grows or too_few else None if is_open else True
    text = (
        f"throughput x time alone is {parallel.point:.3g} at work at once; {now:.0f} threads at "
        f"{words.users(full.top.load)}"
    )
    if before is not None and then is not None:
        text += f", {then:.0f} at {words.users(before.load)}"
    chip = f"{parallel.point:.3g} at once"
    return grading.stated("pool.size", passed, text=text, chip=chip, value=parallel)


def _threads(step: Step) -> float | None:
    counts = [process.threads for process in step.processes if not process.is_called]
    read = [count for count in counts if count is not None]
    return sum(read) if read and len(read) == len(counts) else None


def _loop(full: waits.Full) -> list[Counter]:
    """An event loop that waits in a call as the only thread that matters."""
    loop = max(full.top.loops, key=lambda loop: loop.held.point, default=None)
    if loop is None:
        return []
    text = (
        f"the event loop of {loop.process} is in a request at {numbers.percent(loop.held.point)} of moments"
    )
    return [grading.rival("event loop", text, loop.held.point < LOOP_HELD)]


def _line_behind(pool: ThreadPool) -> Counter:
    """A line behind the threads as what they wait in: then they are taken up, and not the limit."""
    name = "line behind the threads"
    line = next((p for p in pool.full.top.places if limits.is_line(pool.full, p)), None)
    gauges = [p for p in pool.full.top.places if p.kind in ("lock", "pool", "unknown")]
    if line is not None:
        return grading.rival(name, f"{limits.reading(line.held)}, {limits.reading(line.waiting)}", False)
    for places in gauge_courses.calls_at_once(pool.full):
        most = limits.point(places.bound)
        if most is not None and most < pool.count:
            text = f"{places.held.name} go {most:.0f} at a time, fewer than there are threads"
            return grading.rival(name, text, False)
    if gauges:
        return grading.rival(name, f"{limits.reading(gauges[0].held)}: no line there", True)
    if isinstance(pool.compared, str):
        return grading.rival(name, pool.compared, None)
    return grading.rival(name, "what needs nothing behind waits as long", True)


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
