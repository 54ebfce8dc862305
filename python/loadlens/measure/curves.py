"""From cases to the load curves that rules see: levels of load under otherwise equal conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from loadlens.estimate import probes
from loadlens.estimate.interval import Insufficient, Interval
from loadlens.estimate.interval_counts import IntervalCounts, pooled
from loadlens.measure import figures, quality
from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of, inside
from loadlens.measure.requests import failures, shapes
from loadlens.measure.requests.answer_sizes import together
from loadlens.measure.requests.jams import jams
from loadlens.measure.requests.queue_seen import ahead_of
from loadlens.measure.requests.samples import Rows
from loadlens.measure.requests.stuck import stuck
from loadlens.measure.services import gauges, handler_times, label_splits, span_times, while_loaded
from loadlens.measure.services.cpu_per_request import cpu_time
from loadlens.measure.services.host_context import (
    balances_of,
    calls_of,
    collectors_of,
    kernel_of,
    memory_of,
    quotas_of,
    received_of,
    split_of_calls,
    storage_of,
)
from loadlens.measure.services.watched import (
    connections_of,
    generator_of,
    host_cpu,
    processes_of,
    refusals_of,
)
from loadlens.measure.source import factor_names
from loadlens.measure.trial import StreamMeasures, TrialMeasures
from loadlens.model.facts import Curve, FailureMode, ProbeWatch, RequestClass, Step, Times
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.shapes import AnswerSize
from loadlens.model.trial import TrialStatus
from loadlens.signals.read import log_lines


@dataclass(frozen=True, slots=True)
class CurveCases:
    """The cases of one curve, ascending by load."""

    label: str
    anchor: str
    experiment: str
    load_factor: str | None
    levels: Mapping[str, str]  # of the factors that stay the same
    cases: tuple[CaseMeasures, ...]

    @property
    def is_held_out(self) -> bool:
        """True if any of its cases was set aside."""
        return any(case.is_held_out for case in self.cases)

    @property
    def purpose(self) -> str:
        """Purpose of all of its cases."""
        return self.cases[0].purpose

    @property
    def is_curve(self) -> bool:
        """True if rules may read it as levels of load."""
        return not self.is_held_out and self.purpose == "load"


def gather(cases: Sequence[CaseMeasures]) -> tuple[CurveCases, ...]:
    """Group cases that differ in nothing but the level of load.

    Cases without figures are left out, those whose load changes while it is measured or follows a pace, and
    those with an unknown number of successes.
    """
    by_condition: dict[tuple[str, tuple[tuple[str, str], ...], bool, str], list[CaseMeasures]] = {}
    load_factors = {
        case.experiment: load_factor([c for c in cases if c.experiment == case.experiment]) for case in cases
    }
    several = len(load_factors) > 1
    for case in cases:
        if case.reference is None or not case.reference.plan.is_steady or not case.counts_successes:
            continue
        varied = load_factors[case.experiment]
        fixed = tuple((f, level) for f, level in case.levels.items() if f != varied)
        by_condition.setdefault((case.experiment, fixed, case.is_held_out, case.purpose), []).append(case)
    curves = []
    for (experiment, fixed, _, _), members in by_condition.items():
        levels = dict(fixed)
        words = ", ".join(f"{factor}={level}" for factor, level in levels.items())
        label = " ".join(part for part in (experiment if several else "", words) if part)
        ordered = sorted(members, key=lambda c: c.reference.plan.load if c.reference else 0.0)
        curves.append(
            CurveCases(
                label=label or experiment,
                anchor=f"chart-load-{experiment}",
                experiment=experiment,
                load_factor=load_factors[experiment],
                levels=levels,
                cases=tuple(ordered),
            )
        )
    return tuple(curves)


def before_collapse(cases: Sequence[CaseMeasures]) -> tuple[CaseMeasures, ...]:
    """Leave out trials of a service that broke down under another load and did not recover.

    Such a trial repeats a level that was served before, and is lost. It shows the state that the other
    load left behind, and nothing of the level. Only a search has such trials: studies reset their services.
    """
    if not any(case.purpose == "look" for case in cases):
        return tuple(cases)
    broke = [(t.source.began_unix_ns, case) for case in cases for t in case.trials if _is_lost(t)]

    def stands(trial: TrialMeasures, case: CaseMeasures) -> bool:
        began = trial.source.began_unix_ns
        served = [t.source.began_unix_ns for t in case.trials if not _is_lost(t)]
        last = max((at for at in served if at < began), default=None)
        is_after = last is not None and any(last < at < began for at, other in broke if other is not case)
        return not (is_after and _is_lost(trial))

    return tuple(CaseMeasures(case.plan, tuple(t for t in case.trials if stands(t, case))) for case in cases)


def _is_lost(trial: TrialMeasures) -> bool:
    """True if it was ended because of failures, or no more requests succeeded than failed."""
    if trial.load is None or not trial.is_usable:
        return trial.source.status is TrialStatus.ABORTED
    return float(trial.load.not_ok.sum()) >= float(trial.load.ok.sum())


def load_factor(cases: Sequence[CaseMeasures]) -> str | None:
    """The factor whose levels change how much is asked and nothing else of the load; none: there is none."""
    steady = [case for case in cases if case.reference is not None and case.reference.plan.is_steady]
    for factor in factor_names(case.levels for case in steady):
        groups: dict[tuple[object, ...], list[CaseMeasures]] = {}
        for case in steady:
            rest = tuple((f, level) for f, level in case.levels.items() if f != factor)
            groups.setdefault(rest, []).append(case)
        if any(_differ_in_load(group) for group in groups.values()):
            return factor
    return None


def _differ_in_load(group: Sequence[CaseMeasures]) -> bool:
    plans = [case.reference.plan for case in group if case.reference is not None]
    if len({plan.load for plan in plans}) < 2:
        return False
    return len({(plan.is_closed, tuple(step.request for step in plan.steps)) for plan in plans}) == 1


def curve_of(group: CurveCases, cores: int) -> Curve:
    """Return one curve as rules see it."""
    first = group.cases[0].reference
    assert first is not None  # `gather` leaves out cases without figures
    costliest, outside = _costliest(group), group.cases[0].plan.outside
    idle = {name: _probe_idle(group, name) for name in group.cases[0].probe_names}
    work, work_all = cpu_time(group.cases, costliest)
    steps = tuple(_step(case, idle, figures.point(work)) for case in group.cases)
    return Curve(
        label=group.label,
        anchor=group.anchor,
        is_closed=first.plan.is_closed,
        think_s=first.plan.think_s,
        steps=steps,
        work=work,
        work_all=work_all,
        costliest=costliest,
        cores_allotted=_cores_allotted(group.cases[0], cores),
        shares_cores=group.cases[0].usable[0].source.placement.shared,
        levels=tuple(group.levels.items()),
        ahead=next((ahead_of(group.cases, name, idle_s) for name, idle_s in idle.items()), None),
        is_here=outside is None or outside.is_here,
    )


def _cores_allotted(case: CaseMeasures, cores: int) -> float:
    """Of the CPU sets and the shares of all replicas; a part without a share of its own adds none.

    Where nothing was asked, what processes that ran already are confined to.
    """
    source = case.usable[0].source
    running = [process.service for process in source.services]
    allotted: set[int] = set()
    quota = 0.0
    for name, service in source.placement.services.items():
        allotted |= set(service.cpus or ())
        quota += (service.cpu or 0.0) * max(1, running.count(name))
    held = [replica.cpus for service in source.placement.services.values() for replica in service.held]
    if not allotted and all(held):  # as the kernel reported it of every replica
        allotted = {cpu for cpus in held for cpu in cpus or ()}
    return float(min(x for x in (len(allotted) or cores, quota or cores, cores)))


def _costliest(group: CurveCases) -> str:
    """Return the name of the step with the longest mean response time at the lightest load."""
    load = group.cases[0].reference
    assert load is not None
    means = {}
    for step in load.steps:
        mean = step.response_mean
        means[step.plan.name] = mean.point if isinstance(mean, Interval) else 0.0
    return max(means, key=lambda name: means[name])


def asked_calmly(groups: Sequence[CurveCases]) -> tuple[RequestClass, ...]:
    """Each kind of request as a first look found it: by one user, with pauses, before any load."""
    cases = [case for group in groups if group.purpose == "look" for case in group.cases]
    return tuple(
        _request_class(case, step.index)
        for case in cases
        if case.reference is not None
        for step in case.reference.plan.steps
    )


# --- one step ---------------------------------------------------------------------------------------------


def _step(case: CaseMeasures, idle: Mapping[str, float | None], work_s: float) -> Step:
    load = case.reference
    assert load is not None
    calls = calls_of(case)
    classes = tuple(_request_class(case, step.index) for step in load.plan.steps)
    stolen = [t.resources.steal for t in case.usable if t.resources.steal is not None]
    others = [t.resources.others for t in case.usable if t.resources.others is not None]
    return Step(
        label=case.name,
        load=load.plan.load,
        trials=len(case.usable),
        throughput=case.throughput,
        throughput_trials=tuple(x.rate_by_little for x in case.loads),
        completed_trials=tuple(float((x.ok + x.not_ok).sum()) / x.grid.seconds for x in case.loads),
        response=_times(case, None),
        classes=classes,
        issued=case.issued,
        failed=case.failed_share,
        failed_count=case.failed_count,
        failures=failure_modes(case),
        probes=tuple(_probe(case, name, idle.get(name), work_s) for name in case.probe_names),
        processes=processes_of(case),
        in_flight=case.in_flight,
        host_cpu=host_cpu(case),
        steal=max(stolen, default=None),
        other_cores=None if (most := quality.most_others(case)) is None else most.others,
        generator=generator_of(case),
        little=_little(case),
        steady=_steady(case),
        log_signs=log_lines.signs(
            failures.logs_of(trial.source for trial in case.usable if trial.failures), _failing_answers(case)
        ),
        driver="" if case.external is None else case.external.name,
        statuses=_statuses(case),
        stuck=stuck(case),
        jams=jams(case),
        timed_out=None if case.external is not None else sum(x.timed_out for x in case.loads),
        connections=connections_of(case),
        longest_gap_s=max((x.longest_gap_s for x in case.loads if x.longest_gap_s is not None), default=None),
        kernel=kernel_of(case),
        quotas=quotas_of(case),
        refusals=refusals_of(case),
        balances=balances_of(case),
        calls=calls,
        storage=storage_of(case),
        memory=memory_of(case),
        collectors=collectors_of(case),
        received=received_of(case),
        quality=quality.of(case),
        standstills=shapes.standstills(case),
        spared=shapes.spared(case),
        spacing=shapes.spacing(case),
        let_through=shapes.let_through(case),
        places=gauges.places_of(case),
        numbers=gauges.numbers_of(case),
        answer_bytes=_answer_bytes(case),
        steal_mean=float(np.mean(stolen)) if stolen else None,
        others_mean=float(np.mean(others)) if others else None,
        splits=(
            *label_splits.splits_of(case),
            *span_times.splits_of(case),
            *split_of_calls(case, calls),
            *label_splits.split_of_load(classes),
        ),
        look_ups=label_splits.look_ups_of(case),
        spans=span_times.requests_of(case),
        ended_processes=while_loaded.ended_processes(while_loaded.seen_in(case.usable)),
    )


def _answer_bytes(case: CaseMeasures) -> float | None:
    """Return the size of a mean answer of the load; none where bytes were not counted."""
    results = [load.result if load.external is None else load.external.load for load in case.loads]
    counted = [each for each in results if each is not None and each.bytes.in_wire]
    return max(((each.bytes.in_wire or 0) / max(1, each.requests.answered) for each in counted), default=None)


def _statuses(case: CaseMeasures) -> tuple[tuple[int, int], ...]:
    """Answers of the load by status, ascending."""
    by_status: dict[int, int] = {}
    for load in case.loads:
        for status, count in load.statuses.items():
            by_status[int(status)] = by_status.get(int(status), 0) + count
    return tuple(sorted(by_status.items()))


def _times(case: CaseMeasures, step: int | None, kind: str = "response") -> Times:
    return Times(case.mean(step, kind), case.quantile(0.5, step, kind), case.quantile(0.99, step, kind))


def _request_class(case: CaseMeasures, step: int) -> RequestClass:
    load = case.reference
    assert load is not None
    plan = load.plan.steps[step]
    return RequestClass(
        label=plan.name,
        request=plan.request,
        rate=case.step_rate(step),
        response=_times(case, step),
        service=_times(case, step, "service"),
        inside=_inside(case, plan.path),
        transfer=figure_of(case, "last_byte.mean", plan.name),
        answers=_answers(case, step, plan.name),
        is_varied=plan.is_varied,
    )


def _answers(case: CaseMeasures, step: int, name: str) -> tuple[AnswerSize, ...]:
    """Return the sizes of the successes of a step; none unless each request of all trials is known."""
    rows = [trial.rows for trial in case.usable if isinstance(trial.rows, Rows)]
    if len(rows) < len(case.usable):
        return ()
    kept = [
        answer
        for load in case.loads
        for answer in (() if load.result is None else load.result.usual_answers)
        if answer.step == name
    ]
    return together([each.steps[step].sizes for each in rows], kept)


def _inside(case: CaseMeasures, path: str) -> Figure:
    """From what the server wrote down of each request, or else from what it counted."""
    written = inside(case, path)
    if not isinstance(written, NotMeasured):
        return written
    return handler_times.mean_time(case, path) or span_times.mean_time(case, path) or written


def _failing_answers(case: CaseMeasures) -> Iterator[tuple[str, int]]:
    for load in case.loads:
        counts = {int(status): count for status, count in load.statuses.items()}
        yield from failures.texts_of(() if load.result is None else load.result.failing_answers, counts)


def _little(case: CaseMeasures) -> Literal["holds", "broken", "unknown"]:
    verdicts = ["unknown" if load.result is None else load.result.little.verdict for load in case.loads]
    if verdicts.count("broken") * 2 >= len(verdicts) and "broken" in verdicts:
        return "broken"
    return "holds" if "holds" in verdicts else "unknown"


def _steady(
    case: CaseMeasures,
) -> Literal["flat", "warmup", "slowdown", "no_steady", "cyclic", "unknown"]:
    kinds = [t.steady.kind for t in case.usable if not isinstance(t.steady, Insufficient)]
    if not kinds:
        return "unknown"
    worst_first: tuple[Literal["no_steady", "slowdown", "warmup", "cyclic"], ...] = (
        "no_steady",
        "slowdown",
        "warmup",
        "cyclic",
    )
    for kind in worst_first:
        if kinds.count(kind) * 2 > len(kinds):
            return kind
    return "flat"


# --- probes -----------------------------------------------------------------------------------------------


def _probe_idle(group: CurveCases, name: str) -> float | None:
    """The probe's time on an idle service, from the step where it waited least."""
    times = []
    for case in group.cases:
        counts = [stream.all_steps().response for stream in case.probe_streams(name)]
        if counts:
            idle = probes.idle_time(pooled(counts))
            if not isinstance(idle, Insufficient):
                times.append(idle)
    return min(times, default=None)


def _probe(case: CaseMeasures, name: str, idle_s: float | None, work_s: float) -> ProbeWatch:
    streams = case.probe_streams(name)
    plan = streams[0].plan
    counts = [stream.all_steps().response for stream in streams]
    return ProbeWatch(
        label=name,
        request=plan.steps[0].request,
        response=Times(
            case.probe_mean(name), case.probe_quantile(name, 0.5), case.probe_quantile(name, 0.99)
        ),
        idle_s=idle_s,
        delayed=_delayed(case, counts, idle_s, work_s),
        count=sum(part.observed for part in counts),
        fresh_connections=plan.connection == "new",
        is_late=any(_is_late(stream) for stream in streams),
        spared=shapes.spared_probes(case),
    )


def _delayed(
    case: CaseMeasures, counts: Sequence[IntervalCounts], idle_s: float | None, work_s: float
) -> Figure:
    if idle_s is None:
        return Undecided("probe.delayed", "share", "its time on an idle service is not known")
    return case.share_figure("probe.delayed", [probes.held_up(part, idle_s, work_s) for part in counts])


def _is_late(stream: StreamMeasures) -> bool:
    """A probe that was sent later than a tenth of what it measures."""
    lag = None if stream.result is None else stream.result.lag_s.p99.value
    if lag is None:
        return False
    mean = stream.all_steps().response_mean
    typical = mean.point if isinstance(mean, Interval) else 0.0
    return lag > max(0.001, 0.1 * typical)


# --- failures ---------------------------------------------------------------------------------------------


def failure_modes(case: CaseMeasures) -> tuple[FailureMode, ...]:
    """The ways in which requests of the load failed, most frequent first."""
    load = case.reference
    assert load is not None
    own = (each for trial in case.usable for each in trial.failures if each.stream == load.plan.name)
    modes = (
        failures.mode_of(alike, _success_s(case, load, step))
        for (step, _, _), alike in failures.by_way(own).items()
    )
    return tuple(sorted(modes, key=lambda mode: -mode.count))


def _success_s(case: CaseMeasures, load: StreamMeasures, step: str) -> float | None:
    index = next(s.index for s in load.plan.steps if s.name == step)
    success = case.quantile(0.5, index)
    return success.point if isinstance(success, Estimate) else None
