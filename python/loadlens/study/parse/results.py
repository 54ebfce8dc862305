"""Makes objectives, claims, published figures and report settings from their keys.

Each is checked against the names of experiments, factors, levels and steps as they stand in the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from loadlens import units
from loadlens.errors import did_you_mean
from loadlens.model.study import Claim, Compared, FleetSize, Objective, Published, Query, ReportSettings
from loadlens.model.workload import shares_of
from loadlens.study.definition import Place
from loadlens.study.objectives import bound_of
from loadlens.study.parse.schema import MISSING, At, Fields
from loadlens.study.tree import Tree
from loadlens.units import UnitError, shown

CLAIM_KINDS: Final = ("ratio", "rises", "order", "same")
MOST_PUBLISHED_BYTES: Final = 1 << 20
REQUIRED_COLUMNS: Final = ("experiment", "step", "metric", "side", "value", "unit")
SIDES: Final = ("client", "server")


def objective(fields: Fields, node: Tree, at: At) -> Objective:
    """A bound in the unit of its metric: seconds, per second, bytes, or a fraction."""
    metric = fields["metric"]
    _check_step(fields.get("step"), at, node.line)
    read = bound_of(metric)
    bounds: dict[str, float] = {}
    for side in ("below", "above"):
        try:
            bounds |= {side: read(fields[side])} if side in fields else {}
        except UnitError as error:
            at.fault(node.line, f"{side} for {metric}: {error.message}", error.example)
    return Objective(metric, fields.get("step"), **bounds)


def compared(fields: Fields, node: Tree, at: At) -> Compared:
    """A figure that the report puts side by side."""
    _check_step(fields.get("step"), at, node.line)
    experiment = _experiment(fields.get("experiment"), "a comparison", at, node.line)
    return Compared(fields["metric"], experiment or "", fields.get("step"))


def query(fields: Fields, node: Tree, at: At) -> Query:
    """A PromQL expression; what is taken of its values follows from it unless it is said."""
    from loadlens.promql.syntax import WHOLE_RANGE  # takes time to import

    take = fields.get("take") or ("last" if WHOLE_RANGE in fields["expr"] else "mean")
    return Query("", fields["expr"], fields.get("unit", ""), take, fields.get("step", 1.0))


def fleet(fields: Fields, node: Tree, at: At) -> FleetSize | Any:
    """Return the machines of a fleet; a number and as many weights, or one of both."""
    if not node.items:
        return at.fault(node.line, "a fleet without a number of nodes", "nodes: 4, or weights: [1, 3]")
    weights = fields.get("weights", ())
    nodes = fields.get("nodes", len(weights))
    if not nodes:
        return MISSING  # a fault was noted
    if weights and len(weights) != nodes:
        return at.fault_of(node, "weights", f"{len(weights)} weights for {nodes} nodes", "one for each node")
    try:
        shares_of(weights or (1,) * nodes)
    except ValueError as fault:
        return at.fault_of(node, "weights" if weights else "nodes", str(fault), "weights: [1, 3, 5]")
    return FleetSize(nodes, weights)


def report(fields: Fields, node: Tree, at: At) -> ReportSettings:
    """Return the settings of the report."""
    queries = (replace(query, name=name) for name, query in fields.pop("promql", {}).items())
    return ReportSettings(**fields, promql=tuple(queries))


def _check_step(step: str | None, at: At, line: int) -> None:
    if step is not None and at.names.steps and step not in at.names.steps:
        at.fault(line, f"{shown(step)} is no step", did_you_mean(step, at.names.steps))


# ---------------------------------------------------------------------------------------------------- claims


def _experiment(given: str | None, what: str, at: At, line: int) -> str | None:
    """The experiment that is spoken of; none, with a fault, when it is not clear which."""
    allowed = tuple(at.names.levels)
    name = given or (allowed[0] if len(allowed) == 1 else None)
    if name is None:
        hint = f"in: {allowed[0]}" if allowed else "an experiment"
        at.fault(line, f"{what} names its experiment when there are several", hint)
    elif name not in allowed:
        at.fault(line, f"{shown(name)} is no experiment", did_you_mean(name, allowed))
        return None
    return name


def claim(fields: Fields, node: Tree, at: At) -> Any:
    """A published statement about the levels of an experiment."""
    _check_step(fields.get("step"), at, node.line)
    name = _experiment(fields.get("experiment"), "a claim", at, node.line)
    if name is None:
        return MISSING
    levels = at.names.levels[name]
    across = fields.get("across")
    named = [pair for side in ("where", "of", "to") for pair in fields.get(side, {}).items()]
    for swept in (fields.get("over"), across):
        if swept is not None and swept not in levels:
            at.fault(node.line, f"{shown(swept)} is no factor of {name}", did_you_mean(swept, list(levels)))
    if across in levels:
        named += [(across, level) for level in fields.get("expected", ())]
    for factor, level in named:
        if factor not in levels:
            at.fault(node.line, f"{shown(factor)} is no factor here", did_you_mean(factor, list(levels)))
        elif level not in levels[factor]:
            hint = did_you_mean(level, levels[factor])
            at.fault(node.line, f"{factor} has no level {shown(level)}", hint)
    kinds = [kind for kind in CLAIM_KINDS if kind in fields]
    if not kinds:
        return MISSING
    metrics = [fields.pop(kind) for kind in kinds]
    for side in ("where", "of", "to"):
        fields[side] = tuple(fields.get(side, {}).items())
    plain = {"step": None, **fields, "experiment": name}
    return Claim(kinds[0], metrics[0], line=node.line, **plain)


# ---------------------------------------------------------------------------------------- published figures


def published(fields: Fields, node: Tree, at: At) -> Published:
    """Published figures with their rows, each checked."""
    file, place = fields["file"], replace(at.below("file").place(node.line))
    rows: tuple[Mapping[str, str], ...] = ()
    path = Path(at.folder) / file
    try:
        if not path.is_file():
            at.faults.add(f"there is no file {shown(file)}", place, "a path seen from the study file")
        elif (size := path.stat().st_size) > MOST_PUBLISHED_BYTES:
            message = f"{shown(file)} has {size:,} bytes"
            at.faults.add(message, place, f"at most {MOST_PUBLISHED_BYTES:,}")
        else:
            text = path.read_bytes().decode("utf-8-sig")
            rows = tuple(_rows(str(Path(at.file).parent / file), text, at))
    except (OSError, ValueError) as error:
        at.faults.add(f"{shown(file)} cannot be read: {error}", place, "a CSV file in UTF-8")
    return Published(file, fields.get("cores"), rows)


def _rows(file: str, text: str, at: At) -> Iterator[Mapping[str, str]]:
    lines = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [column.strip() for column in lines.fieldnames or ()]
        _check_columns(columns, Place(file, 1), at)
        for row in lines:
            place = Place(file, lines.line_num)
            if None in row or any(cell is None for cell in row.values()):
                message = f"the row has not the {len(columns)} cells of the header"
                at.faults.add(message, place, "quote cells with commas")
                continue
            cells = {name.strip(): cell.strip() for name, cell in row.items()}
            _check_row(cells, place, at)
            yield cells
    except csv.Error as error:
        at.faults.add(f"not CSV: {error}", Place(file, lines.line_num), "one header line, then rows")


def _check_columns(columns: list[str], place: Place, at: At) -> None:
    factors = {factor for levels in at.names.levels.values() for factor in levels}
    allowed = [*REQUIRED_COLUMNS, "note", *sorted(factors)]
    for missing in (column for column in REQUIRED_COLUMNS if column not in columns):
        at.faults.add(f"no column {missing}", place, f"columns: {', '.join(allowed)}")
    for column in columns:
        if column not in allowed:
            at.faults.add(f"unknown column {shown(column)}", place, did_you_mean(column, allowed))
    for column in sorted({column for column in columns if columns.count(column) > 1}):
        at.faults.add(f"column {shown(column)} stands twice", place, "keep one")


def _check_row(cells: Mapping[str, str], place: Place, at: At) -> None:
    experiment, experiments = cells.get("experiment", ""), tuple(at.names.levels)
    if experiment not in experiments:
        hint = did_you_mean(experiment, experiments)
        at.faults.add(f"{shown(experiment)} is no experiment", place, hint)
    _check_step(cells.get("step") or None, replace(at, file=place.file, key=""), place.line)
    if cells.get("side") not in SIDES:
        at.faults.add(f"side {shown(cells.get('side'))}", place, f"one of {', '.join(SIDES)}")
    try:
        value = units.scalar(cells.get("value", ""))
    except UnitError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        message = f"value {shown(cells.get('value'))} is not a number"
        at.faults.add(message, place, "a number in the row's unit")
    if not cells.get("unit") or not cells.get("metric"):
        at.faults.add("a row without a metric or a unit", place, "response_time.mean, s")
