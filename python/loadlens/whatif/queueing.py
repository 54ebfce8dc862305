"""Queueing models as `crates/queues` simulates them: stations, routes of requests, streams that send them.

Both kinds of predictions build one: what a remedy would bring from a load curve (`remedies`), and cases that
have not run yet from a record (`held_out`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, Generic, Literal, TypeVar

from loadlens import engine
from loadlens.model.plain import read

LOAD: Final = "load"  # name of the stream of the load
MOST_FAILED: Final = 0.05  # of the requests: the times of the others are then not those of the load
MEMBERS: Final = "members"  # name of the group of processes that take requests
AS_GOOD, SLACK = 1.25, 0.01  # times the best miss, and so much more: models within are indistinguishable
C = TypeVar("C")  # a model before it is fitted

# Which of several processes gets a request.
POLICIES: Final = ("least_connections", "sticky_random", "random")


@dataclass(frozen=True, slots=True)
class Misses:
    """Distance of a model from the measured levels: root mean squares of logarithms; 0: nothing compared."""

    response: float = 0.0
    throughput: float = 0.0
    probe: float = 0.0

    @property
    def of_load(self) -> float:
        """The larger one of the load itself, without probes."""
        return max(self.response, self.throughput)


@dataclass(frozen=True, slots=True)
class Tried(Generic[C]):
    """A model that was compared with the measured levels."""

    candidate: C
    place: int  # among the candidates, the simplest first
    miss: float  # of all figures
    misses: Misses


def as_good(tried: Sequence[Tried[C]]) -> list[Tried[C]]:
    """Return the best model, and then those that miss by about as little."""
    best = min(tried, key=lambda each: (round(each.miss, 3), each.place))
    near = [each for each in tried if each.miss <= AS_GOOD * best.miss + SLACK and each is not best]
    return [best, *sorted(near, key=lambda each: (each.miss, each.place))]


class NoModel(Exception):
    """Reason why nothing is predicted, in words for people."""


@dataclass(frozen=True, slots=True)
class Law:
    """Law of a time in seconds; only the fields of its kind are set."""

    kind: Literal["fixed", "uniform", "exponential", "empirical"]
    s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    mean_s: float | None = None
    values_s: tuple[float, ...] | None = None  # equally likely


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a request's way."""

    do: Literal["choose", "acquire", "release", "serve", "delay"]
    group: str | None = None
    station: str | None = None
    work: Law | None = None
    time: Law | None = None


Route = list[Step]


@dataclass(frozen=True, slots=True)
class Station:
    """Cores, or a semaphore."""

    name: str
    discipline: Literal["ps", "semaphore"]
    capacity: float
    per_job: float | None = None  # cores that one request gets at most
    each: str | None = None  # group whose members have one each


@dataclass(frozen=True, slots=True)
class Group:
    """Processes that take requests."""

    name: str
    size: int
    policy: str


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests that take the same way."""

    name: str
    route: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of an iteration."""

    class_: str
    think: Law | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """One of the ways through an iteration, by weight."""

    weight: float
    steps: Sequence[Visit]


@dataclass(frozen=True, slots=True)
class Load:
    """Users of a closed load, or the rate of an open one."""

    kind: Literal["closed", "open"]
    users: int | None = None
    think: Law | None = None
    rate_per_s: float | None = None
    arrivals: str | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The load, or a probe."""

    name: str
    load: Load
    scenarios: Sequence[Iteration]


@dataclass(frozen=True, slots=True)
class Network:
    """One model, and how long it is simulated."""

    seed: int
    warmup_s: float
    duration_s: float
    most_events: int
    groups: Sequence[Group]
    stations: Sequence[Station]
    classes: Sequence[RequestClass]
    streams: Sequence[Stream]
    schema_version: int = 1

    def plain(self) -> dict[str, object]:
        """Return the model as the simulator takes it and a record keeps it."""
        return asdict(self, dict_factory=_without_none)


def _without_none(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    return {name.rstrip("_"): value for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True)
class Times:
    """Rate and response times of requests that were answered in the simulation."""

    count: int
    rate_per_s: float
    mean_s: float | None
    p50_s: float | None
    p99_s: float | None


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """Times of one class."""

    name: str
    times: Times


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Times of one stream, and by class."""

    name: str
    all: Times
    classes: tuple[ClassTimes, ...]


@dataclass(frozen=True, slots=True)
class _Outcome:
    streams: tuple[StreamTimes, ...]


def simulate(model: Network) -> dict[str, StreamTimes]:
    """Return the outcome by stream; the same model gives the same one."""
    return {stream.name: stream for stream in read(_Outcome, engine.simulate(model.plain())).streams}


def rounded(seconds: float) -> float:
    """Return six digits of a time: more would only make the model longer."""
    return float(f"{max(0.0, float(seconds)):.6g}")


def fixed(seconds: float) -> Law:
    """Return the law of a constant time."""
    return Law("fixed", s=rounded(seconds))


def exponential(mean_s: float) -> Law:
    """Return the exponential law; a constant without length where the mean is 0."""
    return Law("exponential", mean_s=rounded(mean_s)) if mean_s > 0 else fixed(mean_s)


def empirical(values_s: Iterable[float]) -> Law:
    """Return the law of equally likely times."""
    return Law("empirical", values_s=tuple(rounded(value) for value in values_s))


def cores(name: str, capacity: float, per_job: float) -> Station:
    """Return cores that all requests on them share."""
    return Station(name, "ps", capacity, per_job)


def serve(station: str, law: Law) -> Step:
    """Return work on cores."""
    return Step("serve", station=station, work=law)


def delay(law: Law) -> Step:
    """Return time that needs nothing."""
    return Step("delay", time=law)


def holding(station: str, steps: Sequence[Step] = ()) -> Route:
    """Return steps with a unit of a semaphore held."""
    return [Step("acquire", station=station), *steps, Step("release", station=station)]


def through(kind: str | None, station: str, work: Step, rests: Sequence[Step]) -> Route:
    """Return the way through a limiter: a loop is held during work, a pool from beginning to end."""
    match kind:
        case "loop":
            return [*holding(station, [work]), *rests]
        case "pool":
            return holding(station, [work, *rests])
        case _:
            return [work, *rests]


def probe_stream(name: str, load: Load, scenarios: Sequence[Iteration] = ()) -> Stream:
    """Return a stream of probes; without scenarios each is a request of the class of this name."""
    return Stream(name, load, scenarios or [Iteration(1.0, [Visit(name)])])
