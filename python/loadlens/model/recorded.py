"""A record's study, trials and machine, as far as anything that reads a record needs them.

`model/plain.py` makes these types from effective.yaml, trial.json and environment.json; the full types of a
study that is about to run are in `model/study.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadlens.model.study import Purpose, Window
from loadlens.model.topology import Entry, Outside, Scalar, Service
from loadlens.model.workload import Closed, Connection, Open, Scenario


@dataclass(frozen=True, slots=True)
class TrialCase:
    """The part of a case that each of its trials keeps."""

    slug: str
    name: str = ""
    experiment: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)  # of each factor
    params: Mapping[str, Scalar] = field(default_factory=dict)
    held_out: bool = False
    needs_cores: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedProbe:
    """A probe of a case."""

    name: str
    workload: Closed | Open
    scenario: Scenario | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCase(TrialCase):
    """A case as planned."""

    scenarios: tuple[Scenario, ...]
    workload: Closed | Open
    connection: Connection
    services: tuple[Service, ...] = ()
    entry: Entry | None = None
    probes: tuple[PlannedProbe, ...] = ()
    warmup_ns: int | None = None
    duration_ns: int | None = None
    trials: int = 1
    purpose: Purpose = "load"
    driver: str | None = None  # the program of others that made the load; none: our engine
    outside: Outside | None = None

    @property
    def entry_service(self) -> str:
        """The service that the load asks; empty: an address outside."""
        return "" if self.entry is None else self.entry.service or ""


@dataclass(frozen=True, slots=True)
class _Report:
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A study as planned."""

    cases: tuple[PlannedCase, ...]
    name: str = ""
    seed: int | None = None
    report: _Report | None = None

    @property
    def window(self) -> Window:
        """The part of each trial that figures are taken from."""
        return (None if self.report is None else self.report.window) or Window()


# --- a trial ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A replica of a service that ran in a trial."""

    service: str
    replica: int = 1
    pid: int | None = None
    variant: str | None = None
    ports: Mapping[str, int] = field(default_factory=dict)
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a replica; none: not limited, or not known."""

    cpus: tuple[int, ...] | None = None  # CPUs that it may run on
    cpu: float | None = None  # quota, in cores
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class PlacedService(Bounds):
    """Limits that were asked for a service, and those that the kernel reported of each replica."""

    period_s: float | None = None
    held: tuple[Bounds, ...] = ()
    is_called: bool = False  # by the service under test, and no part of it


@dataclass(frozen=True, slots=True)
class Placement:
    """Processors of the generator, and limits of the services."""

    cores_allowed: tuple[int, ...] = ()
    generator_threads: int | None = None
    generator_cpus: tuple[int, ...] | None = None
    services: Mapping[str, PlacedService] = field(default_factory=dict)
    refused: str | None = None  # why the machine cannot enforce a limit
    shared: bool | None = None  # whether generator and services may run on the same cores

    @property
    def own_cpus(self) -> tuple[int, ...]:
        """Processors that the generator may run on."""
        return self.generator_cpus or self.cores_allowed


@dataclass(frozen=True, slots=True)
class Idle:
    """Brackets of the load: when monitors read the idle services, and the requests of readiness checks."""

    before_ns: tuple[int, ...] = ()  # the first readings fell between these, from t0
    after_ns: tuple[int, ...] = ()
    readiness_requests: Mapping[str, int] | None = None  # by service; none: not counted


@dataclass(frozen=True, slots=True)
class SealedFile:
    """A file of a trial as it was sealed."""

    bytes: int
    sha256: str


# --- the machine ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware of a run; none: not known."""

    cores: int | None = None
    cores_allowed: int | None = None
    cpu_model: str | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """The environment that was built for a service."""

    packages: Mapping[str, str] = field(default_factory=dict)  # version of each


@dataclass(frozen=True, slots=True)
class CalibratedValue:
    """A value that a command of the study gave before the first trial."""

    name: str
    value: Scalar
    run: str  # the command


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """Version control state of the study's folder when the run began."""

    commit: str | None = None
    changed_files: tuple[str, ...] | None = None  # that differ from the commit


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine of a run, and what was built and calibrated for it."""

    machine: Machine | None = None
    builds: Mapping[str, Build] = field(default_factory=dict)  # by service
    parts: Mapping[str, str] = field(default_factory=dict)  # service -> version, or why it is left out
    calibrated: tuple[CalibratedValue, ...] = ()
    command: tuple[str, ...] = ()
    study_folder: StudyFolder | None = None

    @property
    def cores(self) -> int:
        """Cores that the run could use; 1 where they are not known."""
        return self.known.cores_allowed or self.known.cores or 1

    @property
    def known(self) -> Machine:
        """The machine; where nothing was recorded one of which nothing is known."""
        return self.machine or Machine()


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything that was read of machine and software, to be listed; a value of none: not known."""

    machine: Mapping[str, object] = field(default_factory=dict)
    limits: Mapping[str, object] = field(default_factory=dict)
    software: Mapping[str, object] = field(default_factory=dict)


# --- predictions ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PredictedFigure:
    """One predicted figure with its 95 % interval, in the base unit."""

    metric: str
    step: str | None  # or the name of a probe
    unit: str
    point: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class _Structure:
    words: str


@dataclass(frozen=True, slots=True)
class _Input:
    case: str
    trial: str


@dataclass(frozen=True, slots=True)
class _Misses:
    all: float  # log of the ratio


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    unit: str
    point: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction of a held-out case (predictions/CASE.json)."""

    made_unix_ns: int
    undecided: str | None = None  # why there is none
    predicted: tuple[PredictedFigure, ...] = ()
    inputs: tuple[_Input, ...] = ()
    structures: tuple[_Structure, ...] = ()  # that fit the inputs equally well
    misses: _Misses = field(default_factory=lambda: _Misses(0.0))  # how far the model is off on its inputs
    parameters: tuple[_Parameter, ...] = ()
    assumed: tuple[str, ...] = ()
    confidence: float = 0.95


# --- answers of Prometheus --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnsweredSeries:
    """One series of an answer."""

    labels: Mapping[str, str]
    times_s: tuple[float, ...]  # from t0
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer to one expression."""

    name: str
    expression: str
    series: tuple[AnsweredSeries, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Server:
    version: str


@dataclass(frozen=True, slots=True)
class ServerAnswers:
    """Answers of a Prometheus of the testbed at the end of a trial (promql.json)."""

    by: _Server | None = None  # none: no server answered
    why: str = ""
    answers: tuple[ServerAnswer, ...] = ()
