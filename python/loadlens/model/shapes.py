"""Facts for rules on single requests: standstills, slow paths, timers, growth.

Moments are seconds on one clock for the whole record, so that what keeps time is seen across trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from loadlens.model.finding import Figure


@dataclass(frozen=True, slots=True)
class Standstill:
    """A stretch in which no stream of a trial got an answer, though many were due."""

    begin_s: float  # the last answer before it
    end_s: float  # the first answer after it
    is_cut: bool  # by the end of the measured part: it may have lasted longer


@dataclass(frozen=True, slots=True)
class SlowBursts:
    """Slow requests of a class in one trial, under a load at which requests do not wait for each other."""

    label: str  # of the class
    request: str
    load: float
    begin_s: tuple[float, ...]  # when the first of each burst was due, ascending
    end_s: tuple[float, ...]  # when the last of each was answered
    longer_s: float  # mean of the slow ones beyond the median of all
    slow: int
    requests: int
    usual_s: float  # median of all


@dataclass(frozen=True, slots=True)
class Spacing:
    """Gaps between the answers of a load."""

    close: int = 0  # shorter than half of the mean gap
    gaps: int = 0


@dataclass(frozen=True, slots=True)
class LetThrough:
    """Requests of one load that were done beyond the rate at which it settled, and in windows."""

    rate_per_s: float  # in the last part
    requests: int  # in it
    ahead: float  # requests beyond that rate
    deviation: float  # of `ahead`, if requests came at random
    period_s: float | None  # of windows; none: requests do not come in windows
    each: tuple[int, ...]  # requests of each whole window
    silent: float  # share of the time between windows


@dataclass(frozen=True, slots=True)
class StandstillWatch:
    """One trial, looked through for standstills."""

    life: str  # of the service: trials with the same one met the same processes
    begin_s: float
    end_s: float
    shortest_s: float  # shortest that is distinguishable from chance
    between_s: float  # mean distance of two answers while it did not stand still
    age_s: float  # mean distance of any moment then to the answer before it
    stops: tuple[Standstill, ...] = ()
    scrapes_s: tuple[float, ...] = ()  # when we began to read the service's metrics

    @property
    def seconds(self) -> float:
        """Length of the watched window."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True)
class FailedAtOnce:
    """The most frequent failures of one level, and how many others were being served at each of them."""

    load: float  # users, or offered requests per second
    outcome: str
    status: int  # 0: no answer
    failures: int  # from the begin of the load on
    successes: int
    failure_s: float  # median, from sent to the end
    success_s: float | None  # the same of successes; none: there are none
    served: int  # successes under way at most failures
    same: float  # share of the failures with that number under way, or within 5 % of it
    first: tuple[float, ...]  # median number under way at the first 20 failures of each trial
    beyond: float  # share of the successes midway through which more were under way


@dataclass(frozen=True, slots=True)
class AnswerSize:
    """Answers as expected of one class of requests at one level whose bodies are of about one size."""

    size_class: int  # four to an octave
    count: int
    least_bytes: int
    most_bytes: int
    mean_s: float  # from due to the end
    body: str = ""  # the beginning of one of them, in one line; empty: none was kept, or it is no text


@dataclass(frozen=True, slots=True)
class Took:
    """Mean and p99 response time of a group of requests."""

    mean: Figure
    p99: Figure


@dataclass(frozen=True, slots=True)
class SparedRequests:
    """Requests of one level that met no standstill, and how many did."""

    requests: int
    met: int
    took: Took


@dataclass(frozen=True, slots=True)
class SlowLevel:
    """One level of load at which times fall apart into hills with a valley between them."""

    load: float  # users, or requests per second
    requests: int
    slow: int  # of these, in the last hill
    weight: Figure  # their share
    shift: Figure  # seconds from the median of the hill below to theirs
    ratio: float  # of the two medians
    took: Took | None = None  # all of them
    usual: Took | None = None  # those below the last hill


@dataclass(frozen=True, slots=True)
class SlowPath:
    """The last hill of the times of one class; what met a standstill or opened a connection is left out."""

    label: str  # of the class
    request: str  # "POST /x"
    requests: int  # looked at, all levels together
    most: int  # at one level
    met: int  # left out: they met a standstill
    opening: int  # left out: the first of their connections
    unseen_s: float | None  # the shortest standstill that would have been seen at all levels used; none: none
    alone: SlowLevel | None = None  # at the lowest level, the look with dense probes included
    alone_requests: int = 0
    levels: tuple[SlowLevel, ...] = ()  # above it, where requests hardly wait for each other
    lacking: tuple[float, ...] = ()  # such levels without two hills, though they had enough requests
    queued: int = 0  # levels left out: requests wait for each other there
    weight: Figure | None = None  # over all of these
    shift: Figure | None = None
    is_even: bool | None = None  # the share is the same in the halves of all trials; none: too few
    together: float | None = None  # of the probes due during slow requests, how many waited for their end
    in_answer: float | None = None  # of the slow ones, how many waited between first and last byte
    parted: tuple[SlowLevel, ...] = ()  # levels above the lowest at which some wait and the others hardly do
    usual_s: float | None = None  # median of the first hill at the lowest level


@dataclass(frozen=True, slots=True)
class TimerLevel:
    """The part of a pile at one level of load."""

    load: float  # users, or requests per second
    count: int
    requests: int | None = None  # looked at there; none: not known


@dataclass(frozen=True, slots=True)
class TimerPile:
    """Requests that took as much longer as one of TCP's timers."""

    label: str  # of the class
    request: str
    place: str  # "answer": between first and last byte; "whole": somewhere; "opening": on a new connection
    timer_s: float
    requests: int  # looked at
    count: int
    weight: Figure  # their share
    shift: Figure  # what they waited
    contrast: float  # density there over the density next to it
    levels: tuple[TimerLevel, ...] | None = None  # of the curve; none: not known


@dataclass(frozen=True, slots=True)
class MemoryBound:
    """The limit that the memory of a service meets first, and how much was left at the end."""

    kind: Literal["control group", "heap", "machine"]
    limit_bytes: float
    left_bytes: float


@dataclass(frozen=True, slots=True)
class HeapGrowth:
    """Growth of the heap in use from the first third of the readings to the last."""

    floor_bytes: float  # of the lowest reading: what collections leave
    peak_bytes: float  # of the highest


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """Growth of a service's memory with its requests, or with time alone, over the trials of one life."""

    label: str  # of the service
    trials: int
    seconds: float  # measured
    readings: int
    requests: int  # answered meanwhile
    begin_bytes: float
    grown_bytes: float  # within measured parts alone: what came between them is left out
    fallen_bytes: float  # the deepest fall from the highest level before
    slope: Figure  # bytes of a request, or in a second where it follows the clock
    per_minute: float | None  # lower end of the growth at the mean rate, share of the level at the end
    late: float | None  # the slope in the last third of the requests, or the time, over that before
    follows: str = "unknown"  # "requests", "clock": what the growth of each trial is in proportion to
    bound: MemoryBound | None = None  # none: none is known
    heap: HeapGrowth | None = None  # none: no runtime reported it


@dataclass(frozen=True, slots=True)
class HandleGrowth:
    """Growth of the threads or open files of a service with its requests, over the trials of one life."""

    label: str  # of the service
    what: str  # "threads", "open files"
    trials: int
    seconds: float  # measured
    requests: int  # answered meanwhile
    begin: float
    end: float
    grown: float  # within measured parts alone
    fallen: float  # the deepest fall within measured parts
    slope: Figure  # for each request
    late: float | None  # the slope in the last third of the requests over that before


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Rise of response times of one class over time at the same level of load."""

    label: str  # of the class
    request: str  # "POST /x"
    trials: int  # with enough requests for a trend
    rising: int  # of these, in which times rise; by more than chance and 3 %
    falling: int
    change: Figure  # median time in the last trial of a level over that in its first; one life of the service
    load: float | None  # that level
    requests: int  # that the service answered in between
    seconds: float  # in between
    doubling: float | None  # requests after which the first time is doubled
    follows: str = "unknown"  # "requests", "clock": what the rises within trials are in proportion to
