"""Choice of the next load step, from the trials so far and the time left. Pure: nothing runs here.

The baseline step sends each URL a few widely spaced requests. Then the number of users doubles from one until
throughput stops growing and the last level lies well beyond the knee (see `estimate/saturation.py`). As long
as throughput grows in proportion to the users and the findings are settled, every other level is left out, of
slow answers two of three; one between is measured after all if the level above it falls behind. Where a level
does clearly less than the best, the best is measured again at once: less from the same load is a fall with
time. At the end of the climb threads are sampled at its highest level, and where the answer is certain then
(see `provisional.py`), one more level follows, at 3.6 times the knee or beyond, and at 64 users where they
wait for 1 s at most: a service may collapse there, or answer otherwise, and its failures do not end that
trial. Else the remaining time narrows it: two more trials at the highest level (an interval needs three),
then two more at the knee. One light load with frequent probes follows, and with what is left that further
level. Its threads are sampled, too. A fall is repeated; failures there leave the capacity as it is. The light
load's time is reserved from eight users on, unless the curve bends and one more level may show its plateau:
with fewer users a pause shows only if it delays several probes. Any obstacle ends the climb and is named.

When requests fail at a level, the search backs off: to a level between it and the highest one that was
served, then to repeats of the highest one that was served, and to the frequent probes. A service that fails
where it served as many users or more before has not recovered, and is left alone once its threads were
sampled. Answers of 429 and 503 that come after a long wait are failures: a refusal is quick.

A service that refuses requests does so fast, so users who retry without a pause produce mostly refusals. Once
a tenth is refused, or the rate cap ends the load because requests fail or are answered far faster than
before, the search starts again with users who pause for one unloaded response time: first one user, then the
number whose request rate equals the highest rate that met no refusals. If only the highest level is refused,
one more level shows whether throughput stays the same: if so, the refusals are a limit. It also starts again
with users who pause where one user, once the service is warm, would come near the rate cap. A level whose
users get bodies of another size, and faster, ends the climb: higher ones say nothing of the answers below.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from loadlens.estimate import saturation as load
from loadlens.estimate.interval import Insufficient
from loadlens.model.search import Bounds

Kind = Literal["look", "climb", "dense", "stacks"]
End = Literal["complete", "harm", "rate", "broken"]
Because = Literal[
    "saturated",  # the ladder went well beyond the knee
    "budget",  # the time was up before that
    "rate_cap",  # the next level would have asked more than is allowed
    "most_users",
    "fails_beyond",  # the ladder showed a plateau, and requests fail beyond it
    "other_answers",  # more users get other answers, far faster
    "harm",  # too many requests failed
    "fails_alone",  # they did so with one user
    "refused",  # every request was turned away with 429 or 503
    "no_answer",  # nothing came back in the time
    "service_ended",  # every watched process of it is gone
    "broken",  # a step could not be measured, twice
    "generator",  # the generator was the limit
    "interrupted",
]

LOOK_S: Final = 3.0  # at most
LOOK_THINK_S: Final = 0.02
LONG_LOOK_S: Final = 10.0  # at most, where a look showed too few requests to say which share fails
LOOKS_EACH: Final = 5  # requests to each URL
FEWEST_LOOKED: Final = 5  # of which a share says something
MEASURED_SHARE: Final = 1 / 24  # of the budget: ten levels, repeats and the overhead of each trial
SHORTEST_S, LONGEST_S = 2.0, 10.0
LONGEST_SHARE: Final = 1 / 8
RESPONSES: Final = 6.0  # trial length in response times, which keeps edge effects small
COMPLETIONS: Final = 40.0
WARMUP_RESPONSES: Final = 2.0
FIRST_OVERHEAD_S: Final = 2.5  # per trial until measured: monitors, drain, seal
TRIALS: Final = 3  # fewest that give an interval
BEYOND: Final = 2 * load.BEYOND_KNEE  # times the knee: what is only full at half of that may collapse here
WIDE: Final = 64  # users: a service that is full with a few may collapse only with many
WIDE_S: Final = 1.0  # that they wait at most: then the trial is short
LEAST_TOP: Final = 8  # users: cheap, and behaviour just past saturation separates causes
RATE_CAP_MARGIN: Final = 4.0  # users pause unless one user stays below the rate cap by this factor
FAR: Final = 4  # times the users of the last level, where no level between would show anything
FARTHER: Final = 8  # the same where answers are slow
SLOW_SHARE: Final = 1 / 120  # of the budget, that slow answers take: of their levels it holds five
PROPORTIONAL: Final = 0.95  # of growth in proportion to the users: they hardly wait for each other
BENDS: Final = 0.75  # of it: twice the users bring less than half as much again
BEHIND: Final = 0.6  # of it, for four times the users: with more, twice the users were below the plateau
CLEAR_FALL: Final = 2 * load.RETROGRADE_MARGIN  # below the best level, which is then measured again
DEEP_FALL: Final = 0.5  # of the best level, measured twice: no outlier
NARROW: Final = 1.5  # times the users: levels that are nearer to each other say nothing new
MOST_HARMFUL: Final = 3  # levels at which requests fail
OUTRUN: Final = 2.0  # times the requests of a user at any lower level: these answers are others
OUTRUN_BESIDE: Final = 1.2  # the same where bodies have another size
ALIKE: Final = 0.8  # of the mean size of bodies
VAIN: Final = 5.0  # times as long as a success: a refusal is faster than that
REFUSED: Final = 0.10  # share of requests from which users pause
PAUSED_USERS: Final = 8.0  # users with pauses that cannot exceed the rate cap at any service speed
PROBE_PER_S, DENSE_PER_S, FEWEST_PER_S = 20.0, 200.0, 1.0
PROBE_SHARE, DENSE_SHARE = 0.05, 0.20  # of one server's time, at most
PROBE_CAP_SHARE, DENSE_CAP_SHARE = 0.10, 0.30  # of the rate cap
DENSE_LONGER: Final = 2.2  # than a level
STACKS_S: Final = 2.5  # of samples at a level: 50, or 25 of a process that answers itself; 20 name a line
STACKS_USER_S: Final = 0.015  # more for each user: threads are read one after the other
STACKS_LONGEST_S: Final = 3.0
STACKS_LEAST_S: Final = 1.0  # where no more time is left
STACKS_WARMUP_S: Final = 0.3  # at least, and one response time: then as many requests wait as ever will
STACKS_IDLE_S: Final = 0.5  # before the load
STACKS_SHARE: Final = 1 / 6  # of the budget, that is kept for them


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of one trial, reduced to what the next decision needs."""

    kind: Kind
    users: int
    end: End
    ok_per_s: float = 0.0  # successes of the load
    asked_per_s: float = 0.0  # all that ended, of load and probes
    mean_s: float | None = None  # response time of successes
    failed_share: float = 0.0  # of what ended; refusals with 429 and 503 are no failures
    refused_share: float = 0.0
    ended: int = 0  # requests of the load
    pause_s: float = 0.0  # of each user between two requests
    load_s: float = 0.0  # how long the load was on, warm-up included
    took_s: float = 0.0  # the whole trial
    body_bytes: float | None = None  # of an answer of the load, mean; none: not counted
    is_generator_full: bool = False
    failure: str = ""  # most common failure
    words: str = ""  # reason for an early end


@dataclass(frozen=True, slots=True)
class Next:
    """The next trial."""

    kind: Kind
    users: int
    warmup_s: float
    measured_s: float
    pause_s: float = 0.0  # of each user between two requests
    is_beyond: bool = False  # on the plateau already: how it fails there is of interest


@dataclass(frozen=True, slots=True)
class Stop:
    """End of the search, with the reason."""

    because: Because
    words: str


@dataclass(frozen=True, slots=True)
class Level:
    """All complete trials with the same number of users."""

    users: int
    ok_per_s: tuple[float, ...]
    mean_s: float | None

    @property
    def rate(self) -> float:
        """Mean throughput of the trials, per second."""
        return statistics.fmean(self.ok_per_s)


def decide(
    seen: Sequence[Outcome],
    left_s: float,
    bounds: Bounds,
    *,
    is_certain: bool = False,
    is_settled: bool = False,
    samples_stacks: bool = False,
) -> Next | Stop:
    """Return the next trial, or the reason to stop.

    Args:
        seen: Every trial so far, in order.
        left_s: Seconds left of the budget.
        bounds: Limits that no trial may exceed.
        is_certain: Further trials would hardly change the answer.
        is_settled: The findings so far, if any, are the same as a level before, and nothing is suspected.
        samples_stacks: Threads are to be sampled at the end of the climb.
    """
    # Samples that failed are not taken again, and nothing follows from them.
    while seen and seen[-1].kind == "stacks" and seen[-1].end == "broken":
        seen = seen[:-1]
    if not seen:
        too_short = Stop("budget", f"{bounds.budget_s:.0f} s are too few for one level of load")
        return _affordable(Next("look", 1, 0.0, LOOK_S), seen, left_s) or too_short
    nearer = _nearer_look(seen, bounds)
    if nearer is not None and _affordable(nearer, seen, left_s):
        return nearer
    refused = next((i for i, trial in enumerate(seen) if _is_all_refused(trial)), len(seen) - 1)
    stop = _stop_after(seen[refused], seen[: refused + 1], bounds)
    harmful = [trial for trial in seen if _harm(trial, bounds) is not None]
    if harmful and (stop is None or stop.because in ("harm", "fails_alone")):
        return _after_harm(
            harmful, seen, left_s, bounds, is_certain=is_certain, samples_stacks=samples_stacks
        )
    if stop is not None:
        lighter = _lighter_again(seen, bounds) if stop.because in ("refused", "fails_beyond") else None
        return stop if lighter is None else _affordable(lighter, seen, left_s) or stop
    last, pause = seen[-1], pause_of(seen, bounds.rate_cap_per_s)
    if last.end == "broken":
        again = Next(last.kind, last.users, *_lengths(last.users, seen, bounds), last.pause_s)
        return _affordable(again, seen, left_s) or _out_of_time(seen)
    levels = levels_of(seen, pause)
    if not levels:
        first = Next("climb", 1, *_lengths(1, seen, bounds), pause)
        return _affordable(first, seen, left_s) or _out_of_time(seen)
    return _after_levels(
        seen,
        levels,
        pause,
        left_s,
        bounds,
        is_certain=is_certain,
        is_settled=is_settled,
        samples_stacks=samples_stacks,
    )


def _nearer_look(seen: Sequence[Outcome], bounds: Bounds) -> Next | None:
    """Return a longer trial of one user where requests of one fail; none: it is not needed, or was made.

    A single request may be the one of many that fails. Where not all fail, a level of one user shows how.
    """
    last = seen[-1]
    if last.kind != "look" or not last.ended or not last.failed_share:
        return None
    if last.ended < FEWEST_LOOKED and len(seen) == 1:
        return Next("look", 1, 0.0, LONG_LOOK_S)
    is_climb = bounds.harm_share <= last.failed_share < 1
    pause = pause_of(seen, bounds.rate_cap_per_s)
    return Next("climb", 1, 0.0, LONG_LOOK_S, pause) if is_climb else None


def _lighter_again(seen: Sequence[Outcome], bounds: Bounds) -> Next | None:
    """Return the lightest level again once all requests of a heavier one were refused; none: it was asked.

    What is too heavy is refused while it is there; once something is used up, everyone is refused.
    """
    before, served = seen[:-1], [trial for trial in seen[:-1] if trial.kind == "climb" and trial.ok_per_s]
    lightest = min(served, key=lambda trial: trial.users, default=None)
    if lightest is None or not _is_all_refused(seen[-1]) or any(map(_is_all_refused, before)):
        return None
    return Next("climb", lightest.users, *_lengths(lightest.users, before, bounds), lightest.pause_s)


def _after_levels(
    seen: Sequence[Outcome],
    levels: Sequence[Level],
    pause: float,
    left_s: float,
    bounds: Bounds,
    *,
    is_certain: bool,
    is_settled: bool,
    samples_stacks: bool,
) -> Next | Stop:
    """Return a higher level until one is beyond the knee; then what is needed to be certain."""
    unrefused = _unrefused_level(seen, pause)
    unrefused_users = unrefused.users if unrefused is not None and len(levels) == 1 else 0
    users = min(max(2 * levels[-1].users, unrefused_users), bounds.most_users)
    higher = Next("climb", users, *_lengths(users, seen, bounds), pause)
    bound = _bound_in_the_way(seen, levels, pause, bounds)
    capacity = saturation_of(levels, pause)
    end = bound
    if isinstance(capacity, load.Saturation) and capacity.verdict != "underdriven":
        end = Stop("saturated", f"{capacity.reason}, and {levels[-1].users} users are beyond the knee")
    end = _other_answers(seen, levels, pause) or end
    # One user alongside frequent probes: no other load shows pauses, so time is kept for it.
    dense = _dense(seen, pause, bounds)
    dense_s = _cost_s(dense, seen)
    is_done = any(trial.kind == "dense" for trial in seen)
    kept_s = 0.0 if is_done or dense_s > left_s else dense_s
    room_s = left_s if levels[-1].users < LEAST_TOP or _bends(levels) else left_s - kept_s
    is_early = _is_early(end, levels, seen, pause)
    # A level that was left out is not missed where the answer is certain without it.
    may_be_over = end is not None and not is_early and not _has_fallen(levels)
    if not may_be_over or not (samples_stacks or is_certain):
        for lower in _below_the_top(levels, seen, pause, bounds):
            if _affordable(lower, seen, room_s):
                return lower
    if end is None:
        goes_far = is_settled and _may_go_far(seen, levels, bounds)
        users = _far(levels[-1], bounds) * levels[-1].users
        far = _affordable(replace(higher, users=users), seen, room_s) if goes_far else None
        return far or _affordable(higher, seen, room_s) or (dense if kept_s else _out_of_time(seen))
    if is_early and bound is None and _affordable(higher, seen, left_s):
        return higher
    if samples_stacks:
        return stacks_levels(seen, bounds, with_one_user=False)[0]
    beyond = None
    if bound is None and end.because == "saturated" and _may_collapse_beyond(capacity, levels, seen, bounds):
        many = min(max(users, WIDE), bounds.most_users) if _may_be_wide(levels, seen, bounds) else users
        is_short = _expected_response_s(many, seen) <= WIDE_S
        wide = Next("climb", many, *_lengths(many, seen, bounds), pause, is_beyond=is_short)
        beyond = _affordable(wide, seen, left_s)
    if is_certain and end.because == "saturated":
        return beyond or replace(end, words=f"{end.words}; the last trials did not change the answer")
    # Beyond, repeats are for a level that does less: others would narrow nothing.
    is_worth_it = not is_done or _has_fallen(levels)
    for level in _worth_repeating(levels, end) if is_worth_it else ():
        again, is_begun = _again(level, seen, pause), len(level.ok_per_s) > 1
        if _cost_s(again, seen) * (TRIALS - len(level.ok_per_s)) <= (left_s if is_begun else left_s - kept_s):
            return again
    if kept_s:
        return dense
    return beyond or end


def _is_early(end: Stop | None, levels: Sequence[Level], seen: Sequence[Outcome], pause: float) -> bool:
    """True if the climb seems to end at its highest level, and one more level makes it sure."""
    if end is None or end.because != "saturated":
        return False
    return levels[-1].users < LEAST_TOP or _has_just_fallen(levels) or _refuses_at_last(seen, levels, pause)


def _may_collapse_beyond(
    capacity: load.Saturation | Insufficient,
    levels: Sequence[Level],
    seen: Sequence[Outcome],
    bounds: Bounds,
) -> bool:
    """True if the highest level is beyond the knee, and below the load at which a service may collapse.

    Where throughput fell with a few users, only many of them show how far it falls.
    """
    if not isinstance(capacity, load.Saturation) or capacity.verdict == "underdriven":
        return False
    is_narrow = _may_be_wide(levels, seen, bounds)
    if capacity.verdict == "retrograde":
        return is_narrow
    return capacity.beyond_knee is not None and (capacity.beyond_knee < BEYOND or is_narrow)


def _may_be_wide(levels: Sequence[Level], seen: Sequence[Outcome], bounds: Bounds) -> bool:
    """True if so many users were not there yet, wait for a short time only, and cannot pass the rate cap."""
    top = levels[-1]
    asked_per_s = _asked_per_s(seen, top) * WIDE / top.users
    is_short = _expected_response_s(WIDE, seen) <= WIDE_S
    return top.users < WIDE and is_short and asked_per_s <= bounds.rate_cap_per_s


def _unrefused_level(seen: Sequence[Outcome], pause: float) -> Level | None:
    """Return the level at this pause with the highest rate that met no refusals at a shorter pause."""
    unrefused = [
        trial
        for trial in seen
        if trial.kind == "climb"
        and trial.end == "complete"
        and trial.pause_s < pause
        and not trial.refused_share
    ]
    most = max(unrefused, key=lambda trial: trial.users, default=None)
    if most is None or not most.mean_s:
        return None
    users = int(most.users * (most.mean_s + pause) / (most.mean_s + most.pause_s))
    return Level(users, (most.ok_per_s,), most.mean_s)


def pause_of(seen: Sequence[Outcome], rate_cap_per_s: float) -> float:
    """Return the pause of each user from now on, seconds: longer once a tenth of the requests was refused.

    Answers so fast that users pass the rate cap by them are refusals, too, whatever their status.
    """
    alone = _alone_s(seen)
    # A service is faster once it is warm: how often a user asks is known after the first level.
    first = next((t.mean_s for t in seen if t.kind == "climb" and t.users == 1 and t.mean_s), alone)
    usual = think_s(min(alone, first), rate_cap_per_s)
    refuses = any(
        trial.kind == "climb"
        and (
            trial.refused_share + (trial.failed_share if trial.end == "rate" else 0.0) >= REFUSED
            or _outruns(trial, seen)
        )
        for trial in seen
    )
    return max(usual, alone) if refuses else usual


def _outruns(trial: Outcome, seen: Sequence[Outcome]) -> bool:
    """True if users pass the rate cap though each asks far more often than users of lower levels.

    A queue makes each user slower: successes that are so much faster are other answers.
    """
    lower = [
        other.asked_per_s / other.users
        for other in seen
        if other.kind == "climb" and other.end == "complete" and other.users < trial.users
    ]
    return trial.end == "rate" and bool(lower) and trial.asked_per_s > OUTRUN * trial.users * max(lower)


def think_s(alone_s: float, rate_cap_per_s: float) -> float:
    """Return the pause of a user between two requests: none, unless one user alone comes near the rate cap.

    Args:
        alone_s: Mean response time of one user, seconds: in the baseline step, or on the first level.
        rate_cap_per_s: Highest allowed request rate, per second.
    """
    return 0.0 if alone_s * rate_cap_per_s >= RATE_CAP_MARGIN else PAUSED_USERS / rate_cap_per_s


def look_think_s(rate_cap_per_s: float) -> float:
    """Return the pause between two rounds of the baseline step, when response times are not yet measured."""
    return max(LOOK_THINK_S, 2 / rate_cap_per_s)


def probe_per_s(alone_s: float | None, rate_cap_per_s: float, *, dense: bool = False) -> float:
    """Return the probe rate: 20 per second (dense: 200), or less if the probes would load the service."""
    most, share, of_cap = (
        (DENSE_PER_S, DENSE_SHARE, DENSE_CAP_SHARE) if dense else (PROBE_PER_S, PROBE_SHARE, PROBE_CAP_SHARE)
    )
    most = min(most, of_cap * rate_cap_per_s)
    if alone_s is None or alone_s <= 0:
        return most
    return min(most, max(FEWEST_PER_S, share / alone_s))


def levels_of(seen: Sequence[Outcome], pause_s: float = 0.0) -> tuple[Level, ...]:
    """Return levels measured with this pause, by ascending number of users."""
    by_users: dict[int, list[Outcome]] = {}
    for trial in seen:
        if trial.kind == "climb" and trial.end == "complete" and trial.pause_s == pause_s:
            by_users.setdefault(trial.users, []).append(trial)
    return tuple(
        Level(users, tuple(trial.ok_per_s for trial in of), _mean([trial.mean_s for trial in of]))
        for users, of in sorted(by_users.items())
    )


def saturation_of(levels: Sequence[Level], pause_s: float) -> load.Saturation | Insufficient:
    """Return the capacity estimate from the levels."""
    alone = next((level.mean_s for level in levels if level.users == 1), None)
    steps = [load.Step(float(level.users), np.array(level.ok_per_s)) for level in levels]
    return load.saturation(steps, alone_s=alone, think_s=pause_s)


# --- stopping --------------------------------------------------------------------------------------------


def _harm(trial: Outcome, bounds: Bounds) -> Stop | None:
    """Return the reason to stop if too many requests of a trial failed."""
    who = _who(trial)
    because: Because = "fails_alone" if trial.users == 1 else "harm"
    if trial.end == "harm":
        return Stop(because, f"with {who} {trial.words}")
    if trial.kind == "climb" and trial.users > 1 and trial.end == "complete" and not trial.ended:
        return Stop("harm", f"no request of {who} ended within {trial.load_s:.0f} s")
    if trial.end == "complete" and trial.ended and trial.failed_share >= bounds.harm_share:
        why = f" ({trial.failure})" if trial.failure else ""
        return Stop(because, f"{100 * trial.failed_share:.0f} % of the requests of {who} fail{why}")
    return None


def _after_harm(
    harmful: Sequence[Outcome],
    seen: Sequence[Outcome],
    left_s: float,
    bounds: Bounds,
    *,
    is_certain: bool,
    samples_stacks: bool,
) -> Next | Stop:
    """Return a level at which fewer requests should fail, or repeats of one without failures, or the stop."""
    lowest = min(harmful, key=lambda trial: trial.users)
    end, pause = _harm(lowest, bounds), lowest.pause_s
    assert end is not None
    first = seen.index(harmful[0])
    served = levels_of([trial for trial in seen if _harm(trial, bounds) is None], pause)
    served_before = max(
        (t.users for t in seen[:first] if t.kind == "climb" and t.end == "complete"), default=0
    )
    again = next(
        (
            trial
            for trial in harmful
            if trial.users <= served_before and (trial is not harmful[0] or _is_all_lost(trial))
        ),
        None,
    )
    sampled = stacks_levels(seen, bounds, with_one_user=False) if samples_stacks else ()
    if again is not None and (now := _harm(again, bounds)) is not None:
        began = _harm(harmful[0], bounds)
        assert began is not None
        then = f"then {now.words}" if again is not harmful[0] else f"{served_before} users were served before"
        return sampled[0] if sampled else Stop("harm", f"{began.words}, and it does not recover: {then}")
    if not served or served[-1].users >= lowest.users:
        return end
    top = served[-1]
    users = round(math.sqrt(top.users * lowest.users))
    if len(harmful) < MOST_HARMFUL and lowest.users >= NARROW * top.users:
        between = Next("climb", users, *_lengths(users, seen, bounds), pause)
        if _affordable(between, seen, left_s):
            return between
    if sampled:
        return sampled[0]
    repeat = _again(top, seen, pause)
    missing = 0 if is_certain else TRIALS - len(top.ok_per_s)
    if missing > 0 and _cost_s(repeat, seen) * missing <= left_s:
        return repeat
    dense = _dense(seen, pause, bounds)
    is_done = any(trial.kind == "dense" for trial in seen)
    capacity = saturation_of(served, pause)
    if isinstance(capacity, load.Saturation) and capacity.verdict != "underdriven":
        end = Stop("fails_beyond", f"{capacity.reason}, and beyond: {end.words}")
    return end if is_done else _affordable(dense, seen, left_s) or end


def _is_all_lost(trial: Outcome) -> bool:
    return trial.kind == "climb" and trial.failed_share >= 1


def _is_all_refused(trial: Outcome) -> bool:
    return trial.kind == "climb" and trial.ended > 0 and trial.refused_share >= 1


def with_vain_waits_failed(trial: Outcome, seen: Sequence[Outcome]) -> Outcome:
    """Return an outcome whose refusals are failures if each came after waiting far longer than successes."""
    successes = [other.mean_s for other in seen if other.kind == "climb" and other.mean_s]
    if trial.refused_share < 1 or not trial.ended or not successes:
        return trial
    waited_s = trial.users * trial.load_s / trial.ended - trial.pause_s
    is_vain = waited_s >= VAIN * max(successes)
    return replace(trial, failed_share=1.0, refused_share=0.0) if is_vain else trial


def _stop_after(last: Outcome, seen: Sequence[Outcome], bounds: Bounds) -> Stop | None:
    """Return the reason to stop after a trial, if any."""
    who = _who(last)
    harm = _harm(last, bounds)
    if harm is not None:
        return harm
    if last.end == "rate":
        pause = pause_of(seen, bounds.rate_cap_per_s)
        # Where levels below it were measured, only the climb ends: `_bound_in_the_way`.
        is_all = last.pause_s >= pause and not levels_of(seen, pause)
        return _passed_the_cap(last) if is_all else None
    if last.end == "broken":
        broken = [trial for trial in seen if trial.end == "broken" and _place(trial) == _place(last)]
        return Stop("broken", f"with {who}, twice: {last.words}") if len(broken) > 1 else None
    if last.ended == 0:
        return Stop("no_answer", f"no request of {who} ended within {last.load_s:.0f} s")
    if _is_all_refused(last):
        capacity = saturation_of(levels_of(seen[:-1], last.pause_s), last.pause_s)
        if isinstance(capacity, load.Saturation) and capacity.verdict != "underdriven":
            words = f"{capacity.reason}, and beyond: every request of {who} is refused with 429 or 503"
            return Stop("fails_beyond", words)
        return Stop("refused", f"every request of {who} is refused with 429 or 503")
    if last.is_generator_full:
        return Stop("generator", f"the generator was busy all the time with {who}")
    return None


def _far(level: Level, bounds: Bounds) -> int:
    """Return how many times the users of this level the next one has where none between is needed."""
    is_slow = level.mean_s is not None and level.mean_s >= SLOW_SHARE * bounds.budget_s
    return FARTHER if is_slow else FAR


def _may_go_far(seen: Sequence[Outcome], levels: Sequence[Level], bounds: Bounds) -> bool:
    """True if the next level may be left out: throughput grows in proportion, and no bound is in the way."""
    far = _far(levels[-1], bounds)
    enough = BENDS if far == FARTHER else PROPORTIONAL  # time is scarce where answers are slow
    return (
        (len(levels) == 1 or _grows(levels[-2], levels[-1], enough))
        and far * levels[-1].users <= bounds.most_users
        and far * _asked_per_s(seen, levels[-1]) <= bounds.rate_cap_per_s
        and not any(trial.refused_share or trial.failed_share for trial in seen)
    )


def _bends(levels: Sequence[Level]) -> bool:
    """True if the curve bends at the highest level: the next may show its plateau."""
    return len(levels) > 1 and not _grows(levels[-2], levels[-1], BENDS)


def _skipped_users(levels: Sequence[Level]) -> int | None:
    """Return a level that was left out below the highest, if throughput has fallen behind there."""
    if len(levels) < 2 or levels[-1].users not in (FAR * levels[-2].users, FARTHER * levels[-2].users):
        return None
    if len(levels) > 2 and not _grows(levels[-3], levels[-2], BENDS):
        return None  # the level below is on the plateau already
    between = round(math.sqrt(levels[-1].users * levels[-2].users))
    return None if _grows(levels[-2], levels[-1], BEHIND) else between


def _grows(lower: Level, higher: Level, share: float) -> bool:
    """True if throughput grows by this share of what it would in proportion to the users."""
    return higher.rate >= share * lower.rate * higher.users / lower.users


def _asked_per_s(seen: Sequence[Outcome], level: Level) -> float:
    """Return the requests per second at a level, failures and probes included."""
    pause = seen[-1].pause_s
    return max(
        (o.asked_per_s for o in seen if o.kind == "climb" and (o.users, o.pause_s) == (level.users, pause)),
        default=0.0,
    )


def _other_answers(seen: Sequence[Outcome], levels: Sequence[Level], pause: float) -> Stop | None:
    """Return the stop if users at the highest level get other bodies, faster than at any lower level."""
    top, lower = levels[-1], levels[:-1]
    sizes = {
        trial.users: trial.body_bytes
        for trial in seen
        if trial.kind == "climb" and trial.pause_s == pause and trial.body_bytes
    }
    if not lower or top.users not in sizes or lower[0].users not in sizes:
        return None
    first, last = sizes[lower[0].users], sizes[top.users]
    each = max(level.rate / level.users for level in lower)
    if min(first, last) > ALIKE * max(first, last) or top.rate <= OUTRUN_BESIDE * top.users * each:
        return None
    return Stop(
        "other_answers",
        f"bodies of {top.users} users have {last:,.0f} bytes on average, of {lower[0].users} {first:,.0f}, "
        f"and each user gets {top.rate / top.users / each:.1f} times as many",
    )


def _who(trial: Outcome) -> str:
    return "one user" if trial.users == 1 else f"{trial.users} users"


def _passed_the_cap(trial: Outcome) -> Stop:
    return Stop("rate_cap", f"with {_who(trial)} {trial.words}")


def _bound_in_the_way(
    seen: Sequence[Outcome], levels: Sequence[Level], pause: float, bounds: Bounds
) -> Stop | None:
    """Return the stop for the limit that a level exceeded or the next could exceed, if any."""
    top = levels[-1]
    passed = next((trial for trial in seen if trial.end == "rate" and trial.pause_s >= pause), None)
    if passed is not None:
        return _passed_the_cap(passed)
    if top.users >= bounds.most_users:
        return Stop("most_users", f"{top.users} users are the most that are allowed")
    asked = _asked_per_s(seen, top)
    factor = min(2 * top.users, bounds.most_users) / top.users
    if asked * factor > bounds.rate_cap_per_s:
        cap = f"{bounds.rate_cap_per_s:,.0f}/s"
        who = "1 user sends" if top.users == 1 else f"{top.users} users send"
        return Stop("rate_cap", f"{who} {asked:,.0f} requests per second, more users could pass {cap}")
    return None


def _below_the_top(
    levels: Sequence[Level], seen: Sequence[Outcome], pause: float, bounds: Bounds
) -> Iterator[Next]:
    """Yield the level that was left out, and the best one again where the highest does clearly less."""
    skipped = _skipped_users(levels)
    if skipped is not None:
        yield Next("climb", skipped, *_lengths(skipped, seen, bounds), pause)
    best = _best(levels)
    if levels[-1].rate < (1 - CLEAR_FALL) * best.rate and len(best.ok_per_s) == 1:
        yield _again(best, seen, pause)


def _has_just_fallen(levels: Sequence[Level]) -> bool:
    """True if throughput fell at the last level only; another level separates a trend from an outlier."""
    is_first = len(levels) > 2 and not _has_fallen(levels, -2)
    best = _best(levels)
    is_deep = len(best.ok_per_s) > 1 and levels[-1].rate < DEEP_FALL * best.rate
    return is_first and _has_fallen(levels) and len(levels[-1].ok_per_s) == 1 and not is_deep


def _has_fallen(levels: Sequence[Level], place: int = -1) -> bool:
    """True if a level, the highest by default, does less than the best."""
    return levels[place].rate < (1 - load.RETROGRADE_MARGIN) * _best(levels).rate


def _best(levels: Sequence[Level]) -> Level:
    """Return the level with the highest throughput."""
    return max(levels, key=lambda level: level.rate)


def _refuses_at_last(seen: Sequence[Outcome], levels: Sequence[Level], pause: float) -> bool:
    """True if only the last level met refusals."""
    refused = {
        trial.users
        for trial in seen
        if trial.kind == "climb" and trial.pause_s == pause and trial.refused_share >= REFUSED
    }
    return refused == {levels[-1].users}


def _out_of_time(seen: Sequence[Outcome]) -> Stop:
    users = [trial.users for trial in seen if trial.kind == "climb" and trial.end == "complete"]
    if not users:
        return Stop("budget", "the time was up before a level of load was measured")
    return Stop("budget", f"the time was up after {max(users)} users")


# --- narrowing the interval ------------------------------------------------------------------------------


def _worth_repeating(levels: Sequence[Level], end: Stop) -> Iterator[Level]:
    """Yield levels that need three trials for an interval, starting with those that have two."""
    if end.because != "saturated":
        return
    top, knee = levels[-1], _knee(levels)
    if _has_fallen(levels) and len(top.ok_per_s) == 1:
        yield top
    yield from (level for level in levels if len(level.ok_per_s) == TRIALS - 1)
    yield from (level for level in dict.fromkeys((top, knee)) if len(level.ok_per_s) == 1)


def _knee(levels: Sequence[Level]) -> Level:
    """Return the lowest level on the plateau, or the level before it if that is the highest."""
    on_plateau = [level for level in levels if level.rate >= (1 - load.ON_PLATEAU) * _best(levels).rate]
    return on_plateau[0] if on_plateau[0] is not levels[-1] or len(levels) < 2 else levels[-2]


def _again(level: Level, seen: Sequence[Outcome], pause: float) -> Next:
    """Return a repeat of a level, as long as its first trial (warm-up included in `load_s`)."""
    place = ("climb", level.users, pause)
    first = next(trial for trial in seen if _place(trial) == place and trial.end == "complete")
    return Next("climb", level.users, 0.0, first.load_s, pause)


# --- durations -------------------------------------------------------------------------------------------


def _usual_s(bounds: Bounds) -> float:
    return min(LONGEST_S, max(SHORTEST_S, MEASURED_SHARE * bounds.budget_s))


def _lengths(users: int, seen: Sequence[Outcome], bounds: Bounds) -> tuple[float, float]:
    """Seconds of warm-up and of measurement: several response times, enough responses, within bounds."""
    usual = _usual_s(bounds)
    most = max(usual, LONGEST_SHARE * bounds.budget_s)
    response = _expected_response_s(users, seen)
    climbed = [trial for trial in seen if trial.kind == "climb"]
    rate = max((trial.ok_per_s for trial in climbed), default=0.0)
    if len({trial.users for trial in climbed}) == 1 and response:
        rate = max(rate, users / response)
    for_answers = COMPLETIONS / rate if rate else 0.0
    measured = min(most, max(usual, RESPONSES * response, for_answers))
    return min(most, max(usual / 5, WARMUP_RESPONSES * response)), measured


def _expected_response_s(users: int, seen: Sequence[Outcome]) -> float:
    """Return an upper estimate of the mean response time with this many users, seconds."""
    pause = next((trial.pause_s for trial in reversed(seen) if trial.kind == "climb"), 0.0)
    levels = [level for level in levels_of(seen, pause) if level.mean_s is not None]
    if not levels:
        return _alone_s(seen)
    at = next((place for place, level in enumerate(levels) if level.users >= users), None)
    last = levels[-1 if at is None else at]
    assert last.mean_s is not None
    if at is not None:
        # Response time bends upwards, so the line between two levels is above it.
        around = levels[max(0, at - 1) : at + 1]
        return float(
            np.interp(users, [level.users for level in around], [level.mean_s or 0.0 for level in around])
        )
    unrefused = _unrefused_level(seen, pause)
    if unrefused is not None and unrefused.mean_s is not None and unrefused.users >= users:
        return max(last.mean_s, unrefused.mean_s)
    if len(levels) > 1 and last.rate >= 1.5 * levels[-2].rate:
        return 1.2 * last.mean_s  # throughput still grows, so there is little queueing
    grows = max(1.0, users / last.users)
    return last.mean_s * (math.sqrt(grows) if len(levels) == 1 else grows)  # one level shows no queue yet


def _alone_s(seen: Sequence[Outcome]) -> float:
    """Return the mean response time in the baseline step, seconds; 0 if not measured."""
    return next((trial.mean_s for trial in seen if trial.kind == "look" and trial.mean_s is not None), 0.0)


def _cost_s(wanted: Next, seen: Sequence[Outcome]) -> float:
    overheads = [max(0.0, trial.took_s - trial.load_s) for trial in seen if trial.took_s]
    overhead = statistics.median(overheads) if overheads else FIRST_OVERHEAD_S
    return wanted.warmup_s + wanted.measured_s + overhead


def _affordable(wanted: Next, seen: Sequence[Outcome], left_s: float) -> Next | None:
    return wanted if _cost_s(wanted, seen) <= left_s else None


def _place(trial: Outcome) -> tuple[Kind, int, float]:
    return trial.kind, trial.users, trial.pause_s


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None and math.isfinite(value)]
    return statistics.fmean(finite) if finite else None


def _dense(seen: Sequence[Outcome], pause: float, bounds: Bounds) -> Next:
    """Return the light load with frequent probes."""
    return Next("dense", 1, _lengths(1, seen, bounds)[0], DENSE_LONGER * _usual_s(bounds), pause)


# --- stacks ----------------------------------------------------------------------------------------------


def stacks_levels(seen: Sequence[Outcome], bounds: Bounds, *, with_one_user: bool) -> tuple[Next, ...]:
    """Return the trials that sample stacks: at the highest level that was measured, then with one user.

    What a request holds with one user says whether a place is held for longer under load; a report shows the
    difference between the two.
    """
    pause = pause_of(seen, bounds.rate_cap_per_s)
    measured = [level.users for level in levels_of(seen, pause)]
    users = dict.fromkeys((measured[-1], 1) if with_one_user else measured[-1:]) if measured else ()
    warmup = {each: max(STACKS_WARMUP_S, _expected_response_s(each, seen)) for each in users}
    return tuple(Next("stacks", each, min(STACKS_S, warmup[each]), _stacks_s(each), pause) for each in users)


def unsampled(
    seen: Sequence[Outcome], bounds: Bounds, sampled: Collection[int], *, with_one_user: bool = False
) -> tuple[Next, ...]:
    """Return the trials that sample stacks at levels where none did; none if the highest was sampled.

    A climb that goes on after its samples gets a higher level, and rules look at the highest.
    """
    levels = stacks_levels(seen, bounds, with_one_user=with_one_user)
    if not levels or levels[0].users in sampled:
        return ()
    return tuple(level for level in levels if level.users not in sampled)


def _stacks_s(users: int) -> float:
    return min(STACKS_LONGEST_S, STACKS_S + STACKS_USER_S * users)


def stacks_cost_s(wanted: Next, seen: Sequence[Outcome]) -> float:
    """Return the time that a trial which samples stacks takes, seconds."""
    return STACKS_IDLE_S + _cost_s(wanted, seen)


def fitted(wanted: Next, seen: Sequence[Outcome], left_s: float) -> Next | None:
    """Return a trial that samples stacks, shortened to the time left; none if it does not fit."""
    measured_s = wanted.measured_s + min(0.0, left_s - stacks_cost_s(wanted, seen))
    return replace(wanted, measured_s=measured_s) if measured_s >= STACKS_LEAST_S else None


def kept_for_stacks_s(seen: Sequence[Outcome], bounds: Bounds, *, with_one_user: bool) -> float:
    """Return the time that the climb leaves for stacks: at all their levels, or the highest, or none."""
    unknown = Next("stacks", 1, STACKS_WARMUP_S, _stacks_s(LEAST_TOP))
    levels = stacks_levels(seen, bounds, with_one_user=with_one_user) or (unknown,) * (1 + with_one_user)
    costs = [stacks_cost_s(level, seen) for level in levels]
    room = STACKS_SHARE * bounds.budget_s
    return next((cost for cost in (sum(costs), costs[0]) if cost <= room), 0.0)
