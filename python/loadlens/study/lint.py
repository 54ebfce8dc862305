"""Faults of experimental design: a study that runs, and whose figures will not say what it asks.

Each rule reads the planned cases and knows no study: it sees numbers of users, durations, shares and
levels, never what they are called. A rule that cannot be sure stays silent.

Sources: sizes of samples and trials after Kalibera and Jones (ISMM 2013) and the binomial bounds of order
statistics; open and closed loops after Schroeder et al. (NSDI 2006).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from loadlens import units
from loadlens.model.study import Case, Claim, Study
from loadlens.model.workload import Closed, Open
from loadlens.units import duration_text

QUICK_AT_LEAST_S: Final = 8.0
INTERVALS_AT_LEAST_S: Final = 15.0  # 60 intervals of 250 ms, what an interval of a quantile is built on
TIMES_SLOWEST: Final = 5.0  # a trial lasts this many of its slowest answers, or its edges weigh in
_WITHIN_BOUNDARY: Final = 0.1  # of the tail: how near a quantile may lie to a step between two scenarios
_SECONDS_PER_UNIT: Final = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}


@dataclass(frozen=True, slots=True)
class DesignFault:
    """A fault of a design: message, place, and advice."""

    rule: str
    where: str  # an experiment, or the study
    message: str
    advice: str  # an imperative, or a key as it would be written
    is_note: bool = False  # nothing is wrong: what this run leaves open, on this machine or in this profile


Rule = Callable[[Study, int], Iterator[DesignFault]]


def faults(study: Study, *, cores: int) -> tuple[DesignFault, ...]:
    """Every fault of the design, in the order of the rules.

    Args:
        study: As planned.
        cores: Cores of this machine.
    """
    return tuple(dict.fromkeys(fault for rule in _RULES for fault in rule(study, cores)))


# ------------------------------------------------------------------------------------------ repeats and order


def _too_few_trials(study: Study, cores: int) -> Iterator[DesignFault]:
    """Intervals come from the spread between trials."""
    if study.quick:
        return  # labelled "within one trial" wherever it is shown
    for experiment, cases in _experiments(study).items():
        fewest = min(case.trials for case in cases)
        if fewest == 1:
            message = "one trial per case: no figure can separate a difference from the spread between runs"
            yield DesignFault("trials.one", experiment, message, "trials: 3, or more")
        elif fewest == 2:
            # Half-width of the interval in standard deviations of a trial: t(1) / sqrt 2 and t(2) / sqrt 3.
            message = "two trials a case: intervals reach 9 standard deviations each way, with three 2.5"
            yield DesignFault("trials.two", experiment, message, "trials: 3, or more")


def _listed_order(study: Study, cores: int) -> Iterator[DesignFault]:
    """Flag an order in which later cases differ in more than their level."""
    if study.order_by != "listed" or len(study.cases) < 2:
        return
    lasting = sorted({case.experiment for case in study.cases if case.fresh != "trial"})
    if lasting:
        message = (
            "cases in listed order on processes that live on: load is confounded with warm-up and growth"
        )
        yield DesignFault("order.warm", ", ".join(lasting), message, "fresh: trial, or order: {by: blocks}")
    else:
        message = "cases in listed order: a drift of the machine looks like an effect of the levels"
        yield DesignFault("order.listed", "study", message, "order: {by: blocks}")


def _carried_over(study: Study, cores: int) -> Iterator[DesignFault]:
    """Processes that live on keep caches, heaps and data."""
    for experiment, cases in _experiments(study).items():
        if len(cases) < 2 or all(case.fresh == "trial" or not case.services for case in cases):
            continue
        life = "block" if any(case.fresh == "block" for case in cases) else "run"
        is_writing = any(step.method != "GET" for case in cases for s in case.scenarios for step in s.steps)
        if is_writing and all(case.reset is None for case in cases):
            message = f"fresh: {life}, requests that write, and no reset: every case leaves data to the next"
            yield DesignFault(
                "fresh.data", experiment, message, "reset: {before: trial, ...}, or fresh: trial"
            )
        else:
            message = f"fresh: {life}: caches and heaps filled by one case serve the next"
            yield DesignFault(
                "fresh.caches", experiment, message, "fresh: trial, unless warm is the question"
            )


# -------------------------------------------------------------------------------------------------- duration


def _too_short(study: Study, cores: int) -> Iterator[DesignFault]:
    """Trials shorter than what their intervals are built on."""
    for experiment, cases in _experiments(study).items():
        durations = [case.duration_ns / 1e9 for case in cases if _is_timed(case) and case.duration_ns]
        shortest = min(durations, default=math.inf)
        if study.quick and shortest < QUICK_AT_LEAST_S:
            message = f"{duration_text(shortest)} a trial, quick trials last at least 8 s"
            yield DesignFault("duration.quick", experiment, message, "duration: 8s")
        elif not study.quick and shortest < INTERVALS_AT_LEAST_S:
            message = f"{duration_text(shortest)} a trial: fewer than 60 intervals of 250 ms to estimate from"
            yield DesignFault("duration.intervals", experiment, message, "duration: 20s")


def _too_short_for_the_slowest(study: Study, cores: int) -> Iterator[DesignFault]:
    """Requests that were under way at an edge of the trial weigh too much."""
    slowest = _published_seconds(study)
    for experiment, cases in _experiments(study).items():
        for case in cases:
            figures = slowest.get(experiment, ())
            seconds = max((time_s for levels, time_s in figures if _matches(case, levels)), default=0.0)
            if (
                not study.quick
                and case.duration_ns is not None
                and seconds * TIMES_SLOWEST > case.duration_ns / 1e9
            ):
                message = (
                    f"{case.name}: {duration_text(case.duration_ns / 1e9)} is less than {TIMES_SLOWEST:g} "
                    f"times a published answer ({duration_text(seconds)})"
                )
                advice = f"duration: {math.ceil(TIMES_SLOWEST * seconds)}s"
                yield DesignFault("duration.slowest", experiment, message, advice)
            if seconds * 1e9 >= case.timeout_ns:
                message = f"{case.name}: published answers of {duration_text(seconds)} would time out"
                yield DesignFault(
                    "timeout.published", experiment, message, f"timeout: {math.ceil(2 * seconds)}s"
                )


def _too_few_for_the_quantile(study: Study, cores: int) -> Iterator[DesignFault]:
    """A quantile needs requests beyond it for a bound on its upper side."""
    for experiment, cases in _experiments(study).items():
        for metric in sorted(_asked(study, experiment)):
            quantile = _quantile(metric)
            if quantile is None:
                continue
            # The largest of n lies above the quantile with probability 1 - quantile^n; 97.5 % are wanted.
            needed = math.ceil(math.log(0.025) / math.log(quantile))
            fewest, case = min(((_most_requests(case), case) for case in cases), key=lambda pair: pair[0])
            if fewest < needed:
                message = (
                    f"{metric} of {case.name}: at most {fewest:.0f} requests in a trial, "
                    f"{needed} bound it on both sides"
                )
                yield DesignFault(
                    "duration.quantile", experiment, message, "a longer duration, or a lower quantile"
                )


def _start_is_measured(study: Study, cores: int) -> Iterator[DesignFault]:
    """Without a warm-up on fresh processes, the figures hold the start."""
    for experiment, cases in _experiments(study).items():
        if any(_is_timed(c) and c.warmup_ns == 0 and c.fresh == "trial" and c.services for c in cases):
            message = "fresh processes and no warm-up: the start is part of the figures"
            way = "fresh: block" if any(c.driver is not None for c in cases) else "warmup: auto"
            yield DesignFault("warmup.none", experiment, message, f"{way}, unless the start is the question")


# ------------------------------------------------------------------------------------------------------ load


def _begins_differ(study: Study, cores: int) -> Iterator[DesignFault]:
    """Flag a tool without warm-up compared with our engine, whose warm-up is automatic."""
    for experiment, cases in _experiments(study).items():
        drivers = dict.fromkeys(case.driver for case in cases if case.driver is not None)
        if drivers and any(case.driver is None and case.warmup_ns is None for case in cases):
            names = ", ".join(drivers)
            message = f"our engine warms the service up before it measures, {names} measures from the start"
            yield DesignFault("drivers.warmup", experiment, message, "warmup: 0s")


def _connections_called_users(study: Study, cores: int) -> Iterator[DesignFault]:
    """Users who never think are connections that ask as fast as they are answered."""
    for experiment, cases in _experiments(study).items():
        closed = [(case, case.workload) for case in cases if isinstance(case.workload, Closed)]
        many = [load.users for case, load in closed if load.pace is None and _pause_s(case) == 0]
        if max(many, default=0) > 1:
            message = (
                f"{max(many)} users without think time: each asks as fast as it is answered, so a slower "
                "service is asked less"
            )
            advice = (
                "think: 1s for people; rate: 50/s for arrivals that do not wait; say connections otherwise"
            )
            yield DesignFault("load.no-think", experiment, message, advice)


def _no_idle_baseline(study: Study, cores: int) -> Iterator[DesignFault]:
    """Flag curves without one user: the cost of an answer and the wait cannot be separated."""
    for experiment, cases in _experiments(study).items():
        users = _users(cases)
        if len(users) > 1 and users[0] > 1:
            span = f"users from {users[0]} to {users[-1]}"
            message = f"{span}: without a level of one user the unloaded time is unknown"
            yield DesignFault("load.no-baseline", experiment, message, "add level 1")


def _changes_while_measured(study: Study, cores: int) -> Iterator[DesignFault]:
    """A load that changes has no one figure, and curves are made of levels."""
    for experiment, cases in _experiments(study).items():
        shaped = [case for case in cases if case.workload.is_shaped and not _is_level(case)]
        if shaped:
            message = (
                f"{len(shaped)} of {len(cases)} cases change their load while they are measured: their "
                "figures are of all levels together, and no finding about capacity rests on them"
            )
            advice = "a warm-up that covers the change, or a factor over levels"
            yield DesignFault("load.changes", experiment, message, advice, is_note=True)


def _is_level(case: Case) -> bool:
    """True if the load stays at one level while it is measured."""
    levels = case.workload.profile
    if levels is None or case.duration_ns is None or case.warmup_ns is None:
        return not case.workload.is_shaped
    return levels.is_level(case.warmup_ns, case.warmup_ns + case.duration_ns)


def _never_saturated(study: Study, cores: int) -> Iterator[DesignFault]:
    """A ladder that ends before its knee shows none."""
    for experiment, cases in _experiments(study).items():
        users = _users(cases)
        if len(users) < 2:
            continue
        widest = max((case.needs_cores or cores) for case in cases)
        places = max(min(cores, widest), 1)
        if users[-1] < 2 * places:
            message = f"users end at {users[-1]}, with {places} cores to serve them the knee may lie beyond"
            yield DesignFault("load.no-saturation", experiment, message, f"add level {4 * places}")


def _at_a_boundary(study: Study, cores: int) -> Iterator[DesignFault]:
    """Flag quantiles at the edge of a request kind's share: they jump between two kinds."""
    for experiment, cases in _experiments(study).items():
        shares = {tuple(_shares(case)) for case in cases if len(case.scenarios) > 1}
        for metric in sorted(_asked(study, experiment, of_all=True)):
            quantile = _quantile(metric)
            for share in (each for mix in shares for each in _boundaries(mix)):
                if quantile is not None and abs(quantile - share) < _WITHIN_BOUNDARY * (1 - quantile):
                    message = (
                        f"{metric} of all requests lies where {share:.4g} of the mix ends: it belongs to one "
                        "kind of request in one trial and to another in the next"
                    )
                    yield DesignFault(
                        "quantile.boundary", experiment, message, "step: NAME, or another quantile"
                    )


# ------------------------------------------------------------------------------------ probes, held-out cases


def _no_probes(study: Study, cores: int) -> Iterator[DesignFault]:
    """Flag loads without a probe: their effect on other requests is not measured."""
    for experiment, cases in _experiments(study).items():
        is_ladder = (
            len(_users(cases)) > 1
            or len({c.workload.peak_per_s for c in cases if isinstance(c.workload, Open)}) > 1
        )
        if is_ladder and not any(case.probes for case in cases):
            message = "a ladder of loads without a probe: whether others wait, and for what, is not seen"
            advice = "probes: {health: {get: /health, rate: 20/s}}"
            yield DesignFault("probes.none", experiment, message, advice)


def _sticky_probe(study: Study, cores: int) -> Iterator[DesignFault]:
    """A kept connection stays with the worker that accepted it."""
    for experiment, cases in _experiments(study).items():
        for case in cases:
            sticky = [probe.name for probe in case.probes if probe.connection.reuse != "new"]
            if sticky and _has_several_workers(case):
                message = f"probe {sticky[0]} keeps its connection: it sees one of several workers, by chance"
                yield DesignFault("probes.sticky", experiment, message, "connection: new")
                break


def _heavy_probe(study: Study, cores: int) -> Iterator[DesignFault]:
    """A probe that is a load of its own."""
    for experiment, cases in _experiments(study).items():
        for case in cases:
            heavy = sum(probe.workload.peak_per_s for probe in case.probes)
            main = _mean_per_s(case)
            if heavy > 0.2 * main:
                message = f"probes send {heavy:g}/s alongside a load of {main:g}/s: they are part of the load"
                yield DesignFault("probes.heavy", experiment, message, "rate: a tenth of the load's or less")
                break


def _trained_on(study: Study, cores: int) -> Iterator[DesignFault]:
    """A prediction of what was measured before is none."""
    trained = {(case.experiment, _content(case)) for case in study.cases if not case.held_out}
    for case in study.cases:
        if case.held_out and (case.experiment, _content(case)) in trained:
            message = f"{case.name} is held out but also measured before, so its prediction predicts nothing"
            yield DesignFault("hold-out.trained", case.experiment, message, "remove the level from factors")


# ----------------------------------------------------------------------------------- machine, published shape


def _too_many_cores(study: Study, cores: int) -> Iterator[DesignFault]:
    """Cases that this machine cannot decide."""
    for experiment, cases in _experiments(study).items():
        beyond = [case for case in cases if (case.needs_cores or 0) > cores]
        if beyond:
            most = max(case.needs_cores or 0 for case in beyond)
            message = f"{len(beyond)} of {len(cases)} cases need up to {most} cores, here are {cores}"
            yield DesignFault(
                "cores",
                experiment,
                message,
                f"a machine of {most} cores; here they are shown, not judged",
                is_note=True,
            )


def _no_case_for_a_claim(study: Study, cores: int) -> Iterator[DesignFault]:
    """Claims and published figures that no case can answer."""
    experiments = _experiments(study)
    lines = [str(c.line) for c in study.claims if not _has_cases(c, experiments.get(c.experiment, ()))]
    if lines:
        message = (
            f"{len(lines)} of {len(study.claims)} claims have no cases in this plan: line {', '.join(lines)}"
        )
        yield DesignFault(
            "claim.no-case", "study", message, "the whole study; here they stay undecided", is_note=True
        )
    missing = 0
    for row in study.published.rows if study.published is not None else ():
        cases = experiments.get(row["experiment"], ())
        missing += not any(_matches(case, _levels_of(row)) for case in cases)
    if missing:
        rows = len(study.published.rows) if study.published is not None else 0
        message = f"{missing} of {rows} published figures have no case here"
        yield DesignFault(
            "published.no-case", "study", message, "the whole study; here they are not measured", is_note=True
        )


_RULES: Final[tuple[Rule, ...]] = (
    _too_few_trials,
    _listed_order,
    _carried_over,
    _too_short,
    _too_short_for_the_slowest,
    _too_few_for_the_quantile,
    _start_is_measured,
    _begins_differ,
    _connections_called_users,
    _no_idle_baseline,
    _changes_while_measured,
    _never_saturated,
    _at_a_boundary,
    _no_probes,
    _sticky_probe,
    _heavy_probe,
    _trained_on,
    _too_many_cores,
    _no_case_for_a_claim,
)


# ----------------------------------------------------------------------------------------- what rules look at


def _experiments(study: Study) -> Mapping[str, tuple[Case, ...]]:
    groups: dict[str, tuple[Case, ...]] = {}
    for case in study.cases:
        groups[case.experiment] = (*groups.get(case.experiment, ()), case)
    return groups


def _users(cases: tuple[Case, ...]) -> list[int]:
    """The numbers of users among the cases, rising; empty for open loads, and none of a changing one."""
    closed = [case.workload for case in cases if isinstance(case.workload, Closed)]
    return sorted({load.users for load in closed if load.profile is None})


def _is_timed(case: Case) -> bool:
    """True if time ends the load, not a number of requests."""
    by_number = case.workload.requests or (isinstance(case.workload, Closed) and case.workload.iterations)
    return case.duration_ns is not None and not by_number


def _pause_s(case: Case) -> float:
    """Mean pause of a user in one iteration, in seconds."""
    pause = case.workload.think.mean_s if isinstance(case.workload, Closed) else 0.0
    weight = sum(scenario.weight for scenario in case.scenarios)
    return pause + sum(s.weight / weight * s.pause_s for s in case.scenarios)


def _steps(case: Case) -> float:
    """Requests of an iteration, the mean over the mix."""
    weight = sum(scenario.weight for scenario in case.scenarios)
    return sum(scenario.weight / weight * scenario.requests for scenario in case.scenarios)


def _mean_per_s(case: Case) -> float:
    """Iterations a second of an open load, the mean of its measured part; infinite if not known."""
    workload, start_s = case.workload, (case.warmup_ns or 0) / 1e9
    if not isinstance(workload, Open) or case.duration_ns is None:
        return workload.rate_per_s or math.inf if isinstance(workload, Open) else math.inf
    seconds = case.duration_ns / 1e9
    due = workload.due_between(start_s, start_s + seconds)
    return math.inf if due is None else due / seconds


def _most_requests(case: Case) -> float:
    """An upper bound on the requests of one trial; infinite when nothing bounds them."""
    workload, bounds = case.workload, [math.inf]
    seconds = math.inf if case.duration_ns is None else case.duration_ns / 1e9
    if workload.requests is not None:
        bounds.append(workload.requests)
    if isinstance(workload, Open):
        warmup_s = (case.warmup_ns or 0) / 1e9
        due = workload.due_between(warmup_s, warmup_s + seconds) if seconds < math.inf else None
        if due is None and workload.replay is not None:
            due = float(workload.replay.arrivals)
        bounds.append(math.inf if due is None else due * _steps(case))
    else:
        if workload.iterations is not None:
            bounds.append(workload.users * workload.iterations * _steps(case))
        if (pause_s := _pause_s(case)) > 0:
            bounds.append(workload.users * _steps(case) * (seconds / pause_s + 1))
        if workload.pace is not None:
            bounds.append(workload.users * _steps(case) * (seconds / workload.pace.mean_s + 1))
    return min(bounds)


def _asked(study: Study, experiment: str, *, of_all: bool = False) -> set[str]:
    """The metrics that objectives, claims and published figures ask of an experiment."""
    asked = {o.metric for o in study.objectives if not (of_all and o.step)}
    asked |= {c.metric for c in study.claims if c.experiment == experiment and not (of_all and c.step)}
    rows = study.published.rows if study.published is not None else ()
    return asked | {
        row["metric"] for row in rows if row["experiment"] == experiment and not (of_all and row.get("step"))
    }


def _quantile(metric: str) -> float | None:
    """0.99 for `response_time.p99`, 0.999 for `p999`; none for what is no quantile above the median."""
    match = re.search(r"\.p(\d{2,4})$", metric)
    quantile = float(f"0.{match[1]}") if match else None
    return quantile if quantile is not None and quantile >= 0.5 else None


def _shares(case: Case) -> list[float]:
    """The share of each scenario's requests among all."""
    requests = [scenario.weight * scenario.requests for scenario in case.scenarios]
    return sorted(each / sum(requests) for each in requests)


def _boundaries(shares: tuple[float, ...]) -> set[float]:
    """Return the shares at which a faster group of scenarios could end; at most 6 scenarios are tried."""
    parts = shares[:6] if len(shares) <= 6 else ()
    groups = (group for size in range(1, len(parts)) for group in itertools.combinations(parts, size))
    return {round(sum(group), 9) for group in groups}


def _has_several_workers(case: Case) -> bool:
    """Replicas, cores that the case asks for, or the usual flag of a server that forks."""
    forks = re.compile(r"--(workers|processes|instances)[ =](\d+)")
    counts = [int(flag[2]) for service in case.services if (flag := forks.search(service.start))]
    counts += [service.replicas for service in case.services]
    return max([case.needs_cores or 1, *counts]) > 1


def _content(case: Case) -> tuple[tuple[str, str], ...]:
    """Return every param of a case with its value."""
    return tuple(sorted((name, str(value)) for name, value in case.params))


def _levels_of(row: Mapping[str, str]) -> dict[str, str]:
    """The factor levels of a published row; empty cells say nothing."""
    columns = ("experiment", "step", "metric", "side", "value", "unit", "note")
    return {name: text for name, text in row.items() if name not in columns and text}


def _matches(case: Case, levels: Mapping[str, str]) -> bool:
    """True if a case has these levels or param values; held-out cases have no published figures."""
    own = {level.factor: level.name for level in case.levels}
    values = {name: str(value) for name, value in case.params}
    return not case.held_out and all(own.get(name, values.get(name)) == text for name, text in levels.items())


def _has_cases(claim: Claim, cases: tuple[Case, ...]) -> bool:
    """True if each side of a claim has a case; a swept factor needs two."""
    where = dict(claim.where)
    if claim.kind == "ratio":
        return all(any(_matches(c, {**where, **dict(side)}) for c in cases) for side in (claim.of, claim.to))
    swept = claim.over or claim.across
    ratios = {
        level.name
        for case in cases
        if _matches(case, where)
        for level in case.levels
        if level.factor == swept
    }
    return len(ratios & set(claim.expected) if claim.expected else ratios) >= 2


def _published_seconds(study: Study) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Published times of each experiment with their levels, in seconds."""
    points: dict[str, list[tuple[dict[str, str], float]]] = {}
    for row in study.published.rows if study.published is not None else ():
        unit = _SECONDS_PER_UNIT.get(row["unit"])
        value = units.scalar(row["value"])
        if unit is not None and "_time." in row["metric"] and isinstance(value, (int, float)):
            points.setdefault(row["experiment"], []).append((_levels_of(row), value * unit))
    return points
