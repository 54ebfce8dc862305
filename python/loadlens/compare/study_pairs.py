"""Two versions of the services of a study as pairs: each pair is every case of it on both, in random order.

The load, the data and the order of requests are those of the study as it stands here, so that both versions
get the same; only the folders that services are built and started in differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from loadlens.compare.levels import ARM, LETTERS
from loadlens.compare.pairing import Done, Pairing, run
from loadlens.compare.plan import Terms
from loadlens.errors import UsageError
from loadlens.estimate import looks as ahead
from loadlens.model.study import Case, Level, PlannedTrial, Study, draw
from loadlens.model.topology import Service
from loadlens.run.engine_trial import MakeLoad
from loadlens.run.progress import Found, Progress


def both_versions(study: Study, top: Path, trees: Sequence[Path]) -> Study:
    """Return a study with every case twice: with the services in each of two copies of a repository.

    Args:
        study: As planned; held-out cases are left out.
        top: The repository.
        trees: Its copies.

    Raises:
        UsageError: No service lies in the repository, so that both versions would be the same.
    """
    folder = Path(study.folder).resolve()
    cases = [case for case in study.cases if not case.held_out]
    if not any(_lies_in(top, folder, service) for case in cases for service in case.services):
        raise UsageError(
            "the study starts nothing in this repository, so its revisions are the same",
            where="--rev",
            hint="two URLs, or two --start commands",
        )
    arms = [
        _of_arm(case, letter, folder, top.resolve(), tree)
        for case in cases
        for letter, tree in zip(LETTERS, trees, strict=True)
    ]
    return replace(study, cases=tuple(arms))


def _of_arm(case: Case, letter: str, folder: Path, top: Path, tree: Path) -> Case:
    services = tuple(
        replace(service, dir=str(tree / _home(folder, service).relative_to(top)))
        if _lies_in(top, folder, service)
        else service
        for service in case.services
    )
    return replace(
        case,
        name=f"{case.name} {ARM}={letter}",
        slug=f"{case.slug}-{letter.lower()}",
        levels=(*case.levels, Level(ARM, letter, ((ARM, letter),))),
        params=(*case.params, (ARM, letter)),
        services=services,
    )


def _home(folder: Path, service: Service) -> Path:
    return (folder / (service.dir or ".")).resolve()


def _lies_in(top: Path, folder: Path, service: Service) -> bool:
    """True if a service is started in the repository, and is none of the parts that the lab provides."""
    return bool(service.start) and _home(folder, service).is_relative_to(top.resolve())


def run_study_pairs(
    study: Study,
    terms: Terms,
    pair_s: float,
    out: Path,
    progress: Progress,
    make_load: MakeLoad | None = None,
) -> Done:
    """Run a comparison and leave its record, as `pairing.run` does.

    Args:
        study: Of both versions.
        terms: Names and bounds.
        pair_s: Estimated duration of every case once.
        out: The record, a new folder.
        progress: Receives events.
        make_load: Makes the loads elsewhere; none: our engine on this machine.
    """
    first = [_planned(study, case, 1, place) for place, case in enumerate(study.cases, 1)]
    return run(
        study,
        first,
        out,
        progress,
        lambda runner, began: _StudyPairs(terms, runner, began, study=study, pair_s=pair_s),
        make_load,
    )


@dataclass(slots=True)
class _StudyPairs(Pairing):
    """The state of a comparison while it runs."""

    study: Study = field(kw_only=True)
    pair_s: float = field(kw_only=True)

    def go(self) -> None:
        """Run pairs until they decide."""
        left_s = self.terms.budget_s - self.used_s
        self.looks = ahead.looks_within(int(left_s / self.pair_s))
        if not self.looks:
            needed_s = math.ceil(ahead.LOOKS[0] * self.pair_s + self.used_s) + 1
            raise UsageError(
                f"{self.terms.budget_s:g} s are too short for {ahead.LOOKS[0]} pairs of {self.pair_s:.0f} s",
                where="--budget",
                hint=f"--budget {needed_s}s",
            )
        self.progress.tell(Found(f"time for {self.looks[-1]} pairs, each of {len(self.study.cases)} trials"))
        self.run_pairs([partial(self._valid, case) for case in self.study.cases])

    def _valid(self, case: Case, block: int) -> bool:
        grown = replace(case, trials=block)
        return self.is_valid(
            lambda: self.run_trial(
                grown,
                block,
                partial(_planned, self.study, grown, block),
                lambda cases: replace(self.study, cases=tuple(cases)),
                may_repeat=True,
            )
        )


def _planned(study: Study, case: Case, block: int, position: int) -> PlannedTrial:
    """Return one trial; its seed depends on the pair and not on the version, so both see one schedule."""
    shared = case.slug.removesuffix(f"-{case.levels[-1].name.lower()}")
    return PlannedTrial(case, block, position, draw(study.seed, "trial", str(block), shared))
