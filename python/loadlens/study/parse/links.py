"""Faults that lie between the parts of a study: names that refer to nothing, parts that do not fit together.

Runs on whatever could be read, so that one slip does not hide the others. References are checked against
the keys as they stand in the file, whether or not their content could be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from loadlens.model.topology import METRICS_PORT, Entry
from loadlens.model.workload import LOAD
from loadlens.study.definition import (
    CalibratePart,
    Definition,
    ExperimentPart,
    Faults,
    HoldOutPart,
    Later,
    Name,
    Place,
    ProbePart,
    ServicePart,
    StepPart,
    Text,
    groups_in,
    steps_in,
)
from loadlens.study.parse import placeholders
from loadlens.study.parse.placeholders import TESTBED_NAMES, Names, did_you_mean, nearest
from loadlens.study.parse.yaml_tree import Tree
from loadlens.units import shown


def check(definition: Definition, tree: Tree, names: Names, faults: Faults) -> None:
    """Note what does not fit together."""
    _check_params(definition, tree, names, faults)
    _check_calibrations(definition, names, faults)
    _check_services(definition, faults)
    _check_entry(definition, tree, faults)
    _check_scenarios(definition, faults)
    scenarios = placeholders.raw_names(tree, "scenarios")
    for name, experiment in definition.experiments.items():
        given = placeholders.raw_names(tree, "experiments", name)
        for key, hint in (("mix", "mix: SCENARIO"), ("load", "load: {users: 10, duration: 30s}")):
            if key not in given:
                faults.add(f"experiment {name} without a {key}", experiment.place, hint)
        _check_experiment(experiment, scenarios, faults)
    _check_probes(definition.probes, faults)
    _check_quick(definition, tree, scenarios, faults)


# ---------------------------------------------------------------------------------------------------- params


def _check_params(definition: Definition, tree: Tree, names: Names, faults: Faults) -> None:
    file = definition.place.file
    params = tree.items.get("params")
    lines = params.key_lines if isinstance(params, Tree) else {}
    for name in names.given:
        if name in TESTBED_NAMES or name in names.services:
            meaning = "a service" if name in names.services else "a name of the testbed"
            place = Place(file, lines.get(name, 1), f"params.{name}" if name in lines else name)
            faults.add(f"${name} is {meaning}, it cannot be a param or a factor too", place, "rename it")
    for name in definition.params:
        if name not in names.used:
            near = nearest(name, sorted(names.used))
            hint = f"did you mean {near}?" if near else f"remove it, or use ${name}"
            faults.add(
                f"param {name} is used nowhere", Place(file, lines.get(name, 1), f"params.{name}"), hint
            )


# ---------------------------------------------------------------------------------------------- calibrations


def _check_calibrations(definition: Definition, names: Names, faults: Faults) -> None:
    """Each calibrated name means one thing and is used, and its command needs nothing that runs."""
    owners: dict[str, str] = {}
    for service, part in definition.services.items():
        for variant in (part, *part.variants.values()):
            if variant.calibrate is not None:
                _check_calibration(service, variant.calibrate, owners, names, faults)


def _check_calibration(
    service: str, part: CalibratePart, owners: dict[str, str], names: Names, faults: Faults
) -> None:
    name, place = part.gives, part.place
    if name in names.given:
        faults.add(f"${name} is a param or a factor already", place, "another name in `gives`")
    elif name in TESTBED_NAMES or name in names.services:
        faults.add(f"${name} has a meaning already", place, "another name in `gives`")
    elif owners.setdefault(name, service) != service:
        faults.add(f"${name} is calibrated by {owners[name]} too", place, "another name in `gives`")
    elif name not in names.used:
        faults.add(f"calibrated ${name} is used nowhere", place, f"use ${name}, or remove calibrate")
    for piece in part.run.written.pieces if isinstance(part.run.written, Text) else ():
        base = piece.text.partition(".")[0] if isinstance(piece, Name) else ""
        if base in ("port", "replica") or base in names.services or base in names.calibrated:
            message = f"${base} means nothing to a calibration: nothing runs yet"
            faults.add(message, part.run.place, "params, factors, $host and $scratch")


# -------------------------------------------------------------------------------------------------- services


def ports_of(service: ServicePart) -> tuple[str, ...]:
    """The names of a service's ports that are plain text."""
    named = ("http",) if service.ports is None else tuple(port.written for port in service.ports)
    if service.use is not None and service.use.written == "fault-proxy":
        named = (*named, METRICS_PORT)  # where its books are read, whatever the study says
    return tuple(port for port in named if isinstance(port, str))


def _check_services(definition: Definition, faults: Faults) -> None:
    for name, service in definition.services.items():
        ports = ports_of(service)
        _check_unique((service.ports or ()), "port", faults)
        for later in (*service.after, *service.over):
            _check_reference(later, tuple(definition.services), "service", faults)
        for port in (part.port for part in (service.ready, service.scrape) if part is not None):
            _check_reference(port, ports, "port", faults)
        for later in _testbed_texts(service):
            _check_port_names(later, name, definition, faults)
    _check_cycle(definition, faults)
    for reset in (definition.reset, *(each.reset for each in definition.experiments.values())):
        if reset is not None:
            _check_reference(reset.service, tuple(definition.services), "service", faults)


def _testbed_texts(service: ServicePart) -> Iterable[Later[str]]:
    built = service.build.run if service.build else None
    logged = service.server_times.file if service.server_times else None
    return [later for later in (service.start, service.setup, built, logged, *service.env.values()) if later]


def _check_port_names(later: Later[str], name: str, definition: Definition, faults: Faults) -> None:
    """`$port.NAME` names a port that the service has."""
    for piece in later.written.pieces if isinstance(later.written, Text) else ():
        if isinstance(piece, Name) and piece.text.startswith("port."):
            ports = ports_of(definition.services[name])
            if piece.text.partition(".")[2] not in ports:
                hint = did_you_mean(piece.text[5:], ports)
                faults.add(f"${piece.text}: service {name} has no such port", later.place, hint)


def _check_cycle(definition: Definition, faults: Faults) -> None:
    """Services wait for each other in no circle."""
    after = {
        name: [
            later.written for later in (*service.after, *service.over) if later.written in definition.services
        ]
        for name, service in definition.services.items()
    }
    ready: set[str] = set()
    while startable := [name for name in after if name not in ready and ready.issuperset(after[name])]:
        ready.update(startable)
    stuck = [name for name in after if name not in ready]
    if stuck:
        place = definition.services[stuck[0]].place
        faults.add(f"services wait for each other: {', '.join(stuck)}", place, "remove one `after`")


def _check_entry(definition: Definition, tree: Tree, faults: Faults) -> None:
    written = definition.entry.written
    if not isinstance(written, str):
        return
    entry = definition.entry.convert(written)
    assert isinstance(entry, Entry)
    if definition.tls is not None and entry.url is not None and not entry.url.startswith("https:"):
        faults.add("an entry over http has no TLS", definition.tls.place, "an https:// URL, or remove tls")
    services = placeholders.raw_names(tree, "services")
    if entry.url is not None:
        if services:
            message = f"with a URL as entry nothing is started, but there are services: {', '.join(services)}"
            faults.add(message, definition.entry.place, f"entry: {services[0]}, or remove services")
    elif entry.service not in services:
        hint = did_you_mean(str(entry.service), services)
        faults.add(f"entry {shown(written)} is no service", definition.entry.place, hint)
    elif entry.service in definition.services and entry.port is not None:
        ports = ports_of(definition.services[entry.service])
        if entry.port not in ports:
            message = f"service {entry.service} has no port {shown(entry.port)}"
            faults.add(message, definition.entry.place, did_you_mean(entry.port, ports))


# ------------------------------------------------------------------------------------ scenarios, experiments


def _check_scenarios(definition: Definition, faults: Faults) -> None:
    for name, items in definition.scenarios.items():
        steps = steps_in(items)
        for step in steps:
            if step.name is None and len(steps) > 1:
                faults.add(f"a step without a name among several of {name}", step.place, "name: create")
        _check_unique([step.name for step in steps if step.name is not None], "step", faults)
        _check_unique([each.group for each in groups_in(items) if each.group is not None], "group", faults)
        _check_extractions(name, steps, faults)


def _check_extractions(scenario: str, steps: tuple[StepPart, ...], faults: Faults) -> None:
    """Refuse two extracted values of one name: later steps could not distinguish them."""
    seen: dict[str, int] = {}
    for step in steps:
        for name, part in step.extract.items():
            if name in seen:
                message = f"{name} is extracted twice in {scenario}, first on line {seen[name]}"
                faults.add(message, part.place, "another name")
            seen.setdefault(name, part.place.line)


def _check_probes(probes: Mapping[str, ProbePart], faults: Faults) -> None:
    if LOAD in probes:
        message = f"a probe cannot be named {LOAD}: so is the measured stream"
        faults.add(message, probes[LOAD].place, "name it after what it asks")


def _check_experiment(
    part: ExperimentPart, scenarios: tuple[str, ...], faults: Faults, *, is_whole: bool = True
) -> None:
    written = part.mix.written if part.mix is not None else None
    for scenario in [written] if isinstance(written, str) else written if isinstance(written, dict) else ():
        if part.mix is not None and scenario not in scenarios:
            hint = did_you_mean(scenario, scenarios)
            faults.add(f"{shown(scenario)} is no scenario", part.mix.place, hint)
    if part.hold_out is not None and part.factors is not None:
        _check_where(part.hold_out, part.factors, faults, are_levels_checked=is_whole)
    _check_probes(part.probes or {}, faults)


def _check_where(
    hold_out: HoldOutPart, factors: Mapping[str, Any], faults: Faults, *, are_levels_checked: bool
) -> None:
    """Held-out cases are restricted to levels that the experiment has."""
    for factor, levels in hold_out.where.items():
        if factor not in factors:
            hint = did_you_mean(factor, list(factors))
            place = Place(hold_out.place.file, levels[0].place.line if levels else hold_out.place.line)
            faults.add(f"`where` names {factor}, which is no factor here", place, hint)
            continue
        level_names = [level.name for level in factors[factor]]
        for level in levels if are_levels_checked else ():
            if level.name not in level_names:
                message = f"`where` names {factor} {level.name}, which is no level here"
                faults.add(message, level.place, did_you_mean(level.name, level_names))


def _check_quick(definition: Definition, tree: Tree, scenarios: tuple[str, ...], faults: Faults) -> None:
    quick = definition.quick
    if quick is None:
        return
    experiments = placeholders.raw_names(tree, "experiments")
    for name in quick.skip:
        if name not in experiments:
            hint = did_you_mean(name, experiments)
            faults.add(
                f"{shown(name)} is no experiment",
                Place(quick.place.file, quick.place.line, "quick.skip"),
                hint,
            )
    if experiments and set(experiments) <= set(quick.skip):
        faults.add("quick skips every experiment", quick.place, "leave one")
    for name, part in quick.experiments.items():
        if name not in experiments:
            faults.add(f"{shown(name)} is no experiment", part.place, did_you_mean(name, experiments))
        elif name in quick.skip:
            faults.add(f"quick skips {name} and changes it too", part.place, "one of the two")
        _check_experiment(part, scenarios, faults, is_whole=False)
    for name in quick.params:
        if name not in placeholders.raw_names(tree, "params"):
            place = Place(quick.place.file, quick.place.line, f"quick.params.{name}")
            hint = did_you_mean(name, placeholders.raw_names(tree, "params"))
            faults.add(f"{shown(name)} is no param of the study", place, hint)


# -------------------------------------------------------------------------------------------------- in common


def _check_unique(values: Iterable[Later[str]], what: str, faults: Faults) -> None:
    seen: dict[str, int] = {}
    for later in values:
        if not isinstance(later.written, str):
            continue
        if later.written in seen:
            message = f"{what} {shown(later.written)} stands twice, first on line {seen[later.written]}"
            faults.add(message, later.place, "another name")
        seen.setdefault(later.written, later.place.line)


def _check_reference(later: Later[str] | None, names: tuple[str, ...], what: str, faults: Faults) -> None:
    if later is None or not isinstance(later.written, str) or later.written in names:
        return
    faults.add(f"{shown(later.written)} is no {what}", later.place, did_you_mean(later.written, names))
