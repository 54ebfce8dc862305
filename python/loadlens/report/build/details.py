"""One case in detail: its plan in words, every trial, failures, and the charts of one trial."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from loadlens.estimate import within_trial
from loadlens.estimate.interval import Interval
from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.case import CaseMeasures, quantile_name
from loadlens.measure.curves import failure_modes
from loadlens.measure.figures import exact, figure
from loadlens.measure.metrics import inside
from loadlens.measure.services import proxy_counts
from loadlens.measure.services.watched import own_cores, server_cores
from loadlens.measure.source import StreamPlan
from loadlens.measure.trial import StreamMeasures, TrialMeasures
from loadlens.model.facts import FailureMode
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.readings import ProcMetrics
from loadlens.model.report import CaseDetail, Chart, Column, Table, TrialRow
from loadlens.model.result import Generator
from loadlens.model.trial import Outcome
from loadlens.present import numbers, words
from loadlens.present.numbers import percent
from loadlens.report.build import insides, node_table, query_tables, span_table, tables
from loadlens.report.build.brief import Brief
from loadlens.report.build.percentiles import highest_known
from loadlens.signals.read import log_lines
from loadlens.signals.read.trial_series import Series

MS = 1000.0
LEVELS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
MOST_COLUMNS = 120  # of a heat map
BINS_A_DECADE = 8
MOST_PROCESSES = 6
MIB = 1024.0**2
Row = dict[str, object]


def detail(case: CaseMeasures, cores: float, brief: Brief, *, is_open: bool) -> CaseDetail:
    """Everything about one case."""
    p = _highest(case)
    columns = _columns(case, p)
    return CaseDetail(
        slug=case.slug,
        name=case.name,
        plan=plan_in_words(case),
        trial_columns=columns,
        trials=tuple(_trial_row(case, trial, columns, p) for trial in case.trials),
        failures=_failures(case),
        charts=_charts(case, cores, brief),
        queries=query_tables.table(case, brief),
        log_tail=_log_tail(case),
        open=is_open,
        phases=tables.phases(case),
        checks=tables.checks(case),
        groups=tables.groups(case),
        reasons=tables.failures(case),
        inside=insides.table(case),
        backends=insides.backends(case),
        spans=span_table.table(case),
        proxies=proxy_counts.table(case),
        nodes=node_table.table(case),
    )


def _columns(case: CaseMeasures, p: float | None) -> tuple[Column, ...]:
    """Return the columns of trials; another program has service times only, and no lateness."""
    driven = case.plan.driver is not None
    time = "service time, " if driven else ""
    return (
        Column("requests/s", "1/s"),
        Column(f"{time}mean", "s"),
        *([] if p is None else [Column(f"{time}{quantile_name(p)}", "s")]),
        Column("failed", "share"),
        Column("server CPU", "cores"),
        Column("its own CPU", "cores") if driven else Column("generator late, p99", "s"),
    )


def _highest(case: CaseMeasures) -> float | None:
    """Return the highest percentile that the trials know each by itself."""
    return highest_known(
        [partial(_trial_quantile, case, trial) for trial in case.trials if trial.load is not None]
    )


def plan_in_words(case: CaseMeasures) -> str:
    """The load, its probes and how long it lasts, in one line."""
    load = case.reference
    if load is None:
        return f"{case.name}: {case.why_nothing()}"
    parts = [", ".join(step.request for step in load.plan.steps), _load_words(load.plan)]
    for trial in case.usable[:1]:
        result = trial.source.result
        measured_s, warmup_s = (
            (load.grid.seconds, 0.0) if result is None else (result.measured_s, result.warmup_s)
        )
        parts.append(f"{numbers.duration(measured_s)} measured after {numbers.duration(warmup_s)} of warm-up")
        parts += [
            f"probe {p.plan.name}: {p.plan.steps[0].request} at {p.plan.load:g}/s" for p in trial.probes
        ]
    if case.external is not None:
        parts.append(f"made by {words.plain(case.external.title)}, by its own report")
    parts.append(f"{len(case.usable)} of {words.plural(len(case.trials), 'trial')} used")
    parts += _ceiling_words([trial.generator for trial in case.usable if trial.generator is not None])
    return " · ".join(parts)


def _ceiling_words(generators: Sequence[Generator]) -> list[str]:
    """Return the share of the generator's ceiling that the busiest trial reached with this load."""
    shares = [
        (each.requests_per_s / each.ceiling_rps, each.ceiling_rps)
        for each in generators
        if each.requests_per_s is not None and each.ceiling_rps
    ]
    if not shares:
        return []
    share, ceiling = max(shares)
    most = numbers.with_unit(ceiling, "1/s")
    return [f"generator at {100 * share:.0f} % of its ceiling with this load, about {most}"]


def _load_words(plan: StreamPlan) -> str:
    if not plan.is_closed:
        return f"open loop, {plan.shape or f'{plan.load:g} requests/s'}"
    think = f", {numbers.with_unit(plan.think_s, 's')} of thinking" if plan.think_s else ""
    connection = {"keep": "kept connections", "new": "a new connection each"}.get(plan.connection, "")
    users = plan.shape or words.plural(int(plan.load), "user")
    pace = ", each at a pace" if plan.is_paced else ""
    return f"closed loop, {users}{pace}{think}, {connection or plan.connection}"


# --- trials -----------------------------------------------------------------------------------------------


def _trial_row(
    case: CaseMeasures, trial: TrialMeasures, columns: Sequence[Column], p: float | None
) -> TrialRow:
    note = "; ".join((*trial.reasons, *trial.source.notes, *trial.source.leaks))
    return TrialRow(
        name=trial.source.name,
        status=str(trial.source.status),
        position=trial.source.position,
        note=note,
        figures=_trial_figures(case, trial, columns, p),
    )


def _trial_figures(
    case: CaseMeasures, trial: TrialMeasures, columns: Sequence[Column], p: float | None
) -> tuple[Figure, ...]:
    """Return the figures of one trial as those of a case that has it alone."""
    load = trial.load
    if load is None:
        reason = trial.reasons[0] if trial.reasons else "it never ran"
        return tuple(NotMeasured(column.title, reason) for column in columns)
    cpu = server_cores(trial)
    watched = NotMeasured("cpu", "not watched") if cpu is None else figure("cpu", "cores", cpu, 1, 0)
    quantiles = [] if p is None else [_trial_quantile(case, trial, p)]
    if trial.external is not None:
        alone = CaseMeasures(case.plan, (trial,))
        own = _own_cpu(trial, trial.external.name)
        mean = alone.mean(kind="service")
        return (alone.throughput, mean, *quantiles, alone.failed_share, watched, own)
    steps = load.all_steps()
    samples = int(steps.ok.sum())
    return (
        figure("throughput", "1/s", load.throughput, 1, samples),
        figure("response_time.mean", "s", steps.response_mean, 1, samples),
        *quantiles,
        figure("failed.share", "share", load.failed_share, 1, samples),
        watched,
        _lag(trial),
    )


def _trial_quantile(case: CaseMeasures, trial: TrialMeasures, p: float) -> Figure:
    assert trial.load is not None
    if trial.external is not None:
        return CaseMeasures(case.plan, (trial,)).quantile(p, kind="service")
    steps = trial.load.all_steps()
    quantile = within_trial.quantile(steps.response, p)
    return figure(f"response_time.{quantile_name(p)}", "s", quantile, 1, int(steps.ok.sum()))


def _lag(trial: TrialMeasures) -> Figure:
    lag = None if trial.generator is None else trial.generator.lag_p99_s
    if lag is None:
        return NotMeasured("lag", "not recorded")
    return Estimate("lag.p99", "s", float(lag), None, None, 1, 0, "of the generator")


def _own_cpu(trial: TrialMeasures, program: str) -> Figure:
    own = own_cores(trial)
    if own is None:
        return NotMeasured("cpu", f"the CPU of {program} was not read")
    return Estimate("cpu", "cores", own, None, None, 1, 0, "CPU time over the life of the program")


# --- failures ---------------------------------------------------------------------------------------------


def _failures(case: CaseMeasures) -> Table | None:
    if case.reference is None:
        return None
    modes = failure_modes(case)
    if not modes:
        return None
    rows = []
    for mode in modes:
        outcome = words.OUTCOMES.get(Outcome[mode.outcome.upper()], mode.outcome)
        share = _share_of_issued(mode, case.issued)
        rows.append(
            (
                mode.label,
                outcome,
                str(mode.status) if mode.status else "no answer",
                failures_counted(mode),
                share,
                _exact_time(mode.median_s, mode.count),
                f"{percent(mode.pile)}" if mode.pile is not None else "not known",
            )
        )
    columns = (
        Column("step", align="left"),
        Column("outcome", align="left"),
        Column("status", align="left"),
        Column("count", "requests"),
        Column("share of issued", "share"),
        Column("median time", "s"),
        Column("within 10 % of it"),
    )
    return Table(columns, tuple(rows), "measured part of the valid trials")


def failures_counted(mode: FailureMode) -> int | Figure:
    """The number, or an estimate where not every request has a row."""
    return mode.count if mode.rows is None else _from_rows("failed.count", "requests", mode.count, mode.rows)


def _share_of_issued(mode: FailureMode, issued: int | None) -> Figure:
    if issued is None:
        return NotMeasured("failed.share", "how many were issued is not known")
    if not issued:
        return NotMeasured("failed.share", "nothing was issued")
    share = mode.count / issued
    if mode.rows is None:
        return exact("failed.share", "share", share, issued)
    return _from_rows("failed.share", "share", share, mode.rows)


def _from_rows(metric: str, unit: str, value: float, rows: int) -> Figure:
    """Estimate a number of requests or a share from the rows that were kept, each with the same chance."""
    counted = within_trial.rate(np.array([float(rows)]), np.ones(1))
    assert isinstance(counted, Interval)  # a count always has one
    of_row = value / rows
    low, high = (None if end is None else end * of_row for end in (counted.low, counted.high))
    return Estimate(metric, unit, value, low, high, 1, rows, "Poisson count of the rows that were kept")


def _exact_time(seconds: float | None, count: int) -> Figure:
    if seconds is None:
        return NotMeasured("failed_time.p50", "the sample log was thinned")
    return Estimate("failed_time.p50", "s", seconds, seconds, seconds, 1, count, "exact median")


def _log_tail(case: CaseMeasures) -> str:
    """The last log lines of a trial that failed or had failures."""
    for trial in case.trials:
        if trial.is_usable and not trial.failures:
            continue
        names = dict.fromkeys(process.service for process in trial.source.services)
        text = "\n".join(log_lines.tail(trial.source.log(name)) for name in names).strip()
        if text:
            return text
    return ""


# --- charts -----------------------------------------------------------------------------------------------


def _charts(case: CaseMeasures, cores: float, brief: Brief) -> tuple[Chart, ...]:
    if case.reference is None:
        return ()
    trial = case.usable[0]
    charts = [
        quantile_chart(case),
        heat_chart(case, trial, cores),
        resource_chart(case, trial),
        insides.chart(case),
        query_tables.chart(case, brief),
    ]
    return tuple(chart for chart in charts if chart is not None)


def quantile_chart(case: CaseMeasures) -> Chart | None:
    """Response and service time at the quantiles that the evidence supports."""
    rows: list[Row] = []
    estimates: list[tuple[float, Estimate]] = []  # share and time of the kind that the headline is about
    shown = "response" if case.external is None else "service"  # other programs know no due times
    for kind in ("response", "service"):
        if kind != shown and not _differ(case):
            continue
        for p in LEVELS:
            figure = case.quantile(p, kind=kind)
            if isinstance(figure, Estimate):
                rows.append({"metric": kind, "nines": 1 / (1 - p), "ms": figure.point * MS, **band(figure)})
                estimates += [(p, figure)] if kind == shown else []
    if len(estimates) < 2:
        return None
    highest, longest = estimates[-1]
    last = 1 / (1 - highest)
    median = next((figure for p, figure in estimates if p == 0.5), estimates[0][1])
    handler = _handler_words(case)
    return Chart(
        kind="quantiles",
        anchor=f"chart-quantiles-{case.slug}",
        headline=f"Half within {numbers.with_unit(median.point, 's')}, "
        f"{100 * (1 - 1 / last):g} % within {numbers.with_unit(longest.point, 's')}",
        datasets={"curve": tuple(rows), "cut": ({"nines": last, "label": "beyond: too few requests"},)},
        options={"trials": len(case.usable), "time_label": "time" if shown == "response" else "service time"},
        caption="; ".join(part for part in (_caption(case), handler) if part),
        entities={"response": 1, "service": 2},
    )


def band(figure: Estimate) -> Row:
    """The ends of an interval in milliseconds; none: open. A figure without any interval has no band."""
    if figure.low is None and figure.high is None:
        return {"lo": figure.point * MS, "hi": figure.point * MS}
    return {
        "lo": None if figure.low is None else figure.low * MS,
        "hi": None if figure.high is None else figure.high * MS,
    }


def _differ(case: CaseMeasures) -> bool:
    """Return true if waiting in the generator makes response and service time differ by more than 1 %."""
    response, service = case.mean(), case.mean(kind="service")
    if not isinstance(response, Estimate) or not isinstance(service, Estimate):
        return False
    return response.point > 1.01 * service.point


def _handler_words(case: CaseMeasures) -> str:
    load = case.reference
    assert load is not None
    parts = []
    for step in load.plan.steps:
        handler = inside(case, step.path)
        if isinstance(handler, Estimate):
            parts.append(f"{step.name} {numbers.show(handler).with_interval}")
    return f"mean as the server measured it: {', '.join(parts)}" if parts else ""


def heat_chart(case: CaseMeasures, trial: TrialMeasures, cores: float) -> Chart | None:
    """Response times over the time of one trial, with the CPU of the services beneath."""
    load = trial.load
    if load is None or trial.grid is None:
        return None
    kind = "Response" if trial.external is None else "Service"
    counts = load.all_steps().response if trial.external is None else load.all_steps().service
    if counts.observed == 0:
        return None
    width = max(1.0, math.ceil(trial.grid.seconds / MOST_COLUMNS))
    cells = _heat_cells(load, counts, width)
    cpu = _cpu_columns(trial, width, cores)
    fastest, slowest = min(cell.lo for cell in cells), max(cell.hi for cell in cells)
    return Chart(
        kind="heat",
        anchor=f"chart-heat-{case.slug}",
        headline=f"{kind} times lie between {numbers.with_unit(fastest / MS, 's')} and "
        f"{numbers.with_unit(slowest / MS, 's')}" + _cpu_words(trial, cores),
        datasets={
            "cells": tuple(map(asdict, cells)),
            **({"cpu": tuple(cpu)} if cpu else {}),
            **insides.warm_up(trial),
        },
        options={"trials": 1, "cores": cores, "time_label": f"{kind.lower()} time"},
        caption=f"{trial.source.name}, {counts.observed:,} successes by when they ended",
    )


def _cpu_words(trial: TrialMeasures, cores: float) -> str:
    cpu = server_cores(trial)
    return "" if cpu is None else f"; the service uses {cpu.point:.2f} of {cores:g} cores"


@dataclass(frozen=True, slots=True)
class _Cell:
    """Requests that ended between two times of a trial, seconds, and took between two times, ms."""

    t: float
    t2: float
    lo: float
    hi: float
    n: int


def _heat_cells(load: StreamMeasures, counts: IntervalCounts, width: float) -> list[_Cell]:
    begin = float(load.grid.starts_s[0])
    columns = np.floor((load.grid.starts_s - begin) / width).astype(np.int64)
    upper = np.maximum(counts.buckets.upper * MS, 1e-6)
    rows = np.floor(np.log10(upper) * BINS_A_DECADE).astype(np.int64)
    lowest = int(rows.min())
    of_intervals = counts.by_group(rows - lowest)
    totals = np.zeros((int(columns.max()) + 1, of_intervals.shape[1]))
    np.add.at(totals, columns, of_intervals)
    return [
        _Cell(
            t=begin + float(c) * width,
            t2=begin + (float(c) + 1) * width,
            lo=float(10 ** (r / BINS_A_DECADE)),
            hi=float(10 ** ((r + 1) / BINS_A_DECADE)),
            n=int(n),
        )
        for c, of_column in enumerate(totals)
        for r, n in enumerate(of_column, start=lowest)
        if n
    ]


def _cpu_columns(trial: TrialMeasures, width: float, cores: float) -> list[Row]:
    """CPU of all processes of the services in each column, percent of the cores allotted."""
    assert trial.grid is not None
    series = [cpu for p in trial.resources.services if (cpu := p.cpu_s) is not None]
    if not series or cores <= 0:
        return []
    begin = float(trial.grid.starts_s[0])
    columns = math.ceil(trial.grid.seconds / width)
    edges = begin + width * np.arange(columns + 1)
    used = np.zeros(columns)
    for process in series:
        used += np.diff(np.interp(edges, process.seconds, process.values))
    return [
        {"t": float(t), "t2": float(t) + width, "cpu": float(min(100.0, 100 * u / width / cores))}
        for t, u in zip(edges[:-1], used, strict=True)
    ]


def resource_chart(case: CaseMeasures, trial: TrialMeasures) -> Chart | None:
    """CPU, memory, threads and disk writes of each process over the trial."""
    ranked = sorted(
        trial.resources.services, key=lambda p: -(p.cpu.point if isinstance(p.cpu, Interval) else 0.0)
    )[:MOST_PROCESSES]
    readings: list[Row] = []
    resources: dict[str, None] = {}
    for process in ranked:
        for resource, own in (
            ("CPU, cores", _rates(process.cpu_s, 1.0)),
            ("memory, MiB", _levels(process.series.get(ProcMetrics.rss_bytes), MIB)),
            ("threads", _levels(process.series.get(ProcMetrics.threads), 1.0)),
            ("disk writes, MiB/s", _rates(process.series.get(ProcMetrics.write_bytes), MIB)),
        ):
            readings += [
                {"t": t, "resource": resource, "process": process.label, "value": value} for t, value in own
            ]
            resources |= dict.fromkeys([resource] if own else ())
    if not readings:
        return None
    busiest = ranked[0]
    used = f"{busiest.cpu.point:.2f} cores" if isinstance(busiest.cpu, Interval) else "CPU not read"
    memory = busiest.highest(ProcMetrics.rss_bytes)
    return Chart(
        kind="resources",
        anchor=f"chart-resources-{case.slug}",
        headline=f"{busiest.label} uses {used}"
        + ("" if memory is None else f" and {numbers.with_unit(memory, 'bytes')} of memory"),
        datasets={"readings": tuple(readings)},
        options={"trials": 1, "resources": list(resources)},
        caption=f"{trial.source.name}, {words.plural(len(ranked), 'process', 'processes')} of the services",
        entities={process.label: slot for slot, process in enumerate(ranked, start=1)},
    )


def _rates(counter: Series | None, unit: float) -> list[tuple[float, float]]:
    """Return time and increase per second of a counter, from the begin of the load."""
    if counter is None or counter.seconds.size < 2:
        return []
    seconds = counter.seconds
    rates = np.diff(counter.values) / np.diff(seconds) / unit
    return [(float(t), float(v)) for t, v in zip(seconds[1:], rates, strict=True) if t >= 0]


def _levels(gauge: Series | None, unit: float) -> list[tuple[float, float]]:
    """Return time and value of a gauge, from the begin of the load."""
    if gauge is None:
        return []
    return [(float(t), float(v) / unit) for t, v in zip(gauge.seconds, gauge.values, strict=True) if t >= 0]


def _caption(case: CaseMeasures) -> str:
    if len(case.usable) == 1:
        return "1 trial, 95 % intervals within it"
    return f"{len(case.usable)} trials, 95 % intervals over trials"
