"""Faults of experimental design: a study that runs, and whose figures will not say what it asks.

Each rule reads the planned cases of one experiment and knows no study: it sees numbers of users, durations,
shares and levels, never what they are called. A rule that cannot be sure stays silent. The advice names the
number that would be enough, wherever the file holds what it follows from.

Sources: sizes of samples and trials after Kalibera and Jones (ISMM 2013), Guenther (Am. Stat. 35, 1981) and
the binomial bounds of order statistics; open and closed loops after Schroeder et al. (NSDI 2006).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from loadlens.model.study import Case, Claim, Study, seconds_of
from loadlens.model.workload import Closed, Open
from loadlens.units import duration_text

QUICK_AT_LEAST_S: Final = 8.0
INTERVALS_AT_LEAST_S: Final = 15.0  # 60 intervals of 250 ms, what an interval of a quantile is built on
TIMES_SLOWEST: Final = 5.0  # a trial lasts this many of its slowest answers, or its edges weigh in
USUAL_SPREAD: Final = (
    0.03  # between runs of one case, standard deviation of the logarithm; own machines do better
)
LARGE_PROBE: Final = 0.2  # of an open load, above which a probe is part of it
_QUANTILES: Final = (0.999, 0.99, 0.95, 0.9, 0.75, 0.5)
_WITHIN_BOUNDARY: Final = 0.1  # of the tail: how near a quantile may lie to a step between two scenarios


@dataclass(frozen=True, slots=True)
class DesignFault:
    """A fault of a design: message, place, and advice."""

    rule: str
    where: str  # an experiment, or the study
    message: str
    advice: str  # an imperative, or a key as it would be written
    is_note: bool = False  # nothing is wrong: what this run leaves open, on this machine or in this profile


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment of a study, for a rule to judge on this machine."""

    study: Study
    name: str
    cases: tuple[Case, ...]
    cores: int  # of this machine

    def fault(self, rule: str, message: str, advice: str, *, is_note: bool = False) -> DesignFault:
        """Return a fault of this experiment."""
        return DesignFault(rule, self.name, message, advice, is_note)

    @property
    def users(self) -> list[int]:
        """The numbers of users among the cases, rising; empty for open loads, and none of a changing one."""
        closed = [case.workload for case in self.cases if isinstance(case.workload, Closed)]
        return sorted({load.users for load in closed if load.profile is None})

    def metrics(self, *, of_all: bool = False) -> list[str]:
        """Metrics that objectives, claims and published figures ask for; `of_all`: not of one step."""
        study, rows = self.study, self.study.published.rows if self.study.published is not None else ()
        asked = [(o.metric, o.step) for o in study.objectives]
        asked += [(c.metric, c.step) for c in study.claims if c.experiment == self.name]
        asked += [(row["metric"], row.get("step")) for row in rows if row["experiment"] == self.name]
        return sorted({metric for metric, step in asked if not (of_all and step)})


Rule = Callable[[Experiment], Iterator[DesignFault]]


def faults(study: Study, *, cores: int) -> tuple[DesignFault, ...]:
    """Every fault of the design, in the order of the rules.

    Args:
        study: As planned.
        cores: Cores of this machine.
    """
    groups: dict[str, tuple[Case, ...]] = {}
    for case in (case for case in study.cases if case.purpose != "stacks"):
        groups[case.experiment] = (*groups.get(case.experiment, ()), case)
    experiments = [Experiment(study, name, cases, cores) for name, cases in groups.items()]
    every = (fault for rule in _RULES for experiment in experiments for fault in rule(experiment))
    return tuple(dict.fromkeys(every))


# ------------------------------------------------------------------------------------------ repeats and order


def _too_few_trials(experiment: Experiment) -> Iterator[DesignFault]:
    """Intervals come from the spread between trials."""
    fewest = min(case.trials for case in experiment.cases)
    if experiment.study.quick:
        return  # labelled "within one trial" wherever it is shown
    if fewest == 1:
        message = "one trial per case: no figure can separate a difference from the spread between runs"
        yield experiment.fault("trials.one", message, "trials: 3, or more")
    elif fewest == 2:
        # Half-width of the interval in standard deviations of a trial: t(1) / sqrt 2 and t(2) / sqrt 3.
        message = "two trials per case: an interval reaches 9 standard deviations each way, with three 2.5"
        yield experiment.fault("trials.two", message, "trials: 3, or more")


def _listed_order(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag an order in which later cases differ in more than their level."""
    study = experiment.study
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


def _carried_over(experiment: Experiment) -> Iterator[DesignFault]:
    """Processes that live on keep caches, heaps and data."""
    cases = experiment.cases
    if len(cases) < 2 or all(case.fresh == "trial" or not case.services for case in cases):
        return
    life = "block" if any(case.fresh == "block" for case in cases) else "run"
    is_writing = any(step.method != "GET" for case in cases for s in case.scenarios for step in s.steps)
    if is_writing and all(case.reset is None for case in cases):
        message = f"fresh: {life}, requests that write, and no reset: every case leaves data to the next"
        yield experiment.fault("fresh.data", message, "reset: {before: trial, ...}, or fresh: trial")
    else:
        message = f"fresh: {life}: caches and heaps filled by one case serve the next"
        yield experiment.fault("fresh.caches", message, "fresh: trial, unless warm is the question")


# -------------------------------------------------------------------------------------------------- duration


def _too_short(experiment: Experiment) -> Iterator[DesignFault]:
    """Trials shorter than what their intervals are built on."""
    timed = [case.duration_ns / 1e9 for case in experiment.cases if _is_timed(case) and case.duration_ns]
    shortest = min(timed, default=math.inf)
    if experiment.study.quick and shortest < QUICK_AT_LEAST_S:
        message = f"trials of {duration_text(shortest)}: a quick trial needs at least 8 s"
        yield experiment.fault("duration.quick", message, "duration: 8s")
    elif not experiment.study.quick and shortest < INTERVALS_AT_LEAST_S:
        message = f"trials of {duration_text(shortest)}: intervals of quantiles need 60 windows of 250 ms"
        yield experiment.fault("duration.intervals", message, "duration: 20s")


def _too_short_for_the_slowest(experiment: Experiment) -> Iterator[DesignFault]:
    """Requests that were under way at an edge of the trial weigh too much."""
    published = experiment.study.published
    rows = [row for row in published.rows if "_time." in row["metric"]] if published is not None else []
    times = [(row, seconds) for row in rows if (seconds := seconds_of(row)) is not None]
    for case in experiment.cases:
        seconds = max((time_s for row, time_s in times if case.is_of(row)), default=0.0)
        measured_s = math.inf if case.duration_ns is None else case.duration_ns / 1e9
        if not experiment.study.quick and seconds * TIMES_SLOWEST > measured_s:
            message = (
                f"{case.name}: {duration_text(measured_s)} is less than {TIMES_SLOWEST:g} "
                f"times a published response time ({duration_text(seconds)})"
            )
            advice = f"duration: {math.ceil(TIMES_SLOWEST * seconds)}s"
            yield experiment.fault("duration.slowest", message, advice)
        if seconds * 1e9 >= case.timeout_ns:
            message = f"{case.name}: published answers of {duration_text(seconds)} would time out"
            yield experiment.fault("timeout.published", message, f"timeout: {math.ceil(2 * seconds)}s")


def _too_few_for_the_quantile(experiment: Experiment) -> Iterator[DesignFault]:
    """A quantile needs requests beyond it for a bound on its upper side."""
    case = min(experiment.cases, key=_most_requests)
    fewest = _most_requests(case)
    for metric in experiment.metrics():
        quantile = _quantile(metric)
        needed = 0 if quantile is None else _bounding(quantile)
        if fewest >= needed:
            continue
        message = (
            f"{metric} of {case.name}: at most {fewest:.0f} requests per trial, "
            f"and an interval with two ends needs {needed}"
        )
        enough = f"requests: {needed}"
        if _is_timed(case) and case.duration_ns and fewest:
            enough = f"duration: {math.ceil(needed * case.duration_ns / 1e9 / fewest)}s"
        lower = next((f"p{str(q)[2:]:0<2}" for q in _QUANTILES if _bounding(q) <= fewest), None)
        yield experiment.fault(
            "duration.quantile", message, enough if lower is None else f"{enough}, or {lower}"
        )


def _bounding(quantile: float) -> int:
    """Return the requests of which the largest lies above a quantile with a probability of 97.5 %.

    The largest of n lies above it with probability 1 - quantile^n.
    """
    return math.ceil(math.log(0.025) / math.log(quantile))


def _too_few_for_the_claim(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag a published ratio that so many trials hardly distinguish from 1."""
    if experiment.study.quick:
        return
    for claim in experiment.study.claims:
        ratio = claim.published
        if claim.kind != "ratio" or claim.experiment != experiment.name or not ratio or ratio == 1:
            continue
        if claim.within is not None and abs(ratio - 1) <= claim.within:
            continue  # no difference is claimed
        # Student's t on differences of two trials, 5 % of error and 80 % of power (Guenther).
        needed = math.ceil(2 * (USUAL_SPREAD * (1.96 + 0.842) / math.log(ratio)) ** 2 + 1.96**2 / 2)
        trials = min(case.trials for case in experiment.cases)
        if trials < needed:
            message = (
                f"line {claim.line} claims a ratio of {ratio:g} from {trials} trials: if runs of one case "
                f"differ by {USUAL_SPREAD:.0%}, it takes {needed} trials to see that four times in five"
            ).replace("%,", " %,")
            yield experiment.fault("trials.claim", message, f"trials: {needed}")


def _start_is_measured(experiment: Experiment) -> Iterator[DesignFault]:
    """Without a warm-up on fresh processes, the figures hold the start."""
    cases = experiment.cases
    if any(_is_timed(c) and c.warmup_ns == 0 and c.fresh == "trial" and c.services for c in cases):
        message = "fresh processes and no warm-up: the start is part of the figures"
        way = "fresh: block" if any(c.driver is not None for c in cases) else "warmup: auto"
        yield experiment.fault("warmup.none", message, f"{way}, unless the start is the question")


# ------------------------------------------------------------------------------------------------------ load


def _begins_differ(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag a tool without warm-up compared with our engine, whose warm-up is automatic."""
    drivers = dict.fromkeys(case.driver for case in experiment.cases if case.driver is not None)
    if drivers and any(case.driver is None and case.warmup_ns is None for case in experiment.cases):
        names = ", ".join(drivers)
        message = f"our engine warms the service up before it measures, {names} measures from the start"
        yield experiment.fault("drivers.warmup", message, "warmup: 0s")


def _warm_ups_differ(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag levels that bring a warm-up of their own along with what they compare."""
    for case, other in itertools.combinations(experiment.cases, 2):
        warmups = (case.warmup_ns, other.warmup_ns)
        changed = [(a, b) for a, b in zip(case.levels, other.levels, strict=False) if a != b]
        if warmups[0] == warmups[1] or len(changed) != 1 or None in warmups:
            continue
        level, against = changed[0]
        if len(level.binds) > 1:  # a factor of the warm-up alone asks for its effect
            longest = max(warmup for warmup in warmups if warmup is not None) / 1e9
            shortest = min(warmup for warmup in warmups if warmup is not None) / 1e9
            message = (
                f"{level.factor} {level.name} and {against.name} differ in their warm-up, too "
                f"({duration_text(shortest)} and {duration_text(longest)}): its effect is part of theirs"
            )
            yield experiment.fault("warmup.unequal", message, f"warmup: {longest:g}s for both")
            return


def _closed_for_an_objective(experiment: Experiment) -> Iterator[DesignFault]:
    """Users who wait send less to a slow service, so that a bound on its times is easily met."""
    bounds = [o for o in experiment.study.objectives if o.metric.startswith("response_time.") and o.below]
    waiting = [c for c in experiment.cases if isinstance(c.workload, Closed) and c.workload.pace is None]
    if not bounds or len(waiting) < len(experiment.cases):
        return
    case = max(waiting, key=lambda case: case.workload.users if isinstance(case.workload, Closed) else 0)
    objective = min(bounds, key=lambda each: each.below or math.inf)
    users = experiment.users[-1] if experiment.users else 1
    bound_s, pause_s = objective.below or 0.0, _pause_s(case)
    if users > 1 and bound_s > pause_s:
        # By Little's law so many users who get their responses in time send at least this rate.
        rate = float(f"{users * case.requests / (bound_s + pause_s):.2g}")
        message = (
            f"{users} users wait for responses: a slow service gets fewer requests, so {objective.metric} "
            "looks better than it is for callers who do not wait"
        )
        advice = f"rate: {rate:g}/s, what {users} users send while responses stay within the bound"
        yield experiment.fault("load.closed-objective", message, advice)


def _connections_called_users(experiment: Experiment) -> Iterator[DesignFault]:
    """Users who never think are connections that ask as fast as they are answered."""
    closed = [(case, case.workload) for case in experiment.cases if isinstance(case.workload, Closed)]
    many = [load.users for case, load in closed if load.pace is None and _pause_s(case) == 0]
    if max(many, default=0) > 1:
        message = (
            f"{max(many)} users without think time: each sends its next request at once, so a slower "
            "service gets fewer"
        )
        advice = (
            "think: 1s if they are people; rate: 50/s for arrivals that do not wait; neither for connections"
        )
        yield experiment.fault("load.no-think", message, advice, is_note=True)


def _no_idle_baseline(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag curves without one user: the cost of an answer and the wait cannot be separated."""
    users = experiment.users
    if len(users) > 1 and users[0] > 1:
        span = f"users from {users[0]} to {users[-1]}"
        message = f"{span}: without a level of one user the unloaded time is unknown"
        yield experiment.fault("load.no-baseline", message, "add level 1")


def _changes_while_measured(experiment: Experiment) -> Iterator[DesignFault]:
    """A load that changes has no one figure, and curves are made of levels."""
    cases = experiment.cases
    shaped = [case for case in cases if case.workload.is_shaped and not _is_level(case)]
    if shaped:
        message = (
            f"{len(shaped)} of {len(cases)} cases change their load while they are measured: their "
            "figures are of all levels together, and no finding about capacity rests on them"
        )
        advice = "a warm-up that covers the change, or a factor over levels"
        yield experiment.fault("load.changes", message, advice, is_note=True)


def _is_level(case: Case) -> bool:
    """True if the load stays at one level while it is measured."""
    levels = case.workload.profile
    if levels is None or case.duration_ns is None or case.warmup_ns is None:
        return not case.workload.is_shaped
    return levels.is_level(case.warmup_ns, case.warmup_ns + case.duration_ns)


def _never_saturated(experiment: Experiment) -> Iterator[DesignFault]:
    """A ladder that ends before its knee shows none."""
    users, cores = experiment.users, experiment.cores
    places = max(min(cores, max((case.needs_cores or cores) for case in experiment.cases)), 1)
    if len(users) > 1 and users[-1] < 2 * places:
        message = f"users end at {users[-1]}, with {places} cores to serve them the knee may lie beyond"
        yield experiment.fault("load.no-saturation", message, f"add level {4 * places}", is_note=True)


def _rates_beside_the_knee(experiment: Experiment) -> Iterator[DesignFault]:
    """Rates that all lie on one side of the published throughput show no knee."""
    rates = sorted({_mean_per_s(case) * case.requests for case in experiment.cases})
    served = max(_published(experiment, "throughput"), default=0.0)
    if len(rates) < 2 or not served or math.isinf(rates[-1]):
        return
    span = f"rates from {rates[0]:g} to {rates[-1]:g}/s, and {served:g}/s are published as served"
    if rates[-1] <= served:
        level = float(f"{1.25 * served:.2g}")
        yield experiment.fault("load.no-knee", f"{span}: the knee lies beyond", f"add level {level:g}/s")
    elif rates[0] >= served:
        level = float(f"{0.5 * served:.2g}")
        yield experiment.fault("load.no-knee", f"{span}: the knee lies below", f"add level {level:g}/s")


def _rate_below_what_is_asked(experiment: Experiment) -> Iterator[DesignFault]:
    """A rate is the total: more than it cannot be served, however many workers share it."""
    asked = [
        o.above for o in experiment.study.objectives if o.metric == "throughput" and o.above and not o.step
    ]
    for case in experiment.cases:
        if not asked:
            return
        most_per_s, wanted = _most_per_s(case), max(asked)
        if most_per_s < wanted:
            workers = _workers(case)
            each = f", {most_per_s / workers:g}/s for each of {workers} workers" if workers > 1 else ""
            message = (
                f"the objective is above {wanted:g}/s, and {case.name} sends at most {most_per_s:g}/s "
                f"in all{each}"
            )
            way = f"rate: {math.ceil(wanted / case.requests)}/s or more"
            if isinstance(case.workload, Closed):
                way = f"users: {math.ceil(case.workload.users * wanted / most_per_s)} or more"
            yield experiment.fault("rate.total", message, way)
            return


def _at_a_boundary(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag quantiles at the edge of a request kind's share: they jump between two kinds."""
    mixes = {tuple(_shares(case)) for case in experiment.cases if len(case.scenarios) > 1}
    for metric in experiment.metrics(of_all=True):
        quantile = _quantile(metric)
        for share in (each for mix in mixes for each in _boundaries(mix)):
            if quantile is not None and abs(quantile - share) < _WITHIN_BOUNDARY * (1 - quantile):
                message = (
                    f"{metric} of all requests lies where {share:.4g} of the mix ends: it belongs to one "
                    "kind of request in one trial and to another in the next"
                )
                yield experiment.fault("quantile.boundary", message, "step: NAME, or another quantile")


# ------------------------------------------------------------------------------------ probes, held-out cases


def _no_probes(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag loads without a probe: their effect on other requests is not measured."""
    cases = experiment.cases
    rates = {case.workload.peak_per_s for case in cases if isinstance(case.workload, Open)}
    is_ladder = len(experiment.users) > 1 or len(rates) > 1
    if is_ladder and not any(case.probes for case in cases):
        message = "a ladder of loads without a probe: whether others wait, and for what, is not seen"
        yield experiment.fault("probes.none", message, "probes: {health: {get: /health, rate: 20/s}}")


def _sticky_probe(experiment: Experiment) -> Iterator[DesignFault]:
    """A kept connection stays with the worker that accepted it."""
    for case in experiment.cases:
        sticky = [probe.name for probe in case.probes if probe.connection.reuse != "new"]
        if sticky and _has_several_workers(case):
            message = f"probe {sticky[0]} keeps its connection: it sees one of several workers, by chance"
            yield experiment.fault("probes.sticky", message, "connection: new")
            return


def _heavy_probe(experiment: Experiment) -> Iterator[DesignFault]:
    """A probe that is a load of its own."""
    for case in experiment.cases:
        main, most, probes = _mean_per_s(case), LARGE_PROBE, case.probes
        if isinstance(case.workload, Closed):  # cheap probes may outnumber users who think
            requests = {(step.method, step.path) for s in case.scenarios for step in s.steps}
            probes = tuple(p for p in probes if requests & {(s.method, s.path) for s in p.scenario.steps})
            main, most = max(map(_most_per_s, experiment.cases)), 1.0
        heavy = sum(probe.workload.peak_per_s for probe in probes)
        if heavy > most * main:
            message = f"probes send {heavy:g}/s alongside a load of {main:.3g}/s: they are part of the load"
            enough = float(f"{LARGE_PROBE / 2 * main / len(probes):.2g}")
            yield experiment.fault("probes.heavy", message, f"rate: {enough:g}/s or less")
            return


def _trained_on(experiment: Experiment) -> Iterator[DesignFault]:
    """A prediction of what was measured before is none."""
    trained = {_content(case) for case in experiment.cases if not case.held_out}
    for case in experiment.cases:
        if case.held_out and _content(case) in trained:
            message = f"{case.name} is held out but also measured before, so its prediction predicts nothing"
            yield experiment.fault("hold-out.trained", message, "remove the level from factors")


# ----------------------------------------------------------------------------------- machine, published shape


def _too_many_cores(experiment: Experiment) -> Iterator[DesignFault]:
    """Cases that this machine cannot decide."""
    wanted = [case.needs_cores or 0 for case in experiment.cases]
    beyond = [cores for cores in wanted if cores > experiment.cores]
    if beyond:
        message = (
            f"{len(beyond)} of {len(wanted)} cases need up to {max(beyond)} cores, "
            f"and this machine has {experiment.cores}"
        )
        advice = f"a machine of {max(beyond)} cores; here they are shown, not judged"
        yield experiment.fault("cores", message, advice, is_note=True)


def _shared_cores(experiment: Experiment) -> Iterator[DesignFault]:
    """Flag a service that may use every core, so that the load is made on the same ones."""
    for case in experiment.cases:
        pinned = [set(service.limits.cpus) for service in case.services if service.limits.cpus is not None]
        twice = set().union(*(a & b for a, b in itertools.combinations(pinned, 2)))
        if twice:
            cores = ", ".join(map(str, sorted(twice)))
            message = f"{case.name}: services share CPU {cores}, so that one slows the other down"
            enough = sum(map(len, pinned))
            yield experiment.fault("cores.shared", message, f"CPUs of their own: {enough} in all")
            return
        needed = case.needs_cores or 0
        taken = max(needed, len(set().union(*pinned)))
        if case.services and needed <= experiment.cores <= taken:
            message = (
                f"{case.name}: the service may use {taken} of {experiment.cores} cores, and the load "
                "generator runs on the same ones"
            )
            advice = f"a machine of {taken + 1} cores, or {experiment.cores - 1} cores for the service"
            yield experiment.fault("cores.shared", message, advice, is_note=True)
            return


def _no_case_for_a_claim(experiment: Experiment) -> Iterator[DesignFault]:
    """Claims and published figures of the study that no case can answer."""
    study = experiment.study
    lines = [str(claim.line) for claim in study.claims if not _has_cases(claim, study.cases)]
    if lines:
        message = (
            f"{len(lines)} of {len(study.claims)} claims have no cases in this plan: line {', '.join(lines)}"
        )
        advice = "the whole study; here they stay undecided"
        yield DesignFault("claim.no-case", "study", message, advice, is_note=True)
    rows = study.published.rows if study.published is not None else ()
    missing = sum(not any(case.is_of(row) for case in study.cases) for row in rows)
    if missing:
        message = f"{missing} of {len(rows)} published figures have no case here"
        advice = "the whole study; here they are not measured"
        yield DesignFault("published.no-case", "study", message, advice, is_note=True)


_RULES: Final[tuple[Rule, ...]] = (
    _too_few_trials,
    _listed_order,
    _carried_over,
    _too_short,
    _too_short_for_the_slowest,
    _too_few_for_the_quantile,
    _too_few_for_the_claim,
    _start_is_measured,
    _begins_differ,
    _warm_ups_differ,
    _closed_for_an_objective,
    _connections_called_users,
    _no_idle_baseline,
    _changes_while_measured,
    _never_saturated,
    _rates_beside_the_knee,
    _rate_below_what_is_asked,
    _at_a_boundary,
    _no_probes,
    _sticky_probe,
    _heavy_probe,
    _trained_on,
    _too_many_cores,
    _shared_cores,
    _no_case_for_a_claim,
)


# ----------------------------------------------------------------------------------------- what rules look at


def _is_timed(case: Case) -> bool:
    """True if time ends the load, not a number of requests."""
    by_number = case.workload.requests or (isinstance(case.workload, Closed) and case.workload.iterations)
    return case.duration_ns is not None and not by_number


def _pause_s(case: Case) -> float:
    """Mean pause of a user in one iteration, in seconds."""
    return case.pause_s + (case.workload.think.mean_s if isinstance(case.workload, Closed) else 0.0)


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
        bounds.append(math.inf if due is None else due * case.requests)
    else:
        by_users = workload.users * case.requests
        if workload.iterations is not None:
            bounds.append(by_users * workload.iterations)
        if (pause_s := _pause_s(case)) > 0:
            bounds.append(by_users * (seconds / pause_s + 1))
        if workload.pace is not None:
            bounds.append(by_users * (seconds / workload.pace.mean_s + 1))
    return min(bounds)


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


def _workers(case: Case) -> int:
    """Return the largest of replicas, workers, and the usual flag of a server that forks; at least 1."""
    forks = re.compile(r"--(workers|processes|instances)[ =](\d+)")
    counts = [int(flag[2]) for service in case.services if (flag := forks.search(service.start))]
    counts += [service.replicas * service.model.workers for service in case.services]
    return max([1, *counts])


def _has_several_workers(case: Case) -> bool:
    """True if a connection may lead to one of several workers."""
    return max(_workers(case), case.needs_cores or 1) > 1


def _most_per_s(case: Case) -> float:
    """An upper bound on the requests per second of a case; infinite when nothing bounds them."""
    return _most_requests(case) * 1e9 / case.duration_ns if _is_timed(case) and case.duration_ns else math.inf


def _published(experiment: Experiment, metric: str) -> list[float]:
    """Published figures of the whole load of an experiment."""
    published = experiment.study.published
    rows = published.rows if published is not None else ()
    own = [row for row in rows if any(case.is_of(row) for case in experiment.cases)]
    return [float(row["value"]) for row in own if row["metric"] == metric and not row.get("step")]


def _content(case: Case) -> tuple[tuple[str, str], ...]:
    """Return every param of a case with its value."""
    return tuple(sorted((name, str(value)) for name, value in case.params))


def _has_cases(claim: Claim, cases: tuple[Case, ...]) -> bool:
    """True if each side of a claim has a case; a swept factor needs two."""
    own = [case for case in cases if case.experiment == claim.experiment and not case.held_out]
    where = dict(claim.where)
    if claim.kind == "ratio":
        return all(any(c.has({**where, **dict(side)}) for c in own) for side in (claim.of, claim.to))
    swept = claim.over or claim.across
    names = {level.name for c in own if c.has(where) for level in c.levels if level.factor == swept}
    return len(names & set(claim.expected) if claim.expected else names) >= 2
