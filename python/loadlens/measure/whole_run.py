"""A whole record, measured: its cases, its load curves, its accounting, and the facts that rules may see.

Reads a record and nothing else. Invalid trials are kept and enter no figure; requests of different trials
are never pooled for an interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from loadlens.measure import accounting, external_trial, memory_release
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import CurveCases, asked_calmly, before_collapse, curve_of, gather
from loadlens.measure.gates import gates_of
from loadlens.measure.requests import growth, slow_paths
from loadlens.measure.requests.ended_levels import ended_levels, lost
from loadlens.measure.requests.served_at_once import failed_at_once
from loadlens.measure.requests.slow_bursts import slow_bursts
from loadlens.measure.services import event_loops
from loadlens.measure.services.thread_places import (
    crowd_of,
    handshakes_of,
    locked_of,
    logging_of,
    places_of,
)
from loadlens.measure.source import RunSource, TrialSource, environment_of, streams_of, study_of
from loadlens.measure.trial import TrialMeasures, measure
from loadlens.model.facts import Curve, Facts
from loadlens.model.recorded import PlannedCase
from loadlens.model.report import AccountingRow
from loadlens.model.stacks import StackSamples
from loadlens.model.study import Window
from loadlens.signals.read import stacks

MeasureTrial = Callable[[TrialSource, Window], TrialMeasures]
Sampled = tuple[TrialSource, StackSamples]


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured record: everything that a report is built from."""

    cases: tuple[CaseMeasures, ...]
    groups: tuple[CurveCases, ...]  # held-out ones too
    curves: tuple[Curve, ...]  # what rules see
    accounting: tuple[AccountingRow, ...]
    facts: Facts
    stacks: Mapping[str, tuple[StackSamples, ...]]  # by label of their curve, each by ascending load


def facts(record: RunSource) -> Facts:
    """Return what the rules may see of a record."""
    return measured(record).facts


def measured(record: RunSource, measure_trial: MeasureTrial | None = None) -> Measured:
    """Measure every trial, case and load curve of a record.

    Args:
        record: The record, which may still grow.
        measure_trial: In place of `of_trial`, such as one that remembers the trials of earlier calls.
    """
    study = study_of(record)
    apart = {case.slug for case in study.cases if case.purpose in ("stacks", "rate")}
    trials = [
        (measure_trial or of_trial)(trial, study.window)
        for trial in record.trials
        if trial.case.slug not in apart
    ]
    cases = tuple(
        CaseMeasures(plan, tuple(t for t in trials if t.source.case.slug == plan.slug))
        for plan in study.cases
        if plan.slug not in apart
    )
    cores = environment_of(record).cores
    groups = gather(before_collapse(cases))
    looks = [case for group in groups if group.purpose == "dense" for case in group.cases]
    curves = tuple(
        _with_shapes(curve_of(group, cores), group, looks, cases, record.trials)
        for group in groups
        if group.is_curve
    )
    sampled = {group.label: _sampled(group, study.cases, record.trials) for group in groups if group.is_curve}
    stacks = {label: _by_load(pairs) for label, pairs in sampled.items() if pairs}
    curves = tuple(
        _with_lost_crowd(_with_thread_places(curve, stacks.get(curve.label, ())), sampled[curve.label])
        for curve in curves
    )
    dense = tuple(
        step for group in groups if group.purpose == "dense" for step in curve_of(group, cores).steps
    )
    rows = accounting.rows(cases)
    gates = gates_of(cases, curves, rows, cores)
    counts = accounting.counts(cases)
    all_facts = Facts(cores, curves, gates, dense, counts=counts, unloaded=asked_calmly(groups))
    return Measured(cases, groups, curves, rows, all_facts, stacks)


def _sampled(group: CurveCases, plans: Sequence[PlannedCase], trials: Sequence[TrialSource]) -> list[Sampled]:
    """Return the trials that are there for their stacks under a curve's conditions, with the samples."""
    slugs = {plan.slug for plan in plans if plan.purpose == "stacks" and _is_under(plan, group)}
    return [(trial, _samples_of(trial)) for trial in trials if trial.case.slug in slugs and trial.result]


def _by_load(sampled: Sequence[Sampled]) -> tuple[StackSamples, ...]:
    return tuple(sorted((samples for _, samples in sampled), key=lambda each: each.load))


def _with_lost_crowd(curve: Curve, sampled: Sequence[Sampled]) -> Curve:
    """Return a curve with where threads wait since nothing succeeds, if they were sampled since."""
    lost = curve.lost
    if lost is None:
        return curve
    later = [
        samples
        for trial, samples in sampled
        if trial.began_unix_ns > lost.since_ns
        and trial.result is not None
        and trial.result.load is not None
        and trial.result.load.requests.ok == 0
    ]
    return replace(curve, lost=replace(lost, crowd=crowd_of(later[-1]))) if later else curve


def _samples_of(trial: TrialSource) -> StackSamples:
    """Return the samples of a trial that is there for its stacks."""
    assert trial.result is not None
    load = streams_of(trial.plan)[0]
    begin_s = trial.result.warmup_s
    return stacks.read(
        trial.readings(),
        load=load.load,
        is_closed=load.is_closed,
        begin_s=begin_s,
        end_s=begin_s + trial.result.measured_s,
    )


def _with_thread_places(curve: Curve, sampled: Sequence[StackSamples]) -> Curve:
    """Return a curve with what the stacks show at its highest level, if they were sampled at this load.

    What stands still without any load does not depend on it.
    """
    if sampled:
        curve = replace(curve, locked=locked_of(sampled[-1]), settings=sampled[-1].settings)
    if not (curve.is_closed and curve.steps and sampled and sampled[-1].load == curve.steps[-1].load):
        return curve
    top = curve.steps[-1]
    light = sampled[0] if sampled[0].load == 1 and len(sampled) > 1 else None
    places = (*top.places, *places_of(sampled[-1], light))
    loops, crowd = event_loops.loops_of(sampled[-1]), crowd_of(sampled[-1])
    top = replace(
        top,
        places=places,
        loops=loops,
        crowd=crowd,
        handshakes=handshakes_of(sampled[-1]),
        logging=logging_of(sampled[-1]),
    )
    return replace(curve, steps=(*curve.steps[:-1], top))


def _with_shapes(
    curve: Curve,
    group: CurveCases,
    looks: Sequence[CaseMeasures],
    everything: Sequence[CaseMeasures],
    run: Sequence[TrialSource],
) -> Curve:
    """Return a curve with the findings on its single requests and on growth; `looks` have dense probes."""
    outside = group.cases[0].plan.outside
    called = () if outside is None else [peer.name for peer in outside.peers]
    levels = [case for case in everything if _is_level(case, group)]
    return replace(
        curve,
        slow_paths=slow_paths.slow_paths(group.cases, looks),
        timer_piles=slow_paths.timer_piles(group.cases, looks),
        slow_bursts=slow_bursts(group.cases, looks),
        memory=growth.memory_growth(group.cases, everything, called),
        handles=growth.handle_growth(group.cases, everything, called),
        slowdowns=growth.slowdowns(group.cases, everything),
        failed=failed_at_once(levels),
        ended=ended_levels(levels, group.cases),
        lost=lost(levels, group.cases, run),
    )


def _is_level(case: CaseMeasures, group: CurveCases) -> bool:
    """True if a case with trials is a level of that curve, even if none of them is valid."""
    return bool(
        case.trials
        and (case.purpose, case.is_held_out) == (group.purpose, group.is_held_out)
        and _is_under(case.plan, group)
    )


def _is_under(plan: PlannedCase, group: CurveCases) -> bool:
    """True if a case differs from those of a curve in the level of load at most."""
    fixed = {factor: level for factor, level in plan.levels.items() if factor != group.load_factor}
    return plan.experiment == group.experiment and fixed == group.levels


def remembering() -> MeasureTrial:
    """Return a function like `of_trial` for a record that grows: it measures each trial once."""
    measured_once: dict[tuple[int, int], TrialMeasures] = {}

    def measure_once(trial: TrialSource, window: Window) -> TrialMeasures:
        key = trial.position, trial.began_unix_ns
        if key not in measured_once:
            measured_once[key] = of_trial(trial, window)
        return measured_once[key]

    return measure_once


def of_trial(trial: TrialSource, window: Window) -> TrialMeasures:
    """Measure a trial, its load from our engine or from another program."""
    is_driven = trial.result is not None and trial.result.driver is not None
    measures = external_trial.measure(trial, window) if is_driven else measure(trial, window)
    memory_release.give_back()
    return measures
