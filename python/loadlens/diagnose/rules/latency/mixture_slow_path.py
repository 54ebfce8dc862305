"""A fixed share of the requests takes a fixed time longer.

**Means.** Requests of one class take one of two paths: most are quick, some take a longer time that does not
depend on the load, such as a cache miss, a call to a second service, or a timer. Every quantile above the
share of the quick requests is that of the slow path alone, and the mean of both is a time that no request
takes.

**Needs.** The response times fall into hills with a valley between them (density on a logarithmic axis falls
to half of the lower hill). The last hill holds at least 0.5 % of the requests and is three times as slow as
the one below. It also exists at the lowest level of load, where requests do not wait for each other (at least
five slow requests, the measurement with dense probes included), and its distance to the one below is the same
at every level where requests hardly wait for each other, within 10 % of the median distance. Its share is the
same in both halves of all trials. Requests that met a pause or were the first of their connection are left
out before.

**Ruled out by.** A share above 90 %: then a few are answered early. Levels with enough requests and a single
hill. Probes that wait for the end of the slow requests too: then everything stands still, and it is no path.
TCP's timers, if the wait lies within the answer or the kernel sent as many segments again. A share that
varies over time, as of a service that was cold. A CPU quota that stops the service. Other programs or
machines that took its cores: they cause waits of some 10 ms for many requests, so they rule out a path that
is at most 100 ms longer, and leave a longer one open. A generator that was late by as much.

**Thresholds.** 0.5 %: the shortest tail that 200 requests can show. 3: queueing behind equal work looks like
hills of a smaller ratio. 10 %: queues would change the distance by far more. Levels whose quick requests take
more than twice as long as without load are left out: their hills merge.

**Do.** Find what the slow requests have in common: cache that call, run it in parallel, or answer without it
after a time-out. The mean falls by share times extra time. Where all threads are taken, each thread that the
slow path held becomes free for others, and the pool's model says how much more they answer.

**Confirm.** Label the requests that take that path: all slow ones have it. Where one value of a label of the
service's metrics has this share, and takes as long if it is timed, the finding names it. Without the path the
second peak of the distribution is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Answer, Claim, Lacking, Nothing, Words, assessing_after, strongest
from loadlens.diagnose.observe import label_parts
from loadlens.estimate import mixtures
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Estimate, Finding, Grade
from loadlens.model.shapes import SlowLevel, SlowPath
from loadlens.present import numbers

ID = "mixture.slow-path"
TITLE = "a share of the requests takes a fixed time longer"
EXPLAINS: tuple[str, ...] = ()

NEARLY_ALL = 0.9  # of the requests: to be answered early is the exception
TOGETHER = 0.5
LATE = 0.1  # of the shift
BEYOND_P99 = 0.01  # of the requests
DELAYED_ACK_S = 0.04
FEWEST_RETRANSMITTED = 0.5  # segments sent again for each slow request
TAKEN_S = 0.1  # a program that shares a core takes it for less at a time
STOPS = ("cgroup.throttled", "pause.periodic", "host.interference")


@dataclass(frozen=True, slots=True)
class SlowHill:
    """A slow path of one class of requests on one curve, and what was found that stops the service."""

    curve: Curve
    path: SlowPath
    weight: Estimate  # share of the requests
    shift: Estimate  # seconds longer than the others
    levels: Sequence[SlowLevel]
    stops: Sequence[str]  # rules


def observe(facts: Facts, others: Sequence[Answer]) -> Sequence[SlowHill] | Lacking | Nothing:
    """Return every class of every curve that has a hill of slow requests."""
    paths = [(curve, path) for curve in facts.curves for path in curve.slow_paths]
    if not paths:
        return Lacking("needs every request of a trial in its log: none was kept whole")
    most = max(path.most for _, path in paths)
    if most < mixtures.FEWEST:
        return Lacking(f"{most} requests at one level, needs {mixtures.FEWEST}")
    causes = [
        other
        for other in others
        if isinstance(other, Finding) and other.grade >= Grade.PROBABLE and other.rule in STOPS
    ]
    hills = []
    for curve, path in paths:
        levels, weight, shift = _levels(path), path.weight, path.shift
        if path.most < mixtures.FEWEST or not levels:
            continue
        if isinstance(weight, Estimate) and isinstance(shift, Estimate):
            stops = [cause.rule for cause in causes if curve.label in cause.curves]
            hills.append(SlowHill(curve, path, weight, shift, levels, stops))
    return hills or Nothing(_silence(facts, hills))


def _levels(path: SlowPath) -> list[SlowLevel]:
    return [*([path.alone] if path.alone is not None else []), *path.levels]


def claim(_: Facts, hill: SlowHill) -> Claim | Nothing:
    """Hold the share and the distance of the slow requests against what else makes two hills."""
    curve, path, weight, shift = hill.curve, hill.path, hill.weight, hill.shift
    share, later = weight.point, numbers.with_unit(shift.point, "s")
    if share > NEARLY_ALL:
        return Nothing(f"{numbers.percent(share)} are slow: the others are the exception")

    def words(_: Grade) -> Words:
        ratio = max(level.ratio for level in hill.levels)
        loads = [level.load for level in hill.levels]
        low, high = f"{min(loads):g}", f"{max(loads):g}"
        unit = "requests/s" if not curve.is_closed else "user" if high == "1" else "users"
        where = f"at {low} {unit}" if low == high else f"at {low} to {high} {unit} alike"
        # Share of the mean response time at the highest load, where a queue may take the rest.
        usual_s = shift.point / max(median(level.ratio for level in hill.levels) - 1, 1e-9)
        extra_s = share * shift.point
        kinds = [kind.response.mean for kind in curve.steps[-1].classes if kind.label == path.label]
        mean_s = max([extra_s + usual_s, *(mean.point for mean in kinds if isinstance(mean, Estimate))])
        step = max(curve.steps, key=lambda step: (step.load == max(loads), -step.load))
        same = label_parts.of_share(step, share, usual_s + shift.point)
        label = "" if same is None else f" {same.name} of {same.source} has this share."
        return Words(
            statement=f"{numbers.percent(share)} of {path.request} take {later} longer, {where}",
            explanation=f"Quantiles above p{100 * (1 - share):.3g} are the slow path's alone, {ratio:.0f} "
            f"times the usual; the mean of both is a time that no request takes.{label}",
            advice=f"Find what these {numbers.percent(share)} share (a miss, a second call, a timer): cache "
            "it, run it in parallel, or answer without it; the mean falls by "
            f"{numbers.with_unit(extra_s, 's')}.",
            confirm="a label on what takes that path: all slow requests carry it; without it the hill is "
            "gone",
            impact=extra_s / mean_s,
        )

    return Claim(
        where=f"{path.label} · {curve.label}",
        signals=_signals(hill),
        rivals=_rivals(hill),
        words=words,
        curves=(curve.label,),
        # A path that was seen at no second level may be one of a few long requests.
        cap=Grade.STRONG if path.levels else Grade.PROBABLE,
    )


def _signals(hill: SlowHill) -> list[grading.Signal]:
    path, levels, alone = hill.path, hill.levels, hill.path.alone
    ratio, count = min(level.ratio for level in levels), sum(level.slow for level in levels)
    shifts = [level.shift.point for level in levels if isinstance(level.shift, Estimate)]
    constant = mixtures.is_constant(shifts)
    at = f"{', '.join(f'{level.load:g}' for level in levels)} users"
    same = f"the distance changes with the load: {_listed(shifts)}"
    if constant is not False:
        within = numbers.percent(mixtures.CONSTANT)
        same = f"the same time longer at {at}, within {within}" if constant else f"seen at {at} only"
    there = (
        f"too few slow ones among {path.alone_requests} requests at the lowest load: more of these are needed"
    )
    if alone is not None:
        longer = numbers.shown(alone.shift)
        there = f"there at the lowest load too: {alone.slow} of {alone.requests} requests, {longer} longer"
    return [
        grading.at_least(
            "component.weight",
            hill.weight,
            mixtures.LEAST_WEIGHT,
            text=f"{numbers.shown(hill.weight)} of {path.request} lie in a hill of their own, {count} "
            f"requests (limit {numbers.percent(mixtures.LEAST_WEIGHT)})",
            chip=f"{numbers.short(hill.weight)} are slow",
        ),
        grading.at_least(
            "component.shift",
            hill.shift,
            0.0,
            text=f"they take {numbers.shown(hill.shift)} longer than the others",
            chip=f"{numbers.short(hill.shift)} longer",
        ),
        grading.stated(
            "component.ratio",
            ratio >= mixtures.SLOW_RATIO,
            text=f"{ratio:.1f} times as long at least (limit {mixtures.SLOW_RATIO:g})",
            chip=f"{ratio:.1f} times as long",
        ),
        grading.stated(
            "component.alone",
            None if alone is None else alone.ratio >= mixtures.SLOW_RATIO,
            text=there,
            chip="" if alone is None else f"alone: {numbers.short(alone.weight)} slow",
        ),
        grading.stated(
            "component.constant", constant, text=same, chip="the same at every load" if constant else ""
        ),
    ]


def _rivals(hill: SlowHill) -> list[Counter]:
    curve, path, shift, stops = hill.curve, hill.path, hill.shift.point, hill.stops
    sees = path.unseen_s is not None and path.unseen_s <= shift
    pauses = [f"{path.met} requests that met one were left out"]
    if path.unseen_s is not None:
        pauses.append(f"one of {numbers.with_unit(path.unseen_s, 's')} would have been seen")
    if path.together is not None:
        held = numbers.percent(path.together)
        pauses.append(f"{held} of the probes during slow requests waited for their end")
    is_pause = path.together is not None and path.together >= TOGETHER
    # Pauses were left out one by one where they would be seen; a quota's stops are too short for that.
    left = [stop for stop in stops if not (stop == "pause.periodic" and sees)]
    is_stop = "cgroup.throttled" in left or ("host.interference" in left and shift <= TAKEN_S)
    stop_text = (
        f"{', '.join(stops)}: found" if stops else "no quota, pause at a period or other program was found"
    )
    spell = "too few to say whether the share comes and goes"
    if path.is_even is not None:
        spell = (
            "the share is the same in the halves of all trials"
            if path.is_even
            else "the share comes and goes"
        )
    alone = "there where requests do not wait for others, and at every such level"
    if path.lacking:
        alone = f"levels with a single hill: {', '.join(f'{load:g}' for load in path.lacking)} users"
    return [
        grading.rival(
            "standstills",
            "; ".join(pauses),
            False if is_pause else True if sees or path.together is not None else None,
        ),
        grading.rival("a stop that was found", stop_text, False if is_stop else None if left else True),
        grading.rival("first requests of connections", f"{path.opening} such were left out beforehand", True),
        grading.rival("time-outs", "successes alone are looked at; what a time-out ended is none", True),
        _timer_rival(curve, path, shift),
        _generator_rival(curve.steps[0], path, shift),
        grading.rival("a cold or busy spell", spell, path.is_even),
        grading.rival("queueing", alone, not path.lacking),
    ]


def _generator_rival(step: Step, path: SlowPath, shift: float) -> Counter:
    """Requests that only the generator held up: ruled out when it was late by far less, for as many."""
    late = step.generator.lag_p99_s
    if late is None:
        return grading.rival("generator", "its lateness was not recorded", None)
    text = f"late {numbers.with_unit(late, 's')} at p99 at the lowest load"
    if isinstance(path.weight, Estimate) and path.weight.point <= BEYOND_P99 and late < shift:
        return grading.rival("generator", f"{text}; as few as are slow lie beyond that", None)
    return grading.rival(
        "generator", text, True if late <= LATE * shift else False if late >= shift else None
    )


def _timer_rival(curve: Curve, path: SlowPath, shift: float) -> Counter:
    name = mixtures.timer_of(shift)
    later = numbers.with_unit(shift, "s")
    if path.in_answer is not None and path.in_answer >= TOGETHER and name is not None:
        return grading.rival("TCP's timers", f"{later} ({name}), waited for within the answer", False)
    if name is None:
        return grading.rival("TCP's timers", f"{later} is none of them", True)
    if name == mixtures.TCP_TIMERS[DELAYED_ACK_S]:  # it sends nothing again
        text = f"{later} is one ({name}); one between the service and what it asks is not seen from outside"
        return grading.rival("TCP's timers", text, None)
    counts = [step.kernel.retransmitted for step in curve.steps if step.kernel is not None]
    read = [count for count in counts if count is not None]
    again, slow = sum(read), sum(level.slow for level in _levels(path))
    if not read:
        return grading.rival(
            "TCP's timers", f"{later} is one ({name}); segments sent again were not read", None
        )
    text = f"{later} is one ({name}); {again:.0f} segments were sent again for {slow} slow requests"
    return grading.rival("TCP's timers", text, again < FEWEST_RETRANSMITTED * slow)


def _listed(seconds: Sequence[float]) -> str:
    return ", ".join(numbers.with_unit(value, "s") for value in seconds)


def _silence(facts: Facts, _: Sequence[SlowHill]) -> str:
    paths = [path for curve in facts.curves for path in curve.slow_paths if path.most >= mixtures.FEWEST]
    best = max(paths, key=lambda path: len(_levels(path)))
    levels = _levels(best)
    if not levels:
        requests, least = sum(path.requests for path in paths), numbers.percent(mixtures.LEAST_WEIGHT)
        unseen = f"a path of less than {least} was not assessed"
        return f"one hill at every load in {requests:,} requests; {unseen}"
    if best.together is not None and best.together >= TOGETHER:
        held = numbers.percent(best.together)
        return f"{held} of the probes during slow requests wait for their end: a stop, no path"
    if best.lacking:
        return f"two hills at {levels[0].load:g} users and one at {best.lacking[0]:g}"
    if best.is_even is False:
        return "two hills, and the share of the slow one comes and goes over the trials"
    shifts = [level.shift.point for level in levels if isinstance(level.shift, Estimate)]
    if mixtures.is_constant(shifts) is False:
        return f"the distance of the hills changes with the load: {_listed(shifts)}"
    return f"two hills at {len(levels)} levels that a timer, a quota or their ratio explains"


assess_after = assessing_after(ID, TITLE, observe, claim, choose=strongest, silence=_silence)
