"""Tables: the parts of a request, what the checks said, why requests failed, and how all was set up.

The parts are of the measured part of each trial; checks and reasons are what the engine counted in whole
trials, warm-up included, and the tables say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

from loadlens.estimate.interval_counts import IntervalCounts
from loadlens.measure.case import CaseMeasures, quantile_name
from loadlens.measure.trial import CONNECT, FIRST_BYTE, OF_CONNECTIONS, STEP_PHASES, TrialMeasures
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.recorded import Bounds, PlacedService
from loadlens.model.report import Column, Table
from loadlens.model.result import CheckResult, GroupRuns
from loadlens.present import failure_text, numbers, words
from loadlens.report.build.percentiles import highest_known
from loadlens.units import duration_text

LEVELS = (0.5, 0.99)
NAME_LENGTH = 60
GROUP_NOTE = (
    "from when the first request of a run was due to its last answer, pauses between its requests included; "
    "times of completed runs of the measured part, runs of whole trials; it fails when a request of it does"
)
LOOKUP = "resolve"
ALL_STEPS = "all"
CASES_LENGTH = 80
NO_LIMIT = "no limit"
BOUNDS = ("cpus", "cpu", "memory_bytes")
ROUNDED = 0.01
Row = tuple[str | int | float | Figure | None, ...]

# --- parts of a request -----------------------------------------------------------------------------------


def phases(case: CaseMeasures) -> Table | None:
    """Columns for what connecting, TLS, first and last byte took, a row for all steps and one for each."""
    if not case.loads:
        return None
    kinds = [kind for kind in OF_CONNECTIONS if any(load.phases[kind].observed for load in case.loads)]
    if not kinds and not any(load.phases[FIRST_BYTE].observed for load in case.loads):
        return None
    levels = _levels(case)
    looked_up = _looked_up(case)
    columns = [
        Column("step", align="left"),
        *([Column(words.PHASES[LOOKUP], "s")] if looked_up is not None else []),
        *(
            Column(f"{words.PHASES[kind]} {quantile_name(p)}", "s")
            for kind in (*kinds, *STEP_PHASES)
            for p in levels
        ),
        *([Column("connections")] if kinds else []),
        Column("successes"),
    ]
    whole: Row = (
        ALL_STEPS,
        *([looked_up] if looked_up is not None else []),
        *_quantiles(
            case,
            [(kind, [load.phases[kind] for load in case.loads]) for kind in (*kinds, *STEP_PHASES)],
            levels,
        ),
        *([sum(load.phases[CONNECT].observed for load in case.loads)] if kinds else []),
        sum(load.phases[FIRST_BYTE].observed for load in case.loads),
    )
    apart = (looked_up is not None) + len(levels) * len(kinds)
    by_step = _by_step(case, apart, levels, has_connections=bool(kinds))
    return Table(tuple(columns), (whole, *by_step), _note(kinds))


def _levels(case: CaseMeasures) -> tuple[float, ...]:
    """Return the median, and the highest percentile that the first bytes of all steps know."""
    first_bytes = [part for load in case.loads if (part := load.phases[FIRST_BYTE]).observed]
    highest = (
        highest_known([partial(case.quantile_figure, "first_byte", first_bytes)]) if first_bytes else None
    )
    return tuple(dict.fromkeys((0.5, highest or 0.5)))


def _note(kinds: Sequence[str]) -> str:
    """Explain the columns: the start of each time, and why those of connections may be missing."""
    ends = "first byte from when the request could leave, last byte from the first; of successes"
    if kinds:
        return f"connect and TLS of each new connection of the measured part, {ends}"
    return f"{ends}; no connection was made in the measured part"


def _looked_up(case: CaseMeasures) -> Figure | None:
    """Looking up the name, which each trial does once; an address needs none."""
    phases = [load.result.phases_s for load in case.loads if load.result is not None]
    took = [each.resolve for each in phases if each.resolve is not None]
    if not took:
        return None
    middle = median(took)
    return Estimate(LOOKUP, "s", middle, middle, middle, len(took), len(took), "exact: once a trial")


def _by_step(
    case: CaseMeasures, apart: int, levels: Sequence[float], *, has_connections: bool
) -> Iterator[Row]:
    """First and last bytes of each step, where there are several; `apart`: columns that know no steps."""
    steps = case.loads[0].steps
    for place, step in enumerate(steps if len(steps) > 1 else ()):
        parts = [(kind, [load.steps[place].phases[kind] for load in case.loads]) for kind in STEP_PHASES]
        successes = sum(part.observed for part in parts[0][1])
        connections = ("not by step",) if has_connections else ()
        yield (
            step.plan.name,
            *["not by step"] * apart,
            *_quantiles(case, parts, levels),
            *connections,
            successes,
        )


def _quantiles(
    case: CaseMeasures, parts: Sequence[tuple[str, Sequence[IntervalCounts]]], levels: Sequence[float]
) -> Iterator[Figure]:
    for kind, counts in parts:
        seen = [part for part in counts if part.observed]
        for p in levels:
            metric = f"{kind}.{quantile_name(p)}"
            if seen:
                yield case.quantile_figure(metric, seen, p)
            else:
                yield NotMeasured(metric, "nothing succeeded" if kind in STEP_PHASES else "none was made")


# --- groups -----------------------------------------------------------------------------------------------


def groups(case: CaseMeasures) -> Table | None:
    """Return times and outcomes of the runs of the load's groups; none without groups."""
    runs: dict[tuple[str, str], list[GroupRuns]] = {}
    for load in case.loads:
        for group in () if load.result is None else load.result.groups:
            runs.setdefault((group.scenario, group.name), []).append(group.runs)
    if not runs:
        return None
    several = len({scenario for scenario, _ in runs}) > 1
    columns = (
        Column("group", align="left"),
        *(Column(f"response {quantile_name(p)}", "s") for p in LEVELS),
        *(Column(title, "runs") for title in ("completed", "failed", "unfinished")),
    )
    rows = tuple(
        (
            f"{scenario}: {name}" if several else name,
            *(_run_figure(case, name, p) for p in LEVELS),
            sum(trial.completed for trial in by_trial),
            sum(trial.failed for trial in by_trial),
            sum(trial.unfinished for trial in by_trial),
        )
        for (scenario, name), by_trial in runs.items()
    )
    return Table(columns, rows, GROUP_NOTE)


def _run_figure(case: CaseMeasures, name: str, p: float) -> Figure:
    metric = f"group.{quantile_name(p)}"
    seen = [load.groups[name] for load in case.loads if name in load.groups and load.groups[name].observed]
    return case.quantile_figure(metric, seen, p) if seen else NotMeasured(metric, "no run was completed")


# --- checks -----------------------------------------------------------------------------------------------


def checks(case: CaseMeasures) -> Table | None:
    """Count the answers that passed and failed each check; none without checks."""
    trials = _shown(case)
    by_check: dict[tuple[str, str], list[tuple[TrialMeasures, CheckResult]]] = {}
    for trial in trials:
        for stream in () if trial.source.result is None else trial.source.result.streams:
            for step in stream.steps:
                of = step.name if stream.role == "load" else f"probe {step.name}"
                for check in step.checks:
                    by_check.setdefault((of, check.name), []).append((trial, check))
    if not by_check:
        return None
    several = len(trials) > 1
    rows = [_check_row(step, name, results, several=several) for (step, name), results in by_check.items()]
    columns = (
        Column("step", align="left"),
        Column("check", align="left"),
        Column("passed"),
        Column("failed"),
        Column("share failed", "share"),
        Column("not judged"),
        Column("first that failed", align="left"),
    )
    return Table(
        columns, tuple(rows), "whole trials, warm-up included; not judged: the status was not expected"
    )


def _check_row(
    step: str, name: str, results: Sequence[tuple[TrialMeasures, CheckResult]], *, several: bool
) -> Row:
    passed, failed = sum(check.passed for _, check in results), sum(check.failed for _, check in results)
    apart = sum(check.not_judged for _, check in results)
    share: Figure = NotMeasured("check.failed", "no answer was judged")
    if judged := passed + failed:
        point = failed / judged
        share = Estimate("check.failed", "share", point, point, point, len(results), judged, "exact count")
    first = next(
        (
            f"{trial.source.name}: {check.samples[0]}" if several else check.samples[0]
            for trial, check in results
            if check.samples
        ),
        "none",
    )
    return (step, words.cut(name, NAME_LENGTH), passed, failed, share, apart, first)


# --- why requests failed ----------------------------------------------------------------------------------


def failures(case: CaseMeasures) -> Table | None:
    """Return why requests got no whole answer where the class does not show it; none if nothing failed."""
    rows: list[Row] = []
    by_class: dict[str, list[str]] = {}
    for trial in _shown(case):
        for stream in () if trial.source.result is None else trial.source.result.all_loads:
            for kind, error in stream.errors.items():
                by_class.setdefault(kind, []).extend(error.samples)
    for kind, samples in by_class.items():
        for reason in failure_text.reasons(kind, samples):
            like = sum(failure_text.why(sample) == reason.seen for sample in samples)
            share = "all" if like == len(samples) else f"{like} of {len(samples)}"
            first = next(sample for sample in samples if failure_text.why(sample) == reason.seen)
            rows.append(
                (words.outcome(kind), reason.words, share, first.partition(": ")[0], reason.for_study)
            )
    if not rows:
        return None
    columns = tuple(
        Column(title, align="left") for title in ("outcome", "why", "of the samples", "first seen", "try")
    )
    return Table(columns, tuple(rows), "from the first 20 of each class and trial, warm-up included")


def _shown(case: CaseMeasures) -> tuple[TrialMeasures, ...]:
    """Trials that count; where none does, those that ran at all."""
    return case.usable or tuple(trial for trial in case.trials if trial.source.result is not None)


# --- set-up -----------------------------------------------------------------------------------------------


def setup(cases: Sequence[CaseMeasures]) -> Table | None:
    """Return variant and limits of each service; cases that agree share a row."""
    by_row: dict[Row, list[str]] = {}
    for case in cases:
        trial = next(iter(case.usable or case.trials), None)
        if trial is not None:
            for row in (*_generator(trial), *_services(case, trial)):
                by_row.setdefault(row, []).append(case.name)
    if not by_row:
        return None
    rows = tuple(
        (
            *row,
            "all" if len(names) == len(cases) else words.cut(", ".join(dict.fromkeys(names)), CASES_LENGTH),
        )
        for row, names in by_row.items()
    )
    columns = ("part", "runs", "CPUs", "CPU time", "memory", "limits", "cases")
    note = "CPUs and limits as the kernel said them while the part ran"
    return Table(tuple(Column(title, align="left") for title in columns), rows, note)


def _generator(trial: TrialMeasures) -> Iterator[Row]:
    placement = trial.source.placement
    threads = placement.generator_threads
    if trial.external is not None or threads:
        runs = words.plural(threads or 0, "thread")
        runs = runs if trial.external is None else words.plain(trial.external.title)
        state = "a CPU set of its own" if placement.generator_cpus else "none asked"
        yield ("generator", runs, _cpus(placement.own_cpus), NO_LIMIT, NO_LIMIT, state)


def _services(case: CaseMeasures, trial: TrialMeasures) -> Iterator[Row]:
    placement = trial.source.placement
    ran = {process.service: process.variant for process in trial.source.services}
    for service in case.plan.services:
        name = service.name
        asked = placement.services.get(name, PlacedService())
        runs = [f"variant {variant}"] if (variant := ran.get(name) or service.variant) else []
        runs += [service.use] if service.use != "process" else []
        for held, count in Counter(asked.held or (None,)).items():  # replicas that are confined alike
            seen = held or asked
            yield (
                name if count == 1 else f"{name}, {count} replicas each",
                ", ".join(runs) or "process",
                _cpus(seen.cpus),
                NO_LIMIT if seen.cpu is None else _share_of_cores(seen.cpu, asked.period_s),
                NO_LIMIT if seen.memory_bytes is None else numbers.with_unit(seen.memory_bytes, "bytes"),
                _state(asked, held, placement.refused, name),
            )


def _state(asked: PlacedService, held: Bounds | None, refused: str | None, name: str) -> str:
    """Return the state of the limits that were asked for."""
    wanted = [bound for bound in BOUNDS if getattr(asked, bound) is not None]
    if refused is not None and refused.startswith(f"services.{name}.limits"):
        return f"refused: {refused.partition(': ')[2]}"
    if not wanted:
        return "none asked"
    if held is None:
        return "asked; whether they held was not recorded"
    pairs = {bound: (getattr(asked, bound), getattr(held, bound)) for bound in wanted}
    broken = [bound.removesuffix("_bytes") for bound, pair in pairs.items() if not _holds(*pair)]
    return f"asked and not held: {', '.join(broken)}" if broken else "held"


def _holds(asked: Any, held: Any) -> bool:
    """The same CPUs; quotas and bounds as near as the kernel's pages and microseconds allow."""
    if isinstance(asked, (list, tuple)) or held is None:
        return held is not None and sorted(asked) == sorted(held)
    return abs(float(held) - float(asked)) <= ROUNDED * float(asked)


def _cpus(numbers_: Sequence[int] | None) -> str:
    return "not known" if not numbers_ else ", ".join(map(str, numbers_))


def _share_of_cores(cpu: float, period_s: float | None) -> str:
    within = "" if period_s is None else f", periods of {duration_text(float(period_s))}"
    return f"{cpu:g} cores{within}"
