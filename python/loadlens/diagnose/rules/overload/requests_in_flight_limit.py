"""A fixed number of requests may be in flight; one more fails at once.

**Means.** N requests are served at a time, and whatever comes beyond that fails without waiting: with 503 or
429, with 500 because a pool or a semaphore had no place and nothing waits for one, or by a connection that is
closed. The number limits, not the rate: with N users or fewer nothing fails.

**Needs.** A log of every request. At least 20 failures of one kind on a level, 1 % of its requests or more,
which take at most half as long as successes. At 80 % of them the same number N of other requests were being
served, and also at the first 20 of each trial; at most 15 % of the successes were served while more than N
were, on levels with enough users for that (without such a level the finding is only suspected). Each level of
more than N users that has failures shows the same N; on levels of up to N users at most 0.1 % fail.

**Ruled out by.** A limit of the rate: at its failures any number may be in service, and at its first failures
another than later, because what was saved up is used first. Failures by chance, or of a part that is broken:
they strike while all users are served, so that the number grows with the users. With one level of failures
alone, the latter is not excluded.

**Thresholds.** Half: a request that failed after waiting was not refused. 80 % and 15 %: an answer on its way
counts as being served for a round trip, longer on a busy machine; behind limits of 4 to 12 places it was 93 %
or more and 10 % or less, behind limits of a rate more than N were served at 38 % of the successes. 5 % of N,
rounded down, is the same number. 20 failures: fewer may agree by chance. 0.1 %: single faults.

**Do.** Size the limit by what lies behind it: N = wanted throughput x time of a request. Let requests wait
for a place for a bounded time, and answer the rest with 503 and a time to retry after.

**Confirm.** Twice the limit: failures begin beyond twice the number in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loadlens.diagnose import grading
from loadlens.diagnose.driver import Claim, Lacking, Nothing, Words, assessing, on_curve, strongest
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import Counter, Grade, Setting
from loadlens.model.shapes import FailedAtOnce
from loadlens.present import numbers, words

ID = "requests.in-flight-limit"
TITLE = "one request more than a fixed number fails at once"
EXPLAINS: tuple[str, ...] = ("shed.overload", "ratelimit.active", "saturation.plateau")

FEWEST = 20
LEAST_SHARE = 0.01
AT_ONCE = 0.5  # of the time of successes
SAME = 0.80  # of the failures
BEYOND = 0.15  # of the successes
NEAR = 0.05  # of the number
STRAY = 0.001  # of the requests of a level that must not fail
OVERLOADED = (429, 503)  # statuses with which a limit says so itself


@dataclass(frozen=True, slots=True)
class Room:
    """The levels of one curve at which requests fail."""

    curve: Curve
    levels: tuple[FailedAtOnce, ...]  # with enough failures, ascending

    @property
    def top(self) -> FailedAtOnce:
        """The level with the most failures."""
        return max(self.levels, key=lambda level: level.failures)

    @property
    def served(self) -> int:
        """Requests that are served at a time, by the level with the fewest."""
        return min(level.served for level in self.levels)


def observe(facts: Facts) -> Sequence[Room] | Lacking | Nothing:
    """Return the curves with failures."""
    if not any(curve.steps for curve in facts.curves):
        return Lacking("no valid trial")
    rooms = []
    for curve in facts.curves:
        levels = tuple(
            level for level in curve.failed if level.failures >= FEWEST and _share(level) >= LEAST_SHARE
        )
        if levels:
            rooms.append(Room(curve, levels))
    if rooms:
        return rooms
    if any(step.failed_count >= FEWEST for curve in facts.curves for step in curve.steps):
        return Lacking("needs a log of every request on a level with failures")
    return Nothing(f"on no level {numbers.percent(LEAST_SHARE)} of the requests fail in one way")


def claim(facts: Facts, room: Room) -> Claim:
    """Hold the number in service at failures against a limit of the rate and failures by chance."""
    signals = [_at_once(room), _same(room), _first(room), _never_more(room), _below(room)]
    rivals = [_by_chance(room)]
    top, number = room.top, room.served
    if (step := _step(room, top)) is not None:
        rivals.append(grading.generator_rival(step))
    how = f"with {top.status}" if top.status else f"({words.outcome(top.outcome)})"

    def text(grade: Grade) -> Words:
        verb = "may be" if grade is Grade.SUSPECTED else "is" if number == 1 else "are"
        advice = (
            f"Raise the {number} to what lies behind it can serve, and let requests wait for a place for a "
            "bounded time"
        )
        if top.status in OVERLOADED:
            advice += "; clients pause before they ask again, longer each time and with jitter."
        else:
            advice += "; answer what finds none with 503 and a time to retry after."
        return Words(
            statement=f"{number} {verb} served at a time; at {_load(room, top)} the rest fails at once {how}",
            explanation=f"{numbers.percent(top.same)} of {top.failures:,} failures came while {number} other "
            f"requests were being served, within {numbers.with_unit(top.failure_s, 's')}.",
            advice=advice,
            confirm=f"twice the limit: failures begin beyond {2 * number} at once",
            impact=1 - number / top.load if room.curve.is_closed else _share(top),
            unknown=("whether requests or connections are counted",),
            setting=Setting.exactly("places", number),
        )

    return on_curve(room.curve, signals, rivals, text)


def _share(level: FailedAtOnce) -> float:
    return level.failures / max(1, level.failures + level.successes)


def _load(room: Room, level: FailedAtOnce) -> str:
    return words.users(level.load) if room.curve.is_closed else f"{level.load:g} requests/s"


def _step(room: Room, level: FailedAtOnce) -> Step | None:
    return next((step for step in room.curve.steps if step.load == level.load), None)


def _is_near(number: float, other: float) -> bool:
    return abs(number - other) <= NEAR * other


def _at_once(room: Room) -> grading.Signal:
    slowest = max(
        room.levels, key=lambda level: level.failure_s / (level.success_s or level.failure_s or 1.0)
    )
    took = f"half of the failures take {numbers.with_unit(slowest.failure_s, 's')} or less"
    if not slowest.success_s:
        return grading.stated("failures.time", False, text=f"{took}, and nothing succeeds")
    return grading.stated(
        "failures.time",
        slowest.failure_s <= AT_ONCE * slowest.success_s,
        text=f"{took} at {_load(room, slowest)}, of the successes "
        f"{numbers.with_unit(slowest.success_s, 's')} (limit {numbers.percent(AT_ONCE)} of it)",
        chip=f"fail within {numbers.with_unit(slowest.failure_s, 's')}",
    )


def _same(room: Room) -> grading.Signal:
    least = min(room.levels, key=lambda level: level.same)
    return grading.stated(
        "failures.served",
        least.same >= SAME,
        text=f"{least.served} others were being served at {numbers.percent(least.same)} of "
        f"{least.failures:,} failures at {_load(room, least)} (limit {numbers.percent(SAME)})",
        chip=f"{least.served} served at {numbers.percent(least.same)}",
        value=float(least.served),
    )


def _first(room: Room) -> grading.Signal:
    """Compare with the first failures: a limiter of a rate uses first what it saved up."""
    firsts = [(first, level) for level in room.levels for first in level.first]
    first, level = max(firsts, key=lambda pair: abs(pair[0] - pair[1].served) / max(1, pair[1].served))
    return grading.stated(
        "failures.first",
        _is_near(first, level.served),
        text=f"{first:g} at the first failures of a trial at {_load(room, level)}, {level.served} at most "
        "of them",
    )


def _never_more(room: Room) -> grading.Signal:
    # While the request of one user fails, at most all others are being served.
    possible = [
        level
        for level in room.levels
        if not room.curve.is_closed or level.load - 1 > (1 + NEAR) * level.served
    ]
    if not possible:
        text = f"{room.served} served and one that fails are all users: more could not be served"
        return grading.stated("served.beyond", None, text=text)
    most = max(possible, key=lambda level: level.beyond)
    return grading.stated(
        "served.beyond",
        most.beyond <= BEYOND,
        text=f"{numbers.percent(most.beyond)} of the successes at {_load(room, most)} were served while more "
        f"than {most.served} were (limit {numbers.percent(BEYOND)})",
    )


def _below(room: Room) -> grading.Signal:
    """Nothing fails on levels that cannot have more in flight than are served."""
    if not room.curve.is_closed:
        return grading.stated("failures.below", None, text="of an open load any number may be in flight")
    below = [step for step in room.curve.steps if step.load <= room.served and step.issued]
    if not below:
        return grading.stated("failures.below", None, text=f"no level of {room.served} users or fewer")
    failed = {level.load: _share(level) for level in room.curve.failed}
    worst = max(
        reversed(below), key=lambda step: failed.get(step.load, step.failed_count / (step.issued or 1))
    )
    share = failed.get(worst.load, worst.failed_count / (worst.issued or 1))
    return grading.stated(
        "failures.below",
        share <= STRAY,
        text=f"{numbers.percent(share)} fail at {words.users(worst.load)} (limit {numbers.percent(STRAY)})",
        chip=f"none fail up to {below[-1].load:g} users" if not share else "",
    )


def _by_chance(room: Room) -> Counter:
    """Failures by chance come while all other users are served, so the number grows with the users."""
    name = "failures by chance, or of a broken part"
    if len(room.levels) < 2:
        return grading.rival(name, "one level with failures: whether the number stays is not known", None)
    counts = [level.served for level in room.levels]
    text = f"{min(counts)} to {max(counts)} were being served" if len(set(counts)) > 1 else f"{counts[0]}"
    text += f" at failures, from {room.levels[0].load:g} to {_load(room, room.levels[-1])}"
    return grading.rival(name, text, _is_near(min(counts), max(counts)))


assess = assessing(ID, TITLE, observe, claim, choose=strongest)
