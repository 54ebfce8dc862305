"""The answer of a record: what limits the service, on what evidence, how much it can do, what is not known.

Reads the record alone, so that an answer can be given again at any time; `explain` gives it after its search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from loadlens.diagnose.capacity import GENERATOR, WAITED, most_of
from loadlens.diagnose.rules.capacity_limits import healthy, saturation_plateau
from loadlens.estimate.interval import Insufficient
from loadlens.measure.curve import capacity_of, succeeded
from loadlens.model.explanation import Explanation, ProbePaid, Rung, Tier, Unknown
from loadlens.model.facts import Curve, Facts, ProbeWatch, Step
from loadlens.model.finding import (
    Estimate,
    Figure,
    Finding,
    Grade,
    NotMeasured,
    Prediction,
    Undecided,
)
from loadlens.model.notes import NOTES
from loadlens.model.trial import TrialStatus
from loadlens.present import numbers, words
from loadlens.present.numbers import short, shown
from loadlens.record import RunRecord, TrialRecord
from loadlens.search.step_cases import EVENT
from loadlens.whatif import diagnosis

WAITS: Final = 2.0  # times its time at the lightest load: beyond, a cheap request waits for the others
NOT_REACHED: Final = "not reached"
NO_OTHER_LIMIT: Final = "nothing limits before that was not seen"
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
    GENERATOR: "another machine for the generator, or a dearer request",
}

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reach:
    """How much a service can do, as far as a curve shows it."""

    capacity: Figure
    at_least: float | None = None  # what was reached, where the capacity is undecided
    knee_users: float | None = None
    bounded_by: str = ""  # what kept clients from asking more: then capacity and knee are lower bounds


def explanation(record: RunRecord, *, is_kept: bool = True) -> Explanation:
    """Return what a record says of the limit of its service.

    Args:
        record: Of a search, or of any study.
        is_kept: Whether it stays, so that it may be named.
    """
    known = diagnosis.examined(record)
    told: Json = next((event for event in reversed(record.events()) if event.get("event") == EVENT), {})
    facts, verdict = known.facts, known.verdict
    curve = main_curve(facts, verdict.findings)
    root = _root(verdict.findings)
    tier = _tier(facts, record.study)
    reach = reach_of(curve, probe_is_load=_probe_is_load(told))
    unknown = _unknown(curve, reach, root, verdict.findings, tier, told)
    unknown += [Unknown(f"{other.title}: {other.reason}", "") for other in verdict.not_assessed]
    return Explanation(
        target=_target(record.study),
        requests=_requests(curve, record.study),
        tier=tier,
        sentence=_sentence(root, verdict.findings, reach, told),
        limit=None if root is None or root.rule == healthy.ID else root.rule,
        grade=None if root is None else root.grade.word,
        capacity=reach.capacity,
        at_least=reach.at_least,
        knee_users=reach.knee_users,
        others=_others(curve, told),
        do="" if root is None else root.advice,
        brings=_brings(root, curve),
        ladder=_in_order([*_rungs(facts), *_ended_early(record)]),
        findings=verdict.findings,
        absent=verdict.absent,
        not_assessed=verdict.not_assessed,
        unknown=_each_once(unknown),
        cautions=_cautions(facts, told, curve),
        stopped_because=str(told.get("because", "record")),
        stopped_words=str(told.get("words", "")),
        budget_s=told.get("budget_s"),
        used_s=told.get("used_s"),
        seed=record.study.get("seed"),
        record=str(record.path) if is_kept else None,
    )


def main_curve(facts: Facts, findings: Sequence[Finding]) -> Curve | None:
    """The curve that the weightiest finding stands on; else the closed one with the most levels."""
    named = [label for finding in findings for label in finding.curves]
    by_label = {curve.label: curve for curve in facts.curves}
    for label in named:
        if label in by_label and by_label[label].is_closed:
            return by_label[label]
    return max(facts.curves, key=lambda curve: (curve.is_closed, len(curve.steps)), default=None)


def reach_of(curve: Curve | None, *, probe_is_load: bool = False) -> Reach:
    """Return what a curve says of the capacity.

    Trials of all levels on the plateau are trials of the same capacity. Where the probe asks what the load
    asks, what it got belongs to the capacity too. Where clients were kept from asking, it is a lower bound.
    """
    if curve is None or not curve.steps:
        return Reach(Undecided("capacity", "1/s", "no level of load was measured"))
    reached = max(_rate(step, probe_is_load) for step in curve.steps)
    found = capacity_of(curve)
    if isinstance(found, Insufficient):
        return Reach(Undecided("capacity", "1/s", found.reason), reached)
    saturation = found.saturation
    if saturation.verdict == "underdriven":
        return Reach(Undecided("capacity", "1/s", f"{NOT_REACHED}: {saturation.reason}"), reached)
    most = most_of(curve, found, beside=lambda step: _probe_rate(step, probe_is_load))
    return Reach(most.figure, None, saturation.knee, most.bounded_by)


def _rate(step: Step, probe_is_load: bool) -> float:
    return succeeded(step) + _probe_rate(step, probe_is_load)


def _probe_rate(step: Step, probe_is_load: bool) -> float:
    """Successes of the probes per second, where they ask what the load asks."""
    ended = sum(step.completed_trials)
    if not probe_is_load or not ended or not step.issued:
        return 0.0
    seconds = step.issued / (ended / len(step.completed_trials))  # of all trials together
    return sum(probe.count for probe in step.probes) / seconds


# --- the sentence ----------------------------------------------------------------------------------------


def _root(findings: Sequence[Finding]) -> Finding | None:
    """The weightiest finding of a limit that no other explains, if it is at least probable."""
    return next((f for f in _limits(findings) if f.grade >= Grade.PROBABLE), None)


def _limits(findings: Sequence[Finding]) -> list[Finding]:
    """Those that no other explains and that say more than how far figures go."""
    return [f for f in findings if f.explained_by is None and f.rule not in NOTES]


def _sentence(root: Finding | None, findings: Sequence[Finding], reach: Reach, told: Json) -> str:
    because, capacity = told.get("because"), reach.capacity
    healthy_below = next((f for f in findings if f.rule == healthy.ID), None)
    # Whoever searched for a limit is told first that none was reached.
    in_vain = healthy_below is not None and because is not None and isinstance(capacity, Undecided)
    suspected = None if in_vain else next(iter(_limits(findings)), None)
    is_short = because is not None and isinstance(capacity, Undecided) and _is_short(capacity)
    if root is not None and not in_vain:
        return _said(root)
    failing = {
        "harm": "too many requests failed and the load was ended",
        "fails_alone": "requests fail without any load",
        "refused": "every request is refused",
        "no_answer": "nothing came back",
        "broken": "a level of load could not be measured",
    }
    if because in failing:
        text = f"Undecided, {failing[str(because)]}: {told.get('words')}"
    elif suspected is not None and not is_short:
        return f"Undecided; suspected, not shown: {suspected.statement}."
    elif isinstance(capacity, Estimate):
        most = numbers.at_least(capacity) if reach.bounded_by else shown(capacity)
        text = f"It does {most}, and what holds it there could not be seen"
    elif isinstance(capacity, Undecided):
        text = f"Undecided: {_capacity_words(capacity, told)}"
    else:
        text = "Undecided: nothing was measured"
    reached = f"; {numbers.with_unit(reach.at_least, '1/s')} were reached" if reach.at_least else ""
    after = ""
    if healthy_below is not None:
        after = f" {_said(healthy_below)}"
    elif suspected is not None:
        after = f" Suspected, not shown: {suspected.statement}."
    return f"{text}{reached}.{after}"


def _said(finding: Finding) -> str:
    return f"{finding.statement} ({finding.grade.word})."


def _is_short(capacity: Undecided) -> bool:
    return capacity.reason.startswith(NOT_REACHED)


def _capacity_words(capacity: Undecided, told: Json) -> str:
    stood = {
        "budget": "the budget ended first",
        "rate_cap": "the rate cap stood in the way",
        "most_users": "more users were not allowed",
        "generator": "the generator was the limit",
        "interrupted": "it was ended on request",
    }.get(str(told.get("because")))
    is_short = _is_short(capacity)
    text = (
        f"the capacity is {capacity.reason}" if is_short else f"the capacity is not known: {capacity.reason}"
    )
    return text + (f"; {stood}" if stood else "")


# --- what others pay, what to do -------------------------------------------------------------------------


def _others(curve: Curve | None, told: Json) -> str:
    if curve is None or not curve.steps:
        return ""
    first, top = curve.steps[0], curve.steps[-1]
    probe = next((p for p in top.probes if isinstance(p.response.mean, Estimate)), None)
    light = None if probe is None else next((p for p in first.probes if p.label == probe.label), None)
    if probe is None or not isinstance(probe.response.mean, Estimate):
        return ""
    at = words.users(top.load) if curve.is_closed else f"{top.load:g} requests/s"
    who = "one more request of the same" if _probe_is_load(told) else probe.request
    text = f"{who} takes {shown(probe.response.mean)} at {at}"
    before = None if light is None else light.response.mean
    if light is None or first is top or not isinstance(before, Estimate):
        return f"{text}."
    text += f", {numbers.with_unit(before.point, 's')} at {first.load:g}"
    if _probe_is_load(told):
        return f"{text}; no cheaper URL was given to compare with."
    waits = probe.response.mean.point > WAITS * before.point and _waits_more(probe, light)
    return f"{text}: {'it waits for the others' if waits else 'it hardly waits for the others'}."


def _waits_more(probe: ProbeWatch, light: ProbeWatch) -> bool:
    now, then = probe.response.mean, light.response.mean
    if not isinstance(now, Estimate) or not isinstance(then, Estimate) or now.low is None:
        return True
    return now.low > (then.high if then.high is not None else then.point)


def _brings(root: Finding | None, curve: Curve | None) -> str:
    if root is None:
        return ""
    if root.predictions:
        return _foretold(root.predictions)
    if root.rule != saturation_plateau.ID or curve is None:
        return ""
    found = capacity_of(curve)
    if isinstance(found, Insufficient):
        return ""
    knee = next((s for s in curve.steps if s.load >= found.saturation.plateau_from), None)
    if knee is None or knee is found.top:
        return ""
    now, then = knee.response.mean, found.top.response.mean
    if not isinstance(now, Estimate) or not isinstance(then, Estimate):
        return ""
    return (
        f"a mean of {numbers.with_unit(now.point, 's')} (measured at {words.users(knee.load)}) in place of "
        f"{numbers.with_unit(then.point, 's')} at {found.top.load:g}, at the same throughput"
    )


def _foretold(predictions: Sequence[Prediction]) -> str:
    """A sentence for each remedy, and what they all take for granted."""
    sentences = []
    for remedy in dict.fromkeys(p.remedy for p in predictions):
        of_it = [p for p in predictions if p.remedy == remedy]
        if all(isinstance(p.after, Undecided) for p in of_it):
            text = shown(of_it[0].after)
        else:
            text = "; ".join(_change(p) for p in of_it)
        sentences.append(f"{remedy}: {text}." if remedy else f"{text}.")
    assumed = list(dict.fromkeys(p.assumes for p in predictions if p.assumes))
    if assumed:
        sentences.append(f"Assumed: {'; '.join([*assumed, NO_OTHER_LIMIT])}.")
    return " ".join(sentences)


def _change(prediction: Prediction) -> str:
    return f"{prediction.what} {short(prediction.before)} now, {shown(prediction.after)} then"


# --- what is not known -----------------------------------------------------------------------------------


def _unknown(
    curve: Curve | None,
    reach: Reach,
    root: Finding | None,
    findings: Sequence[Finding],
    tier: Tier,
    told: Json,
) -> list[Unknown]:
    found: list[Unknown] = []
    capacity = reach.capacity
    if not isinstance(capacity, Estimate):
        found.append(_why_no_capacity(capacity, told))
    elif reach.bounded_by:
        what = f"how much more than {numbers.with_unit(capacity.point, '1/s')} it can do: {reach.bounded_by}"
        found.append(Unknown(what, KEPT_BY.get(reach.bounded_by, "")))
    cause_is_known = root is not None and root.rule != saturation_plateau.ID
    if isinstance(capacity, Estimate) and not cause_is_known:
        found.append(_why_no_cause(curve, tier, told))
    for finding in findings:
        if finding.explained_by is None:
            found += _left_open(finding, tier)
    if curve is not None and curve.trials < 3:
        what = "how much every level varies from run to run: some had one trial only"
        found.append(Unknown(what, "a study with three trials of each level"))
    return found


def _left_open(finding: Finding, tier: Tier) -> list[Unknown]:
    """Rivals that could not be excluded, signals that were not there, and what the rule itself says."""
    seen_from = 0 if tier == "A" else 1
    rivals = [
        Unknown(f"{finding.rule}: {c.rival}: {c.text}", DECIDED_BY.get(c.rival, ("", ""))[seen_from])
        for c in finding.counter
        if c.ruled_out is None
    ]
    signals = [Unknown(f"{finding.rule}: {e.text}", "") for e in finding.evidence if e.passed is None]
    return [*rivals, *signals, *(Unknown(f"{finding.rule}: {text}", "") for text in finding.unknown)]


def _why_no_capacity(capacity: Figure, told: Json) -> Unknown:
    reason = "" if isinstance(capacity, Estimate) else capacity.reason
    because = str(told.get("because", ""))
    budget, cap = float(told.get("budget_s") or 90), float(told.get("rate_cap_per_s") or 0)
    most = int(told.get("most_users") or 0)
    decided_by = {
        "budget": f"more time: --budget {2 * budget:.0f}s",
        "rate_cap": f"a higher rate, where it does no harm: --rate-cap {2 * cap:g}",
        "most_users": f"more users: --max-users {2 * most}",
        "generator": "another machine for the generator, or a dearer request",
        "interrupted": "the same without Ctrl-C",
        "harm": "the service's own log at the moment when requests began to fail",
        "fails_alone": "the same request by hand: curl -i, then -m, -H, -b or --expect as it needs them",
        "refused": "credentials or headers with which the service does not refuse: -H",
        "no_answer": "the same request by hand, and a longer --timeout",
        "broken": "the record of the trial that failed: -o DIR",
    }.get(because, "more levels of load, beyond twice the highest")
    return Unknown(f"the capacity: {reason}", decided_by)


def _why_no_cause(curve: Curve | None, tier: Tier, told: Json) -> Unknown:
    what = "what holds the throughput there: work, a lock, a pool or a limit that was set"
    top = curve.steps[-1] if curve is not None and curve.steps else None
    if tier == "A":
        return Unknown(what, WATCH)
    if top is not None and _probe_is_load(told):
        return Unknown(what, "a cheap request beside the load, which tells who shares the queue: --probe URL")
    if tier == "B":
        return Unknown(what, GAUGES)
    return Unknown(what, "one knob changed at a time (workers, pool size), and the same again")


def _each_once(found: Sequence[Unknown]) -> tuple[Unknown, ...]:
    """Without repetitions; what would be decided by a measurement first."""
    once = {one.what: one for one in reversed(found)}
    kept = [once[what] for what in dict.fromkeys(one.what for one in found)]
    return tuple(sorted(kept, key=lambda one: not one.decided_by))


def _cautions(facts: Facts, told: Json, curve: Curve | None) -> tuple[str, ...]:
    found = [gate.text for gate in facts.gates if gate.passed is False]
    found += [f"not looked at: {gate.text}" for gate in facts.gates if gate.passed is None]
    found += [str(text) for text in told.get("cautions") or ()]
    if _probe_is_load(told):
        found.append("no cheap URL was given: the probe asks what the load asks, at a low rate (--probe URL)")
    late = curve is not None and any(p.is_late for step in curve.steps for p in step.probes)
    if late:
        found.append("probes were sent late at some level: what they paid includes the generator's lateness")
    return tuple(dict.fromkeys(found))


# --- the ladder ------------------------------------------------------------------------------------------


def _rungs(facts: Facts) -> list[Rung]:
    return [_rung(curve, step) for curve in facts.curves for step in curve.steps]


def _in_order(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """Curve by curve, ascending."""
    curves = list(dict.fromkeys(rung.curve for rung in rungs))
    return tuple(sorted(rungs, key=lambda rung: (curves.index(rung.curve), rung.users)))


def _rung(curve: Curve, step: Step) -> Rung:
    probe = next(iter(step.probes), None)
    times = None if probe is None else probe.response
    paid = (
        None
        if probe is None or times is None
        else ProbePaid(probe.request, times.mean, times.p99, probe.delayed, probe.count)
    )
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


def _ended_early(record: RunRecord) -> list[Rung]:
    """Levels of which no trial counts: what was seen of them, and why they do not."""
    complete = {trial.case["slug"] for trial in record.trials if trial.status is TrialStatus.COMPLETE}
    loads = {c["slug"]: c["workload"] for c in record.study["cases"] if c.get("purpose", "load") == "load"}
    last: dict[str, TrialRecord] = {}
    for trial in record.trials:
        if trial.case["slug"] not in complete and trial.case["slug"] in loads:
            last[trial.case["slug"]] = trial
    return [_unfinished(trial, loads[slug]) for slug, trial in last.items()]


def _unfinished(trial: TrialRecord, workload: Json) -> Rung:
    why = "; ".join(trial.reasons) or str(trial.status)
    none = NotMeasured("any", why)
    load = None if trial.result is None else trial.result.load
    failed: Figure = none
    if load is not None and load.requests.ended:
        share = 1 - load.requests.ok / load.requests.ended
        failed = Estimate("failed.share", "share", share, None, None, 1, load.requests.ended, "exact count")
    return Rung(
        curve=str(trial.case["experiment"]),
        users=float(workload.get("users") or workload.get("rate_per_s") or 0),
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


# --- what was asked --------------------------------------------------------------------------------------


def _target(study: Json) -> str:
    cases = study.get("cases") or ()
    entry = cases[0].get("entry") or {} if cases else {}
    return str(entry.get("url") or entry.get("service") or study["name"])


def _requests(curve: Curve | None, study: Json) -> tuple[str, ...]:
    if curve is not None and curve.steps:
        return tuple(dict.fromkeys(c.request for step in curve.steps for c in step.classes))
    cases = study.get("cases") or ()
    steps = [step for case in cases for scenario in case["scenarios"] for step in scenario["steps"]]
    return tuple(dict.fromkeys(f"{step['method']} {step['path']}" for step in steps))


def _tier(facts: Facts, study: Json) -> Tier:
    for case in study.get("cases") or ():
        outside = [case["outside"]] if case.get("outside") else []
        if any(service.get("scrape") for service in [*(case.get("services") or ()), *outside]):
            return "C"
    watched = any(step.processes for curve in facts.curves for step in curve.steps)
    return "B" if watched else "A"


def _probe_is_load(told: Json) -> bool:
    return bool((told.get("probe") or {}).get("is_load"))
