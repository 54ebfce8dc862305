"""Interface of a record for `measure`, and readers of the parts of plan and study.

Protocols, so that tests can hand in records made in memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from loadlens.errors import RecordError
from loadlens.model.plain import Unreadable, read
from loadlens.model.recorded import (
    Environment,
    Idle,
    Placement,
    PlannedStudy,
    Prediction,
    SealedFile,
    ServiceProcess,
    TrialCase,
)
from loadlens.model.workload import Closed, Open, Plan, Scenario, Stream
from loadlens.present import load_text

if TYPE_CHECKING:
    import polars as pl

    from loadlens.model.counters import Counters
    from loadlens.model.result import EngineResult
    from loadlens.model.trial import TrialStatus

T = TypeVar("T")
_UNSAFE_IN_TAG = re.compile(r"[., =]")


def tag_part(name: str) -> str:
    """A name as it stands in the tag of a histogram."""
    return _UNSAFE_IN_TAG.sub("_", name)


class HistogramRow(Protocol):
    """One histogram of one interval."""

    @property
    def start_s(self) -> float: ...
    @property
    def length_s(self) -> float: ...
    @property
    def stream(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def klass(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def values(self) -> np.ndarray[Any, np.dtype[np.uint64]]: ...
    @property
    def counts(self) -> np.ndarray[Any, np.dtype[np.uint64]]: ...


class TrialSource(Protocol):
    """One trial of a record."""

    case: TrialCase
    entry: str  # the service that the load asks; empty: an address outside
    block: int
    position: int
    began_unix_ns: int  # 0: not known
    t0_monotonic_ns: int | None  # when the warm-up began
    status: TrialStatus
    reasons: tuple[str, ...]
    services: tuple[ServiceProcess, ...]
    placement: Placement
    idle: Idle
    leaks: tuple[str, ...]
    notes: tuple[str, ...]
    digests: Mapping[str, SealedFile]

    @property
    def name(self) -> str: ...
    @property
    def environment(self) -> Mapping[str, object]: ...  # changes since the start of the run
    @property
    def result(self) -> EngineResult | None: ...  # None: its load never ran
    @property
    def plan(self) -> Plan: ...
    def samples(self, columns: Sequence[str] = ()) -> pl.DataFrame: ...
    def sample_parts(self, columns: Sequence[str]) -> Iterable[pl.DataFrame]: ...
    def connections(self) -> pl.DataFrame: ...
    def readings(self) -> pl.DataFrame: ...
    def answers(self) -> Mapping[str, object]: ...
    def counters(self) -> Counters: ...
    def intervals(
        self, but: Collection[tuple[str, str]] = (), edges_s: Sequence[float] = ()
    ) -> Sequence[HistogramRow]: ...
    def log(self, service: str) -> str: ...


class RunSource(Protocol):
    """A record."""

    @property
    def trials(self) -> Sequence[TrialSource]: ...
    @property
    def study(self) -> Mapping[str, object]: ...
    @property
    def environment(self) -> Mapping[str, object]: ...
    @property
    def predictions(self) -> Mapping[str, Mapping[str, object]]: ...
    @property
    def digest(self) -> str: ...
    @property
    def damage(self) -> tuple[str, ...]: ...
    @property
    def id(self) -> str: ...


def from_record(kind: type[T], content: object, where: str) -> T:
    """Read a part of a record as its type.

    Raises:
        RecordError: A key is missing or holds something else.
    """
    try:
        return read(kind, content)
    except Unreadable as fault:
        raise RecordError(f"damaged: {fault}", where=where) from None


def study_of(record: RunSource) -> PlannedStudy:
    """The study of a record as planned."""
    return from_record(PlannedStudy, record.study, "effective.yaml")


def environment_of(record: RunSource) -> Environment:
    """Machine and software of a record."""
    return from_record(Environment, record.environment, "environment.json")


def predictions_of(record: RunSource) -> Mapping[str, Prediction]:
    """The predictions of a record by the case's slug."""
    return {
        slug: from_record(Prediction, content, f"predictions/{slug}.json")
        for slug, content in record.predictions.items()
    }


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One request of a stream, as planned."""

    index: int
    name: str
    method: str
    path: str
    is_varied: bool = False  # its requests may ask for different things

    @property
    def request(self) -> str:
        """`POST /x`."""
        return f"{self.method} {self.path}"

    @property
    def tag(self) -> str:
        """The name as it stands in the tag of a histogram."""
        return tag_part(self.name)


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """One stream, as planned."""

    index: int
    name: str
    is_probe: bool
    is_closed: bool
    load: float  # users, or iterations per second; of a load that changes the mean of the measured part
    think_s: float  # mean pause of a user between two requests; 0 in an open loop
    connection: str  # keep, new, requests
    timeout_s: float
    steps: tuple[StepPlan, ...]
    shape: str = ""  # what is asked over time, in words; empty: the same all the time
    is_level: bool = True  # whether it stays at one level while it is measured
    is_paced: bool = False  # whether users keep a pace, however long answers take
    groups: tuple[str, ...] = ()  # names of its groups of steps

    @property
    def is_steady(self) -> bool:
        """True if it is one level of load, so that it can be a point of a curve."""
        return self.is_level and not self.is_paced

    @property
    def tag(self) -> str:
        """The name as it stands in the tag of a histogram."""
        return tag_part(self.name)


@dataclass(frozen=True, slots=True)
class _Level:
    """Load of a stream while it is measured."""

    load: float
    shape: str = ""
    is_level: bool = True


def streams_of(plan: Plan) -> tuple[StreamPlan, ...]:
    """The streams of a plan."""
    return tuple(_stream(index, stream, plan) for index, stream in enumerate(plan.streams))


def _level(workload: Closed | Open, plan: Plan) -> _Level:
    """The level of a workload, the mean over the measured part where it changes."""
    begin_ns, profile = plan.warmup_ns, workload.profile
    if profile is not None:
        end_ns = begin_ns + (plan.duration_ns or max(1, profile.length_ns - begin_ns))
        return _Level(
            profile.mean(begin_ns / 1e9, end_ns / 1e9),
            load_text.over_time(profile, " users" if isinstance(workload, Closed) else "/s"),
            profile.is_level(begin_ns, end_ns),
        )
    if isinstance(workload, Closed):
        return _Level(float(workload.users), is_level=workload.ramp_ns <= begin_ns)
    if (replay := workload.replay) is not None:
        seconds = max(replay.last_ns / 1e9, 1e-9)
        return _Level(replay.arrivals / seconds, f"replay of {replay.arrivals:,} due times", is_level=False)
    return _Level(workload.peak_per_s)


def _stream(index: int, stream: Stream, plan: Plan) -> StreamPlan:
    workload, level = stream.workload, _level(stream.workload, plan)
    steps = [step for scenario in stream.scenarios for step in scenario.steps]
    groups = [group.name for scenario in stream.scenarios for group in scenario.groups if group.name]
    return StreamPlan(
        index=index,
        name=stream.name,
        is_probe=stream.role == "probe",
        is_closed=isinstance(workload, Closed),
        load=level.load,
        shape=level.shape,
        is_level=level.is_level,
        is_paced=isinstance(workload, Closed) and workload.pace is not None,
        think_s=_think_per_request(stream.scenarios, workload) if isinstance(workload, Closed) else 0.0,
        connection=stream.connection.reuse,
        timeout_s=stream.timeout_ns / 1e9,
        steps=tuple(
            StepPlan(place, step.name, step.method, step.path, step.is_varied)
            for place, step in enumerate(steps)
        ),
        groups=tuple(dict.fromkeys(groups)),
    )


def _think_per_request(scenarios: Sequence[Scenario], workload: Closed) -> float:
    """Pauses between iterations and after steps, spread over the requests of an iteration."""
    pauses = sum(scenario.weight * (workload.think.mean_s + scenario.pause_s) for scenario in scenarios)
    return pauses / sum(scenario.weight * scenario.requests for scenario in scenarios)


def factor_names(levels: Iterable[Mapping[str, str]]) -> list[str]:
    """Names of the factors of the levels of some cases, in the order in which they first appear."""
    return list(dict.fromkeys(name for of_case in levels for name in of_case))
