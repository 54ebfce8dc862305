"""A live comparison as a study: the same load on both versions, and the short loads that find its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.compare.levels import ARM, LETTERS
from loadlens.model.search import Aim
from loadlens.model.study import Case, Level, PlannedTrial, Purpose, Study, draw
from loadlens.model.topology import Entry
from loadlens.model.workload import Closed, Connection, Open, Scenario

PAIRS, RATE, PILOT = "pairs", "rate", "pilot"  # experiments of the record
MOST_IN_FLIGHT: Final = 2000
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Names of both versions, and bounds of their comparison."""

    names: tuple[str, str]
    budget_s: float
    margin: float
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(Terms):
    """A comparison of two URLs or commands as requested."""

    aims: tuple[Aim, Aim]
    rate_per_s: float | None  # none: found by a short search
    users: int | None  # a closed load in place of a rate


@dataclass(frozen=True, slots=True)
class Load:
    """A load of one trial."""

    experiment: str
    workload: Closed | Open
    warmup_s: float
    measured_s: float
    purpose: Purpose = "look"


def open_load(rate_per_s: float) -> Open:
    """Return arrivals at a rate that do not wait for responses; both trials of a pair have the same ones."""
    return Open(rate_per_s=rate_per_s, arrivals="poisson", max_in_flight=MOST_IN_FLIGHT)


def case_of(task: Task, arm: int, load: Load, trials: int) -> Case:
    """Return the case of a load on one version."""
    aim, letter = task.aims[arm], LETTERS[arm]
    size = f"-{load.workload.users}" if isinstance(load.workload, Closed) else ""
    return Case(
        name=f"{load.experiment}{size} {ARM}={letter}",
        slug=f"{load.experiment}{size}-{letter.lower()}",
        experiment=load.experiment,
        levels=(Level(ARM, letter, ((ARM, letter),)),),
        params=((ARM, letter),),
        services=aim.services,
        entry=Entry(url=aim.origin, tls=aim.tls),
        scenarios=tuple(Scenario(step.name, 1.0, (step,)) for step in aim.steps),
        workload=load.workload,
        connection=Connection(),
        timeout_ns=aim.timeout_ns,
        warmup_ns=round(load.warmup_s * _NS),
        duration_ns=round(load.measured_s * _NS),
        probes=(),
        fresh="trial" if load.experiment == PAIRS and aim.services else "run",
        reset=None,
        trials=trials,
        outside=aim.outside,
        purpose=load.purpose,
    )


def study_of(task: Task, cases: Sequence[Case]) -> Study:
    """Return the study so far."""
    return Study(
        name="compare",
        question=f"Is {task.names[1]} slower than {task.names[0]}?",
        folder=str(Path.cwd()),
        text="",
        params=(),
        cases=tuple(cases),
        order_by="listed",
        seed=task.seed,
        hide=task.aims[0].hide,
    )


def planned(task: Task, case: Case, block: int, position: int) -> PlannedTrial:
    """Return one trial; the seed depends on the pair and not on the version, so both see one schedule."""
    return PlannedTrial(case, block, position, draw(task.seed, case.experiment, str(block)))
