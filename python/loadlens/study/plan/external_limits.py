"""Loads that another program is to make: what it cannot do of them, at the line that asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from loadlens.model.external_load import OURS, Feature, Refusals
from loadlens.model.study import Case
from loadlens.model.workload import Plan, Target, Tls
from loadlens.study.definition import Definition, Experiment, Faults, Place
from loadlens.study.parse.schema import At
from loadlens.study.plan.streams import streams_of
from loadlens.study.tree import Node, Row, Tree, items_at

_AUTOMATIC_NS: Final = 5_000_000_000  # some warm-up
# The keys of a load that ask for a feature.
_OF_LOADS: Final[Mapping[Feature, tuple[str, ...]]] = {
    "connection": ("connection",),
    "connections": ("connections",),
    "cookies": ("cookies",),
    "duration": ("duration",),
    "iterations": ("iterations",),
    "pauses": ("think", "pace"),
    "rate": ("rate", "replay", "stages", "steps", "bursts"),
    "requests": ("requests", "iterations"),
    "shape": ("ramp", "stages", "steps", "bursts"),
    "timeout": ("timeout",),
    "warmup": ("warmup",),
}


# The keys of a step that ask for a feature.
_OF_STEPS: Final[Mapping[Feature, tuple[str, ...]]] = {
    "checks": ("check",),
    "expect": ("expect",),
    "auth": ("auth",),
    "body": ("json", "body", "file"),
    "method": (),
    "secrets": ("headers",),
    "templates": (),
}


def check(
    definition: Definition, experiment: Experiment, case: Case, refusals: Refusals, faults: Faults
) -> None:
    """Note everything that the case asks for and its driver cannot do."""
    driver = case.driver
    assert driver is not None, "cases of our engine are not asked"
    hint = f"another driver, or driver: {OURS}"
    at = At(definition.place.file, definition.folder, definition.names, faults)
    for lack in refusals(driver, _plan(case)):
        place = _place(lack.feature, definition, experiment, case, at)
        faults.add(lack.words, place, hint)
    if definition.report.window is not None:
        message = f"{driver} reports whole loads only: the report cannot take a part of one"
        line = items_at(definition.tree, "report")["window"].line
        at.below("report", "window").fault(line, message, f"no window, or driver: {OURS}")


def _plan(case: Case) -> Plan:
    """The case as a driver sees it; where its services are does not matter."""
    tls = case.entry.tls or (Tls() if (case.entry.url or "").startswith("https:") else None)
    target = Target("127.0.0.1", 1, "127.0.0.1:1", tls)
    return Plan(
        seed=1,
        streams=streams_of(case, target),
        warmup_ns=_AUTOMATIC_NS if case.warmup_ns is None else case.warmup_ns,
        duration_ns=case.duration_ns,
        feeds=case.feeds,
    )


def _place(feature: Feature, definition: Definition, experiment: Experiment, case: Case, at: At) -> Place:
    """The first line that asks for a feature; that of the driver where none does by itself."""
    here = at.below("experiments", case.experiment)
    if feature == "mix":
        return here.of(experiment.tree, "mix").place(experiment.tree.items["mix"].line)
    if feature == "probes":
        owner, place = (experiment.tree, here) if "probes" in experiment.tree.items else (definition.tree, at)
        name, probe = next(iter(items_at(owner, "probes").items()))
        return place.of(owner, "probes").below(name).place(probe.line)
    load = experiment.tree.items["load"]
    assert isinstance(load, Tree), "every experiment has a load"
    keys, below = _OF_LOADS.get(feature, ()), here.of(experiment.tree, "load")
    asked = next((key for key in keys if key in load.items), None)
    if asked is None and feature in _OF_STEPS:
        name = case.scenarios[0].name
        step, place = _first_step(items_at(definition.tree, "scenarios")[name], at.below("scenarios", name))
        key = next((key for key in _OF_STEPS[feature] if key in step.items), None)
        return place.place(step.line) if key is None else place.below(key).place(step.items[key].line)
    asked = asked or ("driver" if "driver" in load.items else None)
    return below.place(load.line) if asked is None else below.of(load, asked).place(load.items[asked].line)


def _first_step(scenario: Node, at: At) -> tuple[Tree, At]:
    """The only step of a mix that a driver takes."""
    assert isinstance(scenario, Row), "a scenario is a list"
    step = scenario.items[0]
    assert isinstance(step, Tree), "steps and groups are mappings"
    return (
        _first_step(step.items["steps"], at.item(0).below("steps"))
        if "steps" in step.items
        else (step, at.item(0))
    )
