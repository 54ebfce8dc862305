"""The answer of a record: what limits the service, on what evidence, how much it can do, what is not known.

Reads the record alone, so that an answer can be given again at any time; `explain` gives it after its search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.diagnose import limits_of, root_of
from loadlens.diagnose.capacity import GENERATOR, WAITED, most_of
from loadlens.diagnose.code_places import code_evidence
from loadlens.diagnose.observe import calls_seen, label_parts
from loadlens.diagnose.rules.capacity_limits import healthy, saturation_plateau
from loadlens.estimate.interval import Insufficient
from loadlens.measure.curve import capacity_of, succeeded
from loadlens.measure.other_answers import levels_of
from loadlens.measure.services.request_counters import scraped
from loadlens.measure.source import study_of
from loadlens.model.explanation import Explanation, ProbePaid, Rung, Tier, Unknown
from loadlens.model.facts import Curve, Facts, Step
from loadlens.model.finding import (
    Estimate,
    Figure,
    Finding,
    NotMeasured,
    Undecided,
)
from loadlens.model.notes import NOTES
from loadlens.model.plain import read
from loadlens.model.recorded import PlannedStudy
from loadlens.model.result import FailingAnswer
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed
from loadlens.present import numbers, quotes, words
from loadlens.present.numbers import short, shown
from loadlens.record import RunRecord, TrialRecord
from loadlens.search import judged_rates, objectives
from loadlens.search.step_cases import EVENT, SearchEnd
from loadlens.whatif import diagnosis

WAITS: Final = 2.0  # times its time at the lightest load: beyond, a cheap request waits for the others
WORTH_A_WORD: Final = 0.2  # of a request's time: less is a single count of nine
NEARLY_ALL: Final = 0.9  # of it
SIDE_BY_SIDE: Final = 1.2  # times it: calls at once
NOT_REACHED: Final = "not reached"
NO_OTHER_LIMIT: Final = "nothing limits before that was not seen"
FAILING: Final = ("harm", "fails_alone")
WATCH: Final = "the CPU of the service's processes: --pid PID, or --start CMD"
CALMER: Final = "users who pause: a limit of age then closes after fewer requests"
HEADERS: Final = "the first lines of an answer: curl -i URL"
GAUGES: Final = "what the service says of its pools and locks: --metrics URL"
# What would show a rival that could not be excluded, by its name: from outside, and with processes watched.
DECIDED_BY: Final[Mapping[str, tuple[str, str]]] = {
    "service out of CPU": (WATCH, ""),
    "shared cores": (WATCH, "service and generator on cores of their own (taskset -c)"),
    "other programs": (WATCH, "the same while nothing else runs on the machine"),
    "threads that share a core": (WATCH, ""),
    "full connection pool": (GAUGES, GAUGES),
    "lock held elsewhere": (GAUGES, GAUGES),
    "generator": ("another machine for the generator", "another machine for the generator"),
    "a busier core": (WATCH, "the replicas on cores of their own (taskset -c)"),
    "a service that writes slowly": ("answers of half the size", "answers of half the size"),
    "few connections": ("four times the connections", "four times the connections"),
    "lines of a log": (WATCH, "the same with the log off"),
    "other programs' writes": (WATCH, "the same while nothing else writes"),
    "packets lost on the way": (WATCH, ""),
    "uneven backends": (WATCH, "the requests of each backend"),
    "limit of age": (CALMER, CALMER),
    "limit of the rate": (HEADERS, HEADERS),
    "a proxy that speaks HTTP/1.0": (HEADERS, HEADERS),
}

# What would show how much more a service can do, by what kept clients from asking.
KEPT_BY: Final[Mapping[str, str]] = {
    WAITED: "a backlog four times as large, or a way to it that loses nothing",
    GENERATOR: "another machine for the generator, or a costlier request",
}


@dataclass(frozen=True, slots=True)
class Reach:
    """The capacity of a service, as far as a curve shows it."""

    capacity: Figure
    at_least: float | None = None  # what was reached, where the capacity is undecided
    knee_users: float | None = None
    bounded_by: str = ""  # what kept clients from asking more: then capacity and knee are lower bounds
    others_come: bool = False  # cheaper answers came too: what was reached is the rate of the usual ones

    @property
    def is_short(self) -> bool:
        """True if the load never reached the capacity."""
        return isinstance(self.capacity, Undecided) and self.capacity.reason.startswith(NOT_REACHED)


def explanation(record: RunRecord, *, is_kept: bool = True) -> Explanation:
    """Return what a record says of the limit of its service.

    Args:
        record: Of a search, or of any study.
        is_kept: True if it stays, so that it may be named.
    """
    diagnosed = diagnosis.diagnosis_of(record)
    ends = record.events(EVENT)
    end, study = read(SearchEnd, ends[-1] if ends else {}), study_of(record)
    facts, verdict = diagnosed.facts, diagnosed.verdict
    curve = main_curve(facts, verdict.findings)
    # What was at work before the service ended is among the findings; it is not why there is no service.
    root = None if end.because == "service_ended" else root_of(verdict.findings)
    tier = _tier(facts, study)
    reach = reach_of(curve, probe_is_load=end.probe_is_load)
    unknown = _unknown(curve, reach, root, verdict.findings, tier, end)
    rungs = [_rung(curve, step) for curve in facts.curves for step in curve.steps]
    rungs += _ended_early(record, study)
    if rungs:  # else nothing could be assessed, as the sentence says
        unknown += [Unknown(f"{other.title}: {other.reason}", "") for other in verdict.not_assessed]
    first = {item.what: item for item in reversed(unknown)}
    once = [first[what] for what in dict.fromkeys(item.what for item in unknown)]
    steps = [step for case in study.cases for scenario in case.scenarios for step in scenario.steps]
    requests = [f"{step.method} {step.path}" for step in steps]
    if curve is not None and curve.steps:
        requests = [kind.request for step in curve.steps for kind in step.classes]
    entry = study.cases[0].entry if study.cases else None
    rates = None if end.rates is None else judged_rates.answer(record, end.rates)
    curves = list(dict.fromkeys(rung.curve for rung in rungs))
    quoted = _quotes(record)
    failing = next((rung for rung in rungs if rung.ended_early and end.because in FAILING), None)
    return Explanation(
        target=(entry and (entry.url or entry.service)) or study.name,
        requests=tuple(dict.fromkeys(requests)),
        tier=tier,
        sentence=_sentence(root, verdict.findings, reach, end, next(iter(quoted), "")),
        limit=None if root is None or root.rule == healthy.ID else root.rule,
        grade=None if root is None else root.grade.word,
        capacity=reach.capacity,
        at_least=reach.at_least,
        knee_users=reach.knee_users,
        others=_others(curve, end),
        time=_time(curve),
        do="" if root is None else root.advice,
        brings=_brings(root, curve),
        ladder=tuple(sorted(rungs, key=lambda rung: (curves.index(rung.curve), rung.users))),
        findings=verdict.findings,
        absent=verdict.absent,
        not_assessed=verdict.not_assessed,
        unknown=tuple(sorted(once, key=lambda item: not item.decided_by)),
        cautions=_cautions(facts, end, curve, has_levels=bool(rungs)),
        found=end.found,
        missing=end.missing,
        stopped_because=end.because or "record",
        stopped_words=end.words,
        budget_s=end.budget_s,
        used_s=end.used_s,
        seed=study.seed,
        record=str(record.path) if is_kept else None,
        objectives=(rates.row,)
        if rates is not None
        else objectives.rows(
            end.objectives,
            curve,
            reach.capacity,
            diagnosed.cases,
            is_failing=end.because in FAILING,
            failing=failing,
        ),
        quotes=quoted,
        rates=rates,
        code=code_evidence(
            diagnosed.stacks,
            verdict.findings,
            is_full=isinstance(reach.capacity, Estimate) or end.because in FAILING,
        ),
    )


def _quotes(record: RunRecord) -> tuple[str, ...]:
    """Return what failing answers say, of all trials, valid or not."""
    counts: Counter[str] = Counter()
    kept: list[FailingAnswer] = []
    for trial in record.trials:
        load = None if trial.result is None else trial.result.load
        if load is not None:
            kept += load.failing_answers
            counts.update(load.status)
    return tuple(quotes.by_status(kept, counts))


def main_curve(facts: Facts, findings: Sequence[Finding]) -> Curve | None:
    """Return the curve of the weightiest finding but notes; else the closed one with the most levels."""
    by_label = {curve.label: curve for curve in facts.curves}
    weighty = [finding for finding in findings if finding.rule not in NOTES]
    for label in [label for finding in weighty for label in finding.curves]:
        if label in by_label and by_label[label].is_closed:
            return by_label[label]
    return max(facts.curves, key=lambda curve: (curve.is_closed, len(curve.steps)), default=None)


def reach_of(curve: Curve | None, *, probe_is_load: bool = False) -> Reach:
    """Return what a curve says of the capacity.

    Trials of all levels on the plateau are trials of the same capacity. If the probe sends the load's own
    requests, its successes belong to the capacity too. Where clients were kept from asking, it is a lower
    bound.
    """
    if curve is None or not curve.steps:
        return Reach(Undecided("capacity", "1/s", "no level of load was measured"))

    def probe_rate(step: Step) -> float:
        ended = sum(step.completed_trials)
        if not probe_is_load or not ended or not step.issued:
            return 0.0
        seconds = step.issued / (ended / len(step.completed_trials))  # of all trials together
        return sum(probe.count for probe in step.probes) / seconds

    others = {other.step.load: other.share for other in levels_of(curve) if other.are_cheaper}
    reached = max(
        (succeeded(step) + probe_rate(step)) * (1 - others.get(step.load, 0.0)) for step in curve.steps
    )
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return Reach(Undecided("capacity", "1/s", capacity.reason), reached, others_come=bool(others))
    saturation = capacity.saturation
    if saturation.verdict == "underdriven":
        return Reach(Undecided("capacity", "1/s", f"{NOT_REACHED}: {saturation.reason}"), reached)
    most = most_of(curve, capacity, besides=probe_rate)
    return Reach(most.figure, None, saturation.knee, most.bounded_by)


def _tier(facts: Facts, study: PlannedStudy) -> Tier:
    if any(scraped(case) for case in study.cases):
        return "C"
    return "B" if any(step.processes for curve in facts.curves for step in curve.steps) else "A"


# --- the sentence ----------------------------------------------------------------------------------------


def _sentence(
    root: Finding | None, findings: Sequence[Finding], reach: Reach, end: SearchEnd, quoted: str
) -> str:
    capacity = reach.capacity
    healthy_below = next((f for f in findings if f.rule == healthy.ID), None)
    # A search for a limit says first that none was reached.
    in_vain = healthy_below is not None and end.because != "" and isinstance(capacity, Undecided)
    suspected = None if in_vain else next(iter(limits_of(findings)), None)
    quote = f" ({quoted})" if quoted else ""
    if end.because == "service_ended":
        best = f" {numbers.with_unit(reach.at_least, '1/s')} were reached." if reach.at_least else ""
        return f"The service ended under load, {end.words}{quote}.{best}"
    if root is not None and not in_vain:
        failed = f" The load was ended: {end.words}." if end.because in (*FAILING, "fails_beyond") else ""
        usual = ""
        if reach.others_come and reach.at_least:
            usual = f" At most {numbers.with_unit(reach.at_least, '1/s')} of the usual answers came."
        return f"{root.statement} ({root.grade.word}).{usual}{failed}"
    failing = {
        "harm": "too many requests failed and the load was ended",
        "fails_alone": "requests fail without any load",
        "refused": "every request is refused",
        "no_answer": "nothing came back",
        "broken": "a level of load could not be measured",
    }
    if end.because in failing:
        text = f"Undecided, {failing[end.because]}: {end.words}{quote}"
    elif suspected is not None and not (end.because and reach.is_short):
        return f"Undecided; suspected, not shown: {suspected.statement}."
    elif isinstance(capacity, Estimate):
        most = numbers.at_least(capacity) if reach.bounded_by else shown(capacity)
        text = f"It does {most}, and what holds it there could not be seen"
    elif isinstance(capacity, Undecided):
        obstacle = {
            "budget": "; the budget ended first",
            "rate_cap": "; the rate cap stood in the way",
            "most_users": "; more users were not allowed",
            "generator": "; the generator was the limit",
            "other_answers": "; more users get other answers",
            "interrupted": "; it was ended on request",
        }.get(end.because, "")
        verb = "" if reach.is_short else "not known: "
        text = f"Undecided: the capacity is {verb}{capacity.reason}{obstacle}"
    else:
        text = "Undecided: nothing was measured"
    reached = f"; {numbers.with_unit(reach.at_least, '1/s')} were reached" if reach.at_least else ""
    after = ""
    if healthy_below is not None:
        after = f" {healthy_below.statement} ({healthy_below.grade.word})."
    elif suspected is not None:
        after = f" Suspected, not confirmed: {suspected.statement}."
    return f"{text}{reached}.{after}"


# --- times of the other requests, effect of the advice ---------------------------------------------------


def _time(curve: Curve | None) -> str:
    """Return how much of a request's time calls and steps take; empty: hardly any, or not seen."""
    mean = curve.steps[0].response.mean if curve is not None and curve.steps else None
    if curve is None or not isinstance(mean, Estimate):
        return ""
    light, top = calls_seen.light(curve), curve.steps[-1]
    parts = [calls for calls in calls_seen.spent(light) if calls.seconds >= WORTH_A_WORD * mean.point]
    step = label_parts.longest_step(light[-1]) if light else None
    names = [_spent_in(calls.name, calls.seconds, mean.point) for calls in parts]
    if step is not None and step.seconds >= WORTH_A_WORD * mean.point:
        names.append(_spent_in(step.name, step.seconds, mean.point))
    alone = words.users(curve.steps[0].load, exactly=True)
    text = f"{short(mean)} with {alone}: {', '.join(names)}" if names else ""
    later = top.response.mean
    now = {calls.name: calls for calls in calls_seen.spent([top])}
    if not parts or top in light or parts[0].name not in now or not isinstance(later, Estimate):
        return text
    then = _spent_in(parts[0].name, now[parts[0].name].seconds, later.point)
    return f"{text}; {short(later)} with {words.users(top.load)}: {then}"


def _spent_in(name: str, seconds: float, whole_s: float) -> str:
    """State a time that comes from a few counts of what is under way: rounded to two digits."""
    if seconds > SIDE_BY_SIDE * whole_s:
        return f"all the time in {name}, several at once"
    if seconds > NEARLY_ALL * whole_s:
        return f"nearly all in {name}"
    return f"about {numbers.with_unit(float(f'{seconds:.2g}'), 's')} in {name}"


def _others(curve: Curve | None, end: SearchEnd) -> str:
    if curve is None or not curve.steps:
        return ""
    first, top = curve.steps[0], curve.steps[-1]
    probe = next((p for p in top.probes if isinstance(p.response.mean, Estimate)), None)
    light = None if probe is None else next((p for p in first.probes if p.label == probe.label), None)
    now = None if probe is None else probe.response.mean
    if probe is None or not isinstance(now, Estimate):
        return ""
    at = words.users(top.load) if curve.is_closed else f"{top.load:g} requests/s"
    who = "one more request of the same" if end.probe_is_load else words.probe(probe.label, probe.request)
    text = f"{who} takes {shown(now)} at {at}"
    before = None if light is None else light.response.mean
    if first is top or not isinstance(before, Estimate):
        return f"{text}."
    text += f", {numbers.with_unit(before.point, 's')} at {first.load:g}"
    if end.probe_is_load:
        return f"{text}; no cheaper URL was given to compare with."
    is_apart = now.low is None or now.low > (before.point if before.high is None else before.high)
    waits = "waits" if now.point > WAITS * before.point and is_apart else "hardly waits"
    return f"{text}: it {waits} for the others."


def _brings(root: Finding | None, curve: Curve | None) -> str:
    """Return a sentence for each remedy of the finding with the assumptions, or the gain of fewer users."""
    if root is None:
        return ""
    if not root.predictions:
        return _fewer_users(curve) if root.rule == saturation_plateau.ID and curve is not None else ""
    sentences = []
    for remedy in dict.fromkeys(p.remedy for p in root.predictions):
        effects = [p for p in root.predictions if p.remedy == remedy]
        text = "; ".join(f"{p.what} {short(p.before)} now, {shown(p.after)} then" for p in effects)
        if all(isinstance(p.after, Undecided) for p in effects):
            text = shown(effects[0].after)
        sentences.append(f"{remedy}: {text}." if remedy else f"{text}.")
    assumed = list(dict.fromkeys(p.assumes for p in root.predictions if p.assumes))
    if assumed:
        sentences.append(f"Assumed: {'; '.join([*assumed, NO_OTHER_LIMIT])}.")
    return " ".join(sentences)


def _fewer_users(curve: Curve) -> str:
    """Return the mean time at the knee in place of that at the highest level."""
    capacity = capacity_of(curve)
    if isinstance(capacity, Insufficient):
        return ""
    knee = next((s for s in curve.steps if s.load >= capacity.saturation.plateau_from), None)
    if knee is None or knee is capacity.top:
        return ""
    now, then = knee.response.mean, capacity.top.response.mean
    if not isinstance(now, Estimate) or not isinstance(then, Estimate):
        return ""
    return (
        f"a mean of {numbers.with_unit(now.point, 's')} (measured at {words.users(knee.load)}) in place of "
        f"{numbers.with_unit(then.point, 's')} at {capacity.top.load:g}, at the same throughput"
    )


# --- what is not known -----------------------------------------------------------------------------------


def _unknown(
    curve: Curve | None,
    reach: Reach,
    root: Finding | None,
    findings: Sequence[Finding],
    tier: Tier,
    end: SearchEnd,
) -> list[Unknown]:
    unknown: list[Unknown] = []
    capacity = reach.capacity
    if not isinstance(capacity, Estimate):
        unknown.append(Unknown(f"the capacity: {capacity.reason}", _next_search(end)))
    elif reach.bounded_by:
        what = f"how much more than {numbers.with_unit(capacity.point, '1/s')} it can do: {reach.bounded_by}"
        unknown.append(Unknown(what, KEPT_BY.get(reach.bounded_by, "")))
    if isinstance(capacity, Estimate) and (root is None or root.rule == saturation_plateau.ID):
        what = "what holds the throughput there: work, a lock, a pool or a limit that was set"
        if tier == "A":
            decided_by = WATCH
        elif curve is not None and curve.steps and end.probe_is_load:
            decided_by = "a cheap request alongside the load, which shows who shares the queue: --probe URL"
        elif tier == "B":
            decided_by = GAUGES
        else:
            decided_by = "one knob changed at a time (workers, pool size), and the same again"
        unknown.append(Unknown(what, decided_by))
    for finding in findings:
        if finding.explained_by is None:
            unknown += _left_open(finding, tier)
    if curve is not None and curve.trials < 3:
        what = "how much every level varies from run to run: some had one trial only"
        unknown.append(Unknown(what, "a study with three trials of each level"))
    return unknown


def _left_open(finding: Finding, tier: Tier) -> list[Unknown]:
    """Return rivals that could not be excluded, signals that were missing, and the rule's own unknowns."""
    seen_from = 0 if tier == "A" else 1
    rivals = [
        Unknown(
            f"{finding.rule}: {c.text if c.text.startswith(c.rival) else f'{c.rival}: {c.text}'}",
            DECIDED_BY.get(c.rival, ("", ""))[seen_from],
        )
        for c in finding.counter
        if c.ruled_out is None
    ]
    signals = [Unknown(f"{finding.rule}: {e.text}", "") for e in finding.evidence if e.passed is None]
    return [*rivals, *signals, *(Unknown(f"{finding.rule}: {text}", "") for text in finding.unknown)]


def _next_search(end: SearchEnd) -> str:
    """Return what would show the capacity that this search did not."""
    return {
        "budget": f"more time: --budget {2 * (end.budget_s or 90):.0f}s",
        "rate_cap": f"a higher rate, where it does no harm: --rate-cap {2 * end.rate_cap_per_s:g}",
        "most_users": f"more users: --max-users {2 * end.most_users}",
        "generator": KEPT_BY[GENERATOR],
        "interrupted": "the same without Ctrl-C",
        "other_answers": "the two answers by hand, and a status that says which of them is a refusal",
        "harm": "the service's own log at the moment when requests began to fail",
        "fails_alone": "the same request by hand: curl -i, then -m, -H, -b or --expect as it needs them",
        "refused": "credentials or headers with which the service does not refuse: -H",
        "no_answer": "the same request by hand, and a longer --timeout",
        "service_ended": "the service's own log at the moment when it ended, and dmesg if it was killed",
        "broken": "the record of the trial that failed: -o DIR",
    }.get(end.because, "more levels of load, beyond twice the highest")


def _cautions(facts: Facts, end: SearchEnd, curve: Curve | None, *, has_levels: bool) -> tuple[str, ...]:
    cautions = [gate.text for gate in facts.gates if gate.passed is False]
    cautions += end.cautions
    if has_levels:
        cautions += [f"not looked at: {gate.text}" for gate in facts.gates if gate.passed is None]
    if end.probe_is_load:
        cautions.append("no cheap URL was given: the probe sends the load's request, rarely (--probe URL)")
    if curve is not None and any(p.is_late for step in curve.steps for p in step.probes):
        cautions.append("probes were sent late at some level: their times include the generator's lateness")
    return tuple(dict.fromkeys(cautions))


# --- the ladder ------------------------------------------------------------------------------------------


def _rung(curve: Curve, step: Step) -> Rung:
    probe = next(iter(step.probes), None)
    paid = None
    if probe is not None:
        times = probe.response
        paid = ProbePaid(probe.request, times.mean, times.p99, probe.delayed, probe.count)
    return Rung(
        curve=curve.label,
        users=step.load,
        trials=step.trials,
        throughput=step.throughput,
        mean=step.response.mean,
        p50=step.response.p50,
        p99=step.response.p99,
        failed=step.failed,
        cpu_cores=step.server_cores if step.processes else None,
        probe=paid,
    )


def _ended_early(record: RunRecord, study: PlannedStudy) -> list[Rung]:
    """Return levels without a valid trial: what was seen of them, and why no trial is valid."""
    complete = {trial.case.slug for trial in record.trials if trial.status is TrialStatus.COMPLETE}
    loads = {case.slug: case.workload for case in study.cases if case.purpose == "load"}
    last: dict[str, TrialRecord] = {}
    for trial in record.trials:
        if trial.case.slug not in complete and trial.case.slug in loads:
            last[trial.case.slug] = trial
    rungs = []
    for slug, trial in last.items():
        workload = loads[slug]
        why = "; ".join(trial.reasons) or str(trial.status)
        none = NotMeasured("any", why)
        load = None if trial.result is None else trial.result.load
        failed: Figure = none
        if load is not None and (ended := load.requests.ended):
            share = 1 - load.requests.ok / ended
            failed = Estimate("failed.share", "share", share, None, None, 1, ended, "exact count")
        rungs.append(
            Rung(
                curve=trial.case.experiment,
                users=workload.users if isinstance(workload, Closed) else workload.rate_per_s or 0.0,
                trials=0,
                throughput=none,
                mean=none,
                p50=none,
                p99=none,
                failed=failed,
                cpu_cores=None,
                probe=None,
                ended_early=why,
            )
        )
    return rungs
