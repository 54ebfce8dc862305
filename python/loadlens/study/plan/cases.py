"""Factors -> cases: every combination of levels in study order, held-out combinations after them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from loadlens.model.external_load import Refusals
from loadlens.model.study import Case, Level
from loadlens.model.topology import Scalar
from loadlens.model.workload import LOAD, Closed, Open
from loadlens.study.definition import Definition, ExperimentPart, Faults, LevelPart
from loadlens.study.plan import external_limits, workloads
from loadlens.study.plan import scenarios as loads
from loadlens.study.plan import services as testbed
from loadlens.study.plan.feeds import FeedFiles, Feeds, Templates
from loadlens.study.plan.fill import Filler

MOST_CASES = 2_000
MOST_TRIALS = 100_000
TRIALS = 3

Combination = tuple[tuple[str, LevelPart], ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of levels of an experiment."""

    levels: Combination
    held_out: bool


def cases_of(
    definition: Definition,
    faults: Faults,
    templates: Templates | None,
    read_due_times: workloads.ReadDueTimes | None,
    refusals: Refusals | None = None,
) -> tuple[Case, ...]:
    """All cases of a study; faults are noted with their lines."""
    made: list[Case] = []
    files = FeedFiles(templates)
    for name, experiment in definition.experiments.items():
        cells = list(itertools.islice(_cells(experiment), MOST_CASES + 1))
        if len(made) + len(cells) > MOST_CASES:
            faults.add(
                f"the study has more than {MOST_CASES:,} cases", experiment.place, "fewer factors or levels"
            )
            break
        used: set[str] = set()
        for cell in cells:
            case = _case(definition, name, experiment, cell, faults, files, read_due_times, used)
            made.append(case)
            if case.driver is not None and refusals is not None and case.scenarios:
                external_limits.check(definition, experiment, case, refusals, faults)
        _check_factors_matter(experiment, used, name, faults)
    if templates is not None:
        for name, part in definition.feeds.items():
            if name not in files.used:
                hint = f"{{{{{name}.column}}}} in a path, header or body, or remove it"
                faults.add(f"feed {name} is used by no request that is run", part.place, hint)
    trials = sum(case.trials for case in made)
    if trials > MOST_TRIALS:
        faults.add(
            f"the study has {trials:,} trials, at most {MOST_TRIALS:,}", definition.place, "fewer trials"
        )
    return _with_unique_slugs(made)


def _cells(experiment: ExperimentPart) -> Iterator[Cell]:
    factors = experiment.factors or {}
    for combination in _product(factors):
        yield Cell(combination, held_out=False)
    hold_out = experiment.hold_out
    if hold_out is not None and hold_out.factors:
        kept = {
            factor: tuple(level for level in levels if _is_within(level, hold_out.where.get(factor)))
            for factor, levels in factors.items()
        }
        for combination in _product({**kept, **hold_out.factors}):
            yield Cell(combination, held_out=True)


def _is_within(level: LevelPart, where: tuple[LevelPart, ...] | None) -> bool:
    return where is None or level.name in {each.name for each in where}


def _product(factors: Mapping[str, tuple[LevelPart, ...]]) -> Iterator[Combination]:
    """Every combination, the last factor changing fastest; one empty one without factors.

    Lazily, unlike itertools.product over large inputs, so that a study with far too many can be refused.
    """
    if not factors:
        yield ()
        return
    (factor, levels), *rest = factors.items()
    for level in levels:
        for others in _product(dict(rest)):
            yield ((factor, level), *others)


def _case(
    definition: Definition,
    name: str,
    experiment: ExperimentPart,
    cell: Cell,
    faults: Faults,
    files: FeedFiles,
    read_due_times: workloads.ReadDueTimes | None,
    used: set[str],
) -> Case:
    values: dict[str, Scalar] = dict(definition.params)
    for _, level in cell.levels:
        values.update(level.binds)
    calibrated = [s.calibrate.gives for s in definition.services.values() if s.calibrate is not None]
    fill = Filler(values, faults, name, calibrated)
    feeds = Feeds(definition.feeds, definition.folder, fill, files)
    steps = loads.Steps(fill, definition.folder, feeds, definition.auth)
    assert experiment.load is not None, "define has seen to it that there is a load"
    entry = testbed.entry(definition, fill)
    services = testbed.secured(testbed.services(definition, fill), entry, definition, fill)
    load = workloads.Loads(fill, definition.folder, read_due_times).load(experiment.load)
    title = " ".join([name, *(f"{factor}={level.name}" for factor, level in cell.levels)])
    case = Case(
        name=title,
        slug=_slug([name, *(f"{factor}-{level.name}" for factor, level in cell.levels)]),
        experiment=name,
        levels=tuple(Level(factor, level.name, tuple(level.binds.items())) for factor, level in cell.levels),
        params=tuple(values.items()),
        services=services,
        entry=entry,
        scenarios=loads.scenarios(definition, experiment, steps, fill),
        workload=load.workload,
        connection=load.connection,
        timeout_ns=load.timeout_ns,
        warmup_ns=load.warmup_ns,
        duration_ns=load.duration_ns,
        probes=loads.probes(definition, experiment, steps),
        fresh=fill.value(experiment.fresh or definition.fresh, "trial"),
        reset=testbed.reset(experiment.reset or definition.reset, fill),
        trials=fill.value(experiment.trials or definition.trials, TRIALS),
        held_out=cell.held_out,
        cookies=load.cookies,
        needs_cores=fill.optional(experiment.needs_cores or definition.needs_cores),
        driver=load.driver,
    )
    streams: dict[str, Closed | Open] = {probe.name: probe.workload for probe in case.probes}
    feeds.check_streams(streams | {LOAD: case.workload})
    used |= fill.used
    return replace(case, feeds=feeds.made)


def _check_factors_matter(experiment: ExperimentPart, used: set[str], name: str, faults: Faults) -> None:
    """A factor that no `$name` uses would give cases that differ in nothing but their name."""
    held_out = experiment.hold_out.factors if experiment.hold_out is not None else {}
    for factor, levels in [*(experiment.factors or {}).items(), *held_out.items()]:
        bound = {param for level in levels for param in level.binds}
        if not bound & used:
            message = (
                f"factor {factor} changes nothing: no ${factor} in {name}, its scenarios or the services"
            )
            faults.add(message, levels[0].place, f"use ${factor}, or remove the factor")
            continue
        for level in levels:
            for param in level.binds:
                if param not in used and param != factor:
                    message = f"level {level.name} binds {param}, which nothing in {name} uses"
                    faults.add(message, level.place, f"use ${param}, or remove it")


# --------------------------------------------------------------------------------------------------- names


def _slug(parts: list[str]) -> str:
    """A name for a folder: lower case, safe on every file system, at most 80 characters."""
    text = "-".join(re.sub(r"[^a-z0-9._]+", "-", part.lower()).strip("-.") for part in parts)
    text = text.strip("-.") or "case"
    if len(text) <= 80:
        return text
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    return f"{text[:71].rstrip('-.')}-{digest}"


def _with_unique_slugs(cases: list[Case]) -> tuple[Case, ...]:
    """The same cases; a slug that stands already gets a number (levels may differ in marks only)."""
    taken: set[str] = set()
    unique = []
    for case in cases:
        slug, number = case.slug, 2
        while slug in taken:
            slug, number = f"{case.slug}-{number}", number + 1
        taken.add(slug)
        unique.append(replace(case, slug=slug))
    return tuple(unique)


__all__ = ["MOST_CASES", "cases_of"]
