"""The first five lines: the answer, its badges, the conditions; and what the report must admit.

Sentences are made from findings and figures by rules that hold for any study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loadlens.diagnose import Verdict
from loadlens.diagnose.capacity import Reached
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curves import CurveCases
from loadlens.measure.source import Json
from loadlens.measure.window import WHOLE, in_words
from loadlens.model.facts import Facts, Gate
from loadlens.model.finding import Estimate, Finding, Grade, Undecided
from loadlens.model.notes import NOTES
from loadlens.model.report import AccountingRow, Badge, PublishedSection, State
from loadlens.present import numbers, words
from loadlens.study.plan.reporting import window_of

MOST_ANSWERS = 2
MOST_NAMED = 2  # curves
GATE_STATES: Mapping[bool | None, State] = {True: "ok", False: "caution", None: "unknown"}


def answer(
    verdict: Verdict, cases: Sequence[CaseMeasures], groups: Sequence[CurveCases] = ()
) -> tuple[str, ...]:
    """One or two sentences with numbers: what the weightiest findings say; else the figures themselves."""
    plain = [f for f in verdict.findings if f.explained_by is None]
    limits = [f for f in plain if f.rule not in NOTES]
    causes = [f for f in limits if f.grade >= Grade.PROBABLE]
    if causes:
        first = causes[0]
        found = [f"{_placed(first, groups)}.", first.explanation]
        found += _held_out(first, groups)
        found += [f"{_placed(finding, groups)}." for finding in causes[1:MOST_ANSWERS]]
        return tuple(found)
    if limits:
        return (f"Suspected, not shown: {_placed(limits[0], groups)}.", _plain_figures(cases))
    notes = [f"{f.statement}." for f in plain if f.grade >= Grade.PROBABLE]
    return (_plain_figures(cases), *notes[:1])


def _placed(finding: Finding, groups: Sequence[CurveCases]) -> str:
    """What it says, and where it holds when that is not everywhere: one case's limit is not the study's."""
    labels = [group.label for group in groups if group.is_curve]
    held = [label for label in labels if label in finding.curves]
    if not held or len(held) == len(labels):
        return finding.statement
    where = "; ".join(held) if len(held) <= MOST_NAMED else f"{len(held)} of {len(labels)} curves"
    return f"{finding.statement} ({where})"


def _held_out(finding: Finding, groups: Sequence[CurveCases]) -> list[str]:
    """What was measured where something was changed: the held-out curve beside the one of the finding."""
    for base in groups:
        if base.is_held_out or base.label not in finding.curves:
            continue
        for changed in groups:
            more = {f: level for f, level in changed.levels.items() if base.levels.get(f) != level}
            same = all(changed.levels.get(f) == level for f, level in base.levels.items())
            if changed.is_held_out and changed.experiment == base.experiment and same and more:
                sentence = _beside(base, changed, more)
                if sentence:
                    return [sentence]
    return []


def _beside(base: CurveCases, changed: CurveCases, more: Mapping[str, str]) -> str | None:
    """The probe, or else the load itself, at the highest level that both have."""
    before = {case.reference.plan.load: case for case in base.cases if case.reference is not None}
    for case in reversed(changed.cases):
        if case.reference is None or case.reference.plan.load not in before:
            continue
        load = case.reference.plan.load
        name = next(iter(case.probe_names), "")
        now = case.probe_mean(name) if name else case.mean()
        was = before[load].probe_mean(name) if name in before[load].probe_names else before[load].mean()
        if isinstance(now, Estimate) and isinstance(was, Estimate):
            levels = ", ".join(f"{factor}={level}" for factor, level in more.items())
            what = name or "a request"
            return (
                f"Measured with {levels} at {load:g} users: {what} takes {numbers.show(now).with_interval} "
                f"in place of {numbers.show(was).short}."
            )
    return None


def _plain_figures(cases: Sequence[CaseMeasures]) -> str:
    """The case with the highest throughput, in figures."""
    known = [(case.throughput.point, case) for case in cases if isinstance(case.throughput, Estimate)]
    undecided = [(found.reason, case) for case in cases if isinstance(found := case.throughput, Undecided)]
    if not known and undecided:
        return f"Undecided: {undecided[0][0]} requests ({undecided[0][1].name})."
    if not known:
        reasons = dict.fromkeys(case.why_nothing() for case in cases)
        return f"Nothing was measured: {'; '.join(reasons) or 'no case was run'}."
    case = max(known, key=lambda pair: pair[0])[1]
    rate, failed = numbers.show(case.throughput), numbers.show(case.failed_share)
    kind = "response" if case.teller is None else "service"
    mean = numbers.show(case.mean(kind=kind))
    what = "mean" if kind == "response" else "mean service time"
    return (
        f"{case.name} reaches {rate.with_interval} requests, {what} {mean.with_interval}; "
        f"{failed.with_interval} fail."
    )


# --- badges -----------------------------------------------------------------------------------------------


def badges(
    cases: Sequence[CaseMeasures],
    facts: Facts,
    books: Sequence[AccountingRow],
    published: PublishedSection | None,
    study: Json,
) -> tuple[Badge, ...]:
    """Verdicts on the record as a whole."""
    found = [_valid(cases, study), *(_gate(gate) for gate in facts.gates if gate.name != "accounting")]
    found.append(_books(facts, books))
    if published is not None:
        known = [row for row in published.rows if row.shape in ("agrees", "differs")]
        if known:
            close = sum(row.shape == "agrees" for row in known)
            state: State = "ok" if close >= 0.8 * len(known) else "caution"
            found.append(Badge(state, f"shape agrees {close} of {len(known)}", "published"))
    if study.get("quick"):
        found.append(Badge("caution", "quick run: 1 trial a case", "limits"))
    return tuple(found)


def _valid(cases: Sequence[CaseMeasures], study: Json) -> Badge:
    planned = len(study.get("trials", ()))
    used = sum(len(case.usable) for case in cases)
    text = f"{used} of {planned} trials valid"
    if not used:
        return Badge("bad", text, "cases")
    return Badge("ok" if used == planned else "caution", text, "cases")


def _gate(gate: Gate) -> Badge:
    state = GATE_STATES[gate.passed]
    if gate.name == "counting" and gate.passed is False:
        state = "bad"
    text = gate.text.partition(" (")[0]  # the cases stand in the limits
    return Badge(state, text, "accounting" if gate.name == "counting" else "environment")


def _books(facts: Facts, books: Sequence[AccountingRow]) -> Badge:
    gate = facts.gate("accounting")
    known = [row for row in books if row.observed is not None]
    if gate is None or not known:
        return Badge("unknown", "the service counts no requests", "accounting")
    return Badge("ok" if gate.passed else "bad", "books balance" if gate.passed else gate.text, "accounting")


# --- conditions and environment ---------------------------------------------------------------------------


def conditions(study: Json, environment: Mapping[str, Any], cases: Sequence[CaseMeasures]) -> tuple[str, ...]:
    """Where and how it was measured, in a few words each."""
    machine = environment.get("machine") or {}
    found = []
    if machine.get("cores_allowed"):
        found.append(words.plural(int(machine["cores_allowed"]), "core"))
    if machine.get("cpu_model"):
        found.append(str(machine["cpu_model"]))
    trials = {len(case.usable) for case in cases if case.usable}
    if trials:
        low, high = min(trials), max(trials)
        found.append(
            f"{low} trial{'s' * (low != 1)} a case" if low == high else f"{low} to {high} trials a case"
        )
    if study.get("quick"):
        found.append("quick profile")
    return tuple(found)


def environment_rows(environment: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Everything that was read of the machine and the software."""
    found = []
    for group in ("machine", "limits", "software"):
        for name, value in (environment.get(group) or {}).items():
            no_limit = group == "limits" and value is None
            found.append((name.replace("_", " "), "no limit" if no_limit else _plain(name, value)))
    for service, built in (environment.get("builds") or {}).items():
        packages = built.get("packages") or {} if isinstance(built, Mapping) else built
        found.append((f"built for {service}", _plain("packages", packages)))
    for service, said in (environment.get("parts") or {}).items():
        found.append((f"{service} runs on", str(said)))
    for one in environment.get("calibrated") or ():
        found.append((f"calibrated ${one['name']}", f"{one['value']} ({one['run']})"))
    command = environment.get("command")
    if command:
        found.append(("command", " ".join(str(part) for part in command)))
    return tuple(found)


def _plain(name: str, value: object) -> str:
    if value is None:
        return "not known"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name.endswith("_bytes") and isinstance(value, (int, float)):
        return numbers.with_unit(float(value), "bytes")
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {part}" for key, part in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(part) for part in value) or "none"
    return str(value)


def environment_differences(cases: Sequence[CaseMeasures]) -> tuple[str, ...]:
    """What was not the same in all trials."""
    found: dict[str, None] = {}
    for case in cases:
        for trial in case.trials:
            for name, change in trial.source.environment.items():
                before, now = (
                    change if isinstance(change, (list, tuple)) and len(change) == 2 else ("", change)
                )
                found[f"{case.name}, {trial.source.name}: {name} {before} -> {now}"] = None
    return tuple(found)


# --- limits -----------------------------------------------------------------------------------------------


def limits(
    cases: Sequence[CaseMeasures],
    facts: Facts,
    verdict: Verdict,
    capacities: Mapping[str, Reached],
    study: Json,
    damage: Sequence[str],
    predictions: Mapping[str, Mapping[str, Any]],
) -> tuple[str, ...]:
    """What was thinned, left out, not watched or not identifiable, and what the figures assume."""
    found = [f"quick profile: {text}" for text in study.get("quick_differences") or ()]
    found += [str(note) for note in study.get("notes") or ()]
    found += [f"damaged record: {text}" for text in damage]
    window = window_of(study.get("report") or {})
    if window != WHOLE:
        found.append(f"figures are taken {in_words(window)}; the accounting is that of whole trials")
    found += _trials_left_out(cases)
    found += _cores(cases, facts.cores)
    found += _told(cases)
    held = [case for case in cases if case.is_held_out]
    if held:
        found.append("held-out cases are measured and shown; no rule and no curve uses them")
    found += [
        f"{case.name} was not predicted: {why}" for case in held if (why := _not_predicted(case, predictions))
    ]
    found += [f"{gate.text}" for gate in facts.gates if gate.passed is False]
    found += [f"not looked at: {gate.text}" for gate in facts.gates if gate.passed is None]
    found += [f"{finding.rule}: {text}" for finding in verdict.findings for text in finding.unknown]
    found += _bounded(capacities)
    found += _not_watched(cases)
    if any(len(case.usable) == 1 for case in cases):
        found.append("cases with one trial: intervals say nothing about the variation between runs")
    return tuple(dict.fromkeys(found))


def _not_predicted(case: CaseMeasures, predictions: Mapping[str, Mapping[str, Any]]) -> str | None:
    told = predictions.get(case.slug)
    return "nobody was asked before it ran" if told is None else told.get("undecided")


def _bounded(capacities: Mapping[str, Reached]) -> list[str]:
    """Curves that show no more than what the service can do at least."""
    return [
        f"{label}: its throughput is a lower bound of the capacity: {reached.bounded_by}"
        for label, reached in capacities.items()
        if reached.bounded_by and reached.capacity.saturation.verdict != "underdriven"
    ]


def _trials_left_out(cases: Sequence[CaseMeasures]) -> list[str]:
    found = []
    for case in cases:
        if not case.trials:
            found.append(f"not run: {case.name}")
        for trial in case.trials:
            if not trial.is_usable:
                reason = "; ".join(trial.reasons) or "no figures"
                found.append(f"{case.name}, {trial.source.name} is {trial.source.status}: {reason}")
    return found


def _cores(cases: Sequence[CaseMeasures], cores: int) -> list[str]:
    beyond = [case.name for case in cases if not case.is_judged(cores)]
    if not beyond:
        return []
    return [f"shown but not judged, they need more than the {cores} cores here: {', '.join(beyond)}"]


def _told(cases: Sequence[CaseMeasures]) -> list[str]:
    """Loads that other programs made: what is known of them is what they say."""
    by_title: dict[str, list[CaseMeasures]] = {}
    for case in cases:
        if case.teller is not None:
            by_title.setdefault(case.teller.title, []).append(case)
    found = []
    for title, own in by_title.items():
        names = ", ".join(case.name for case in own)
        text = f"made by {title}, whose books nobody checked: {names}; its times begin when a request is sent"
        rounded = words.rounding(next((case.teller.rounding_s for case in own if case.teller), {}))
        found.append(f"{text}; rounded by it: {rounded}" if rounded else text)
        generators = (trial.generator for case in own for trial in case.usable)
        notes = (note for generator in generators if generator is not None for note in generator.reasons)
        found += dict.fromkeys(f"{title}: {note}" for note in notes)
    return found


def _not_watched(cases: Sequence[CaseMeasures]) -> list[str]:
    usable = [trial for case in cases for trial in case.usable]
    if not usable:
        return []
    found = []
    if not any(trial.resources.services for trial in usable):
        found.append("not watched: the service's processes")
    if not any(trial.served.total for trial in usable):
        found.append("not watched: response times as the service measures them")
    if not any(trial.probes for trial in usable):
        found.append("not watched: no probe ran beside the load")
    found += dict.fromkeys(f"not read: {what}" for trial in usable for what in trial.told.unread)
    late = max((t.resources.tick_late_s or 0.0 for t in usable), default=0.0)
    if late > 0.5:
        found.append(f"monitors read up to {numbers.with_unit(late, 's')} late")
    found.append("not watched: memory bandwidth, locks inside libraries, anything on other machines")
    return found


def next_commands(study: Json, environment: Mapping[str, Any], run_id: str) -> tuple[str, ...]:
    """How to repeat it and how to look at it again."""
    found = []
    command = environment.get("command")
    if command:
        found.append(" ".join(str(part) for part in command))
    found.append(f"loadlens report runs/{run_id}")
    if study.get("quick"):
        found.append(f"loadlens run studies/{study['name']}")
    return tuple(dict.fromkeys(found))
