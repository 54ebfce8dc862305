"""Checks objectives, claims and published figures of a study against its cases."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from loadlens import units
from loadlens.study.definition import (
    ClaimPart,
    Definition,
    ExperimentPart,
    Faults,
    ObjectivePart,
    Place,
    PublishedPart,
    StepPart,
    steps_in,
)
from loadlens.study.parse import placeholders
from loadlens.study.parse.placeholders import did_you_mean
from loadlens.study.parse.yaml_tree import Tree
from loadlens.units import UnitError, shown

MOST_PUBLISHED_BYTES: Final = 1 << 20
REQUIRED_COLUMNS: Final = ("experiment", "step", "metric", "side", "value", "unit")
SIDES: Final = ("client", "server")


def check(definition: Definition, tree: Tree, faults: Faults) -> Definition:
    """Note objectives and claims that no case can answer; gives the definition with bounds in base units."""
    experiments = placeholders.raw_names(tree, "experiments")
    steps = _step_names(definition)
    for objective in definition.objectives:
        _check_step(objective.step, steps, objective.place, faults)
    for claim in definition.claims:
        _check_step(claim.step, steps, claim.place, faults)
        _check_claim(claim, definition, experiments, faults)
    for compared in definition.report.compare if definition.report is not None else ():
        _check_step(compared.step, steps, compared.place, faults)
        _check_experiment(compared.experiment, experiments, compared.place, "a comparison", faults)
    bounded = tuple(_with_bounds(objective, faults) for objective in definition.objectives)
    return _with_published(replace(definition, objectives=bounded), tree, faults)


def _step_names(definition: Definition) -> tuple[str, ...]:
    """Every name that results can speak of: of steps in scenarios and probes; none when one is still open."""
    named: list[tuple[str, StepPart]] = [
        (scenario, step) for scenario, items in definition.scenarios.items() for step in steps_in(items)
    ]
    named += definition.probes.items()
    for experiment in definition.experiments.values():
        named += (experiment.probes or {}).items()
    names = [default if step.name is None else step.name.written for default, step in named]
    return tuple(names) if all(isinstance(name, str) for name in names) else ()


def _check_step(step: str | None, names: tuple[str, ...], place: Place, faults: Faults) -> None:
    if step is not None and names and step not in names:
        faults.add(f"{shown(step)} is no step", place, did_you_mean(step, names))


def _with_bounds(objective: ObjectivePart, faults: Faults) -> ObjectivePart:
    """The objective with its bounds in the unit of its metric: seconds, per second, or a fraction."""
    if objective.metric == "throughput":
        read = units.rate_per_s
    elif objective.metric.startswith(("body_bytes.", "load.received_")):
        read = units.size_bytes
    elif objective.metric == "load.answers":
        read = units.count
    elif objective.metric.endswith(".share"):
        read = units.share
    else:
        read = units.duration_s
    bounds: dict[str, float | None] = {"below": None, "above": None}
    for side, written in (("below", objective.below), ("above", objective.above)):
        try:
            bounds[side] = None if written is None else read(written)
        except UnitError as error:
            message = f"{side} for {objective.metric}: {error.message}"
            faults.add(message, objective.place, error.example)
    return replace(objective, below=bounds["below"], above=bounds["above"])


# ---------------------------------------------------------------------------------------------------- claims


def _check_experiment(
    given: str | None, allowed: tuple[str, ...], place: Place, what: str, faults: Faults
) -> str | None:
    """The experiment that is spoken of; none, with a fault, when it is not clear which."""
    name = given or (allowed[0] if len(allowed) == 1 else None)
    if name is None:
        faults.add(f"{what} names its experiment when there are several", place, f"in: {allowed[0]}")
    elif name not in allowed:
        faults.add(f"{shown(name)} is no experiment", place, did_you_mean(name, allowed))
        return None
    return name


def _check_claim(
    claim: ClaimPart, definition: Definition, experiments: tuple[str, ...], faults: Faults
) -> None:
    name = _check_experiment(claim.experiment, experiments, claim.place, "a claim", faults)
    if name is None:
        return
    experiment = definition.experiments.get(name)
    if experiment is None:
        return  # could not be read; that is a fault of its own
    all_levels = levels_of(experiment, definition)
    for levels in (claim.where, claim.of, claim.to):
        for factor, level in levels.items():
            _check_level(factor, level, all_levels, claim, faults)
    for swept in (claim.over, claim.across):
        if swept is not None and swept not in all_levels:
            hint = did_you_mean(swept, list(all_levels))
            faults.add(f"{shown(swept)} is no factor of {name}", claim.place, hint)
    for level in claim.expected if claim.across in all_levels else ():
        _check_level(str(claim.across), level, all_levels, claim, faults)


def levels_of(experiment: ExperimentPart, definition: Definition) -> Mapping[str, tuple[str, ...]]:
    """Return the values of each factor, including held-out levels and the defaults of params."""
    by_factor: dict[str, list[str]] = {name: [str(value)] for name, value in definition.params.items()}
    held_out = experiment.hold_out.factors if experiment.hold_out is not None else {}
    for factor, levels in experiment.factors.items() if experiment.factors else ():
        by_factor[factor] = [level.name for level in levels]
    for factor, levels in held_out.items():
        by_factor.setdefault(factor, []).extend(level.name for level in levels)
    return {factor: tuple(levels) for factor, levels in by_factor.items()}


def _check_level(
    factor: str, level: str, levels: Mapping[str, tuple[str, ...]], claim: ClaimPart, faults: Faults
) -> None:
    if factor not in levels:
        faults.add(f"{shown(factor)} is no factor here", claim.place, did_you_mean(factor, list(levels)))
    elif level not in levels[factor]:
        hint = did_you_mean(level, levels[factor])
        faults.add(f"{factor} has no level {shown(level)}", claim.place, hint)


# ---------------------------------------------------------------------------------------- published figures


def _with_published(definition: Definition, tree: Tree, faults: Faults) -> Definition:
    """The definition with the rows of its published figures."""
    published = definition.published
    if published is None:
        return definition
    path = Path(definition.folder) / published.file
    place = Place(published.place.file, published.place.line, f"{published.place.key}.file")
    try:
        raw = path.read_bytes() if path.is_file() else None
        text = raw.decode("utf-8-sig") if raw is not None and len(raw) <= MOST_PUBLISHED_BYTES else None
    except (OSError, ValueError) as error:
        faults.add(f"{shown(published.file)} cannot be read: {error}", place, "a CSV file in UTF-8")
        return definition
    if raw is None:
        faults.add(f"there is no file {shown(published.file)}", place, "a path seen from the study file")
        return definition
    if text is None:
        faults.add(
            f"{shown(published.file)} has {len(raw):,} bytes", place, f"at most {MOST_PUBLISHED_BYTES:,}"
        )
        return definition
    return replace(definition, published=_with_rows(published, text, definition, tree, faults))


def _with_rows(
    published: PublishedPart, text: str, definition: Definition, tree: Tree, faults: Faults
) -> PublishedPart:
    file = str(Path(published.place.file).parent / published.file)
    lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    rows: list[Mapping[str, str]] = []
    try:
        columns = [column.strip() for column in lines.fieldnames or ()]
        _check_columns(columns, Place(file, 1), definition, faults)
        for row in lines:
            place = Place(file, lines.line_num)
            if None in row or any(cell is None for cell in row.values()):
                faults.add(
                    f"the row has not the {len(columns)} cells of the header",
                    place,
                    "quote cells with commas",
                )
                continue
            cells = {name.strip(): cell.strip() for name, cell in row.items()}
            _check_row(cells, definition, placeholders.raw_names(tree, "experiments"), place, faults)
            rows.append(cells)
    except csv.Error as error:
        faults.add(f"not CSV: {error}", Place(file, lines.line_num), "one header line, then rows")
    return replace(published, rows=tuple(rows))


def _check_columns(columns: list[str], place: Place, definition: Definition, faults: Faults) -> None:
    factors = {name for part in definition.experiments.values() for name in levels_of(part, definition)}
    allowed = [*REQUIRED_COLUMNS, "note", *sorted(factors)]
    for missing in (column for column in REQUIRED_COLUMNS if column not in columns):
        faults.add(f"no column {missing}", place, f"columns: {', '.join(allowed)}")
    for column in columns:
        if column not in allowed:
            faults.add(f"unknown column {shown(column)}", place, did_you_mean(column, allowed))
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        faults.add(f"column {shown(column)} stands twice", place, "keep one")


def _check_row(
    cells: Mapping[str, str], definition: Definition, experiments: Iterable[str], place: Place, faults: Faults
) -> None:
    experiment = cells.get("experiment", "")
    names = tuple(experiments)
    if experiment not in names:
        faults.add(f"{shown(experiment)} is no experiment", place, did_you_mean(experiment, names))
    step, steps = cells.get("step") or None, _step_names(definition)
    _check_step(step, steps, place, faults)
    if cells.get("side") not in SIDES:
        faults.add(f"side {shown(cells.get('side'))}", place, f"one of {', '.join(SIDES)}")
    try:
        value = units.scalar(cells.get("value", ""))
    except UnitError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        faults.add(f"value {shown(cells.get('value'))} is not a number", place, "a number in the row's unit")
    if not cells.get("unit") or not cells.get("metric"):
        faults.add("a row without a metric or a unit", place, "response_time.mean, s")
