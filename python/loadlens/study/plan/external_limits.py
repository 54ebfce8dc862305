"""Loads that another program is to make: what it cannot do of them, at the line that asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from loadlens.model.external_load import OURS, Feature, Refusals
from loadlens.model.study import Case
from loadlens.model.workload import Plan, Target, Tls
from loadlens.study.definition import (
    Definition,
    ExperimentPart,
    Faults,
    GroupPart,
    LoadPart,
    Place,
    StepPart,
)
from loadlens.study.plan.streams import streams_of

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


def check(
    definition: Definition, experiment: ExperimentPart, case: Case, refusals: Refusals, faults: Faults
) -> None:
    """Note everything that the case asks for and its driver cannot do."""
    driver, load = case.driver, experiment.load
    assert driver is not None, "cases of our engine are not asked"
    assert load is not None, "define has seen to it that there is a load"
    hint = f"another driver, or driver: {OURS}"
    for lack in refusals(driver, _plan(case)):
        faults.add(lack.words, _place(lack.feature, definition, experiment, case), hint)
    report = definition.report
    if report is not None and report.window is not None:
        message = f"{driver} reports whole loads only: the report cannot take a part of one"
        faults.add(message, report.window.place, f"no window, or driver: {OURS}")


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


def _place(feature: Feature, definition: Definition, experiment: ExperimentPart, case: Case) -> Place:
    """The first line that asks for a feature; that of the driver where none does by itself."""
    assert experiment.load is not None
    if feature == "mix" and experiment.mix is not None:
        return experiment.mix.place
    if feature == "probes":
        probes = definition.probes if experiment.probes is None else experiment.probes
        return next(iter(probes.values())).place
    parts = [*_in_load(experiment.load, feature), *_in_step(_first_step(definition, case), feature)]
    driver = experiment.load.driver
    return next(iter(parts), experiment.load.place if driver is None else driver.place)


def _in_load(load: LoadPart, feature: Feature) -> Iterator[Place]:
    for key in _OF_LOADS.get(feature, ()):
        later = getattr(load, key)
        if later is not None:
            yield later.place


def _first_step(definition: Definition, case: Case) -> StepPart:
    """The only step of a mix that a driver takes."""
    part = definition.scenarios[case.scenarios[0].name][0]
    while isinstance(part, GroupPart):
        part = part.steps[0]
    return part


def _in_step(step: StepPart, feature: Feature) -> Iterator[Place]:
    if feature == "checks" and step.check is not None:
        yield step.check.place
    if feature == "expect" and step.expect:
        yield step.expect[0].place
    if feature == "auth" and step.auth is not None:
        yield step.auth.place
    if feature == "body":
        yield from (part.place for part in (step.json, step.body, step.file) if part is not None)
    if feature in ("auth", "body", "checks", "expect", "method", "templates"):
        yield step.place
