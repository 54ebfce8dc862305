"""Facts for rules on the trustworthiness of figures: generator, drift, variation, accounting.

Everything has a default that says "not measured". Labels are for printing only.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadlens.model.finding import Estimate, Figure


@dataclass(frozen=True, slots=True)
class OwnCores:
    """The cores on which the generator may run, means over the trials."""

    cores: int
    busy: float  # of them, by all programs
    lab: float  # cores used by the generator and the rest of Loadlens


@dataclass(frozen=True, slots=True)
class LittleTrial:
    """Throughput times mean response time over the mean in flight, of one trial."""

    ratio: float  # 1: they agree
    bound: float  # how far requests cut off by the edges may move it


@dataclass(frozen=True, slots=True)
class Settling:
    """Course of the response time over one trial."""

    order: int  # its place among all trials of the record
    kind: str  # "flat", "warmup", "slowdown", "no_steady", "cyclic"
    measured_s: float
    cut_s: float  # from the begin of the measured part to where it settles
    bias: float | None  # what the part before the cut does to the median: 0.05 is 5 % more
    change: float  # of the part after the cut, log scale
    p_value: float  # of that trend


@dataclass(frozen=True, slots=True)
class Variation:
    """Variation of mean response times between the trials of a case."""

    trials: int
    between: float  # standard deviation between trials, log scale
    between_low: float
    between_high: float
    within: float  # standard error within a trial, log scale
    share_between: float  # of both together
    order_p: float  # of a trend over the order of the runs; 1 where too few could show one
    without_one: float  # standard deviation without the trial that stands furthest off


@dataclass(frozen=True, slots=True)
class QuantileWatch:
    """One quoted quantile of the response time, and its neighbours."""

    level: float  # 0.99
    figure: Figure
    above: float | None  # independent requests above it, over all trials; none: not known
    lower: Estimate | None  # a little below it
    upper: Estimate | None  # a little above
    apart: float  # how far the neighbours lie from it, as a share: 0.02


@dataclass(frozen=True, slots=True)
class Omission:
    """Delay that service times omit: requests of a scheduled load that were sent late."""

    late: Figure  # share of requests that the generator sent later than matters
    tail_ratio: float | None  # p99 from due over p99 from sent, the largest of the trials
    mean_ratio: float | None
    response_p99_s: float | None
    service_p99_s: float | None


@dataclass(frozen=True, slots=True)
class CalledFailed:
    """Answers that another program calls failed for their length alone, and what failed indeed."""

    program: str
    by_length: int
    failed: int  # connections, answers that broke off, exceptions
    unexpected: int | None  # answers that were no 2xx; none: it does not say how many of them are wrong
    answered: int


@dataclass(frozen=True, slots=True)
class NodeWatch:
    """One machine of a fleet at one level of load; figures are of the load as it saw it."""

    label: str
    host: str  # a label
    part: float  # of the load, mean of the trials
    due: int
    rate: Figure  # successes per second
    p50: Figure  # of the response time, as p99
    p99: Figure
    connect: Figure  # mean time until a connection stood
    start_late_s: float | None  # worst trial
    clock_error_s: float  # worst trial
    verdict: str  # of its generator, the worst of the trials; empty: it sent no result


@dataclass(frozen=True, slots=True)
class Quality:
    """Trustworthiness of the figures of one level of load."""

    own_cores: OwnCores | None = None
    soft_cores: float | None = None  # used by the kernel's soft interrupts, which belong to no process
    little: tuple[LittleTrial, ...] = ()
    longest_reported_s: float | None = None  # longest time in the report of an external load generator
    seconds: float | None = None  # measured part of a trial, the shortest
    order: int | None = None  # place of its first trial among all of the record
    settling: tuple[Settling, ...] = ()
    variation: Variation | None = None
    quantiles: tuple[QuantileWatch, ...] = ()
    omission: Omission | None = None
    called_failed: CalledFailed | None = None
    nodes: tuple[NodeWatch, ...] = ()  # the machines of a fleet; none: one machine made the load


@dataclass(frozen=True, slots=True)
class Counted:
    """Rise of a service's counter over one trial, read while idle before and after."""

    seconds: float  # between the two readings
    sent_low: int  # our requests that certainly reached it
    sent_high: int  # and those that may have
    scrapes: int  # our scrapes in between, which it may count or not
    counted: float
    failed: float | None = None  # of these, answered with 408, 429 or 5xx; none: it does not say


@dataclass(frozen=True, slots=True)
class Count:
    """A counter of a service, trial by trial."""

    label: str
    trials: tuple[Counted, ...]
    restarts: int = 0  # trials left out because the counter went back
