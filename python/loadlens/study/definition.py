"""A study file as read: its tree, checked, and typed what holds no `$names`.

`parse` makes a Definition, `plan` reads its tree once for each case, with the `$names` filled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from loadlens.errors import DefinitionError, DefinitionErrors
from loadlens.model.study import Claim, FleetSize, Objective, Published, ReportSettings
from loadlens.model.topology import Scalar
from loadlens.model.workload import KEPT_ROWS

if TYPE_CHECKING:
    from loadlens.study.parse.placeholders import Names
    from loadlens.study.tree import Tree


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a study file that a person can open."""

    file: str
    line: int  # from 1; 0: the file itself
    key: str = ""  # experiments.alone.load.users

    def __str__(self) -> str:
        line = f":{self.line}" if self.line else ""
        return f"{self.file}{line} {self.key}".rstrip()


class Faults:
    """Faults of a study, collected so that all are shown together, each once."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Place], DefinitionError] = {}

    def add(self, message: str, place: Place, hint: str | None = None) -> None:
        """Note one fault; the same one at the same place counts once."""
        self._found.setdefault((message, place), DefinitionError(message, where=str(place), hint=hint))

    def __len__(self) -> int:
        return len(self._found)

    def first(self) -> DefinitionError:
        """Return the fault that was noted first."""
        return next(iter(self._found.values()))

    def take(self, others: Faults, *, most: int, rest: str) -> None:
        """Take over the first faults of a kind, in the order of the lines, and the number of the others."""
        in_order = sorted(others._found, key=lambda at: at[1].line)
        for at in in_order[:most]:
            self._found.setdefault(at, others._found[at])
        if left := in_order[most:]:
            self.add(f"{len(left):,} {rest}", left[0][1])

    def raise_any(self) -> None:
        """Raise what was found, in the order of the lines, file by file.

        Raises:
            DefinitionErrors: At least one fault was found.
        """
        if self._found:
            files = list(dict.fromkeys(place.file for _, place in self._found))
            in_order = sorted(self._found, key=lambda at: (files.index(at[1].file), at[1].line))
            raise DefinitionErrors([self._found[at] for at in in_order])


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a factor: the name as written, and the params that it binds."""

    name: str
    place: Place
    binds: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Levels that are predicted before they are run, and the levels of other factors to cross them with."""

    place: Place
    factors: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    where: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment: its cases, and the tree that each of them is read from."""

    place: Place
    tree: Tree
    factors: Mapping[str, tuple[Level, ...]] = field(default_factory=dict)
    hold_out: HoldOut | None = None


@dataclass(frozen=True, slots=True)
class Definition:
    """A whole study file."""

    place: Place  # the file itself
    folder: str  # of the file, absolute
    text: str  # as read
    tree: Tree
    names: Names
    study: str
    question: str
    params: Mapping[str, Scalar] = field(default_factory=dict)
    experiments: Mapping[str, Experiment] = field(default_factory=dict)
    order_by: Literal["blocks", "listed"] = "blocks"
    seed: int = 1
    objectives: tuple[Objective, ...] = ()
    published: Published | None = None
    claims: tuple[Claim, ...] = ()
    report: ReportSettings = field(default_factory=ReportSettings)
    notes: tuple[str, ...] = ()
    samples: int | None = KEPT_ROWS
    traceparent: bool = False
    hide: tuple[str, ...] = ()
    fleet: FleetSize | None = None
    variants: Mapping[str, str] = field(default_factory=dict)  # of services: the one that was taken
