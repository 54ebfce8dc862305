"""Verdicts on the record, the conditions of the measurement, and the limits of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlens.diagnose import Verdict
from loadlens.diagnose.capacity import CurveCapacity
from loadlens.measure.case import CaseMeasures
from loadlens.measure.requests.log_rows import NOT_KEPT
from loadlens.measure.window import WHOLE, in_words
from loadlens.model.facts import Facts, Gate
from loadlens.model.recorded import Environment, Inventory, Prediction
from loadlens.model.report import AccountingRow, Badge, PublishedSection, State
from loadlens.present import numbers, words
from loadlens.report.build.brief import Brief

GATE_STATES: Mapping[bool | None, State] = {True: "ok", False: "caution", None: "unknown"}


# --- badges -----------------------------------------------------------------------------------------------


def badges(
    cases: Sequence[CaseMeasures],
    facts: Facts,
    accounting: Sequence[AccountingRow],
    published: PublishedSection | None,
    brief: Brief,
    *,
    apart: int,
) -> tuple[Badge, ...]:
    """Return verdicts on the record as a whole; `apart` trials of it sample stacks, and give no figures."""
    verdicts = [
        _valid(cases, brief, apart),
        *(_gate(gate) for gate in facts.gates if gate.name != "accounting"),
    ]
    verdicts.append(_accounting(facts, accounting))
    if published is not None:
        compared = [row for row in published.rows if row.shape in ("agrees", "differs")]
        if compared:
            close = sum(row.shape == "agrees" for row in compared)
            state: State = "ok" if close >= 0.8 * len(compared) else "caution"
            verdicts.append(Badge(state, f"shape agrees {close} of {len(compared)}", "published"))
    if brief.quick:
        verdicts.append(Badge("caution", "quick run: 1 trial a case", "limits"))
    return tuple(verdicts)


def _valid(cases: Sequence[CaseMeasures], brief: Brief, apart: int) -> Badge:
    planned = len(brief.trials) - apart
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


def _accounting(facts: Facts, accounting: Sequence[AccountingRow]) -> Badge:
    gate = facts.gate("accounting")
    counted = [row for row in accounting if row.observed is not None]
    if gate is None or not counted:
        return Badge("unknown", "the service counts no requests", "accounting")
    return Badge("ok" if gate.passed else "bad", "books balance" if gate.passed else gate.text, "accounting")


# --- conditions and environment ---------------------------------------------------------------------------


def conditions(brief: Brief, environment: Environment, cases: Sequence[CaseMeasures]) -> tuple[str, ...]:
    """Return the conditions of the measurement, in a few words each."""
    machine = environment.known
    parts = [words.plural(machine.cores_allowed, "core")] if machine.cores_allowed else []
    parts += [machine.cpu_model] if machine.cpu_model else []
    trials = {len(case.usable) for case in cases if case.usable}
    if trials:
        low, high = min(trials), max(trials)
        parts.append(
            f"{low} trial{'s' * (low != 1)} a case" if low == high else f"{low} to {high} trials a case"
        )
    if brief.quick:
        parts.append("quick profile")
    return tuple(parts)


def environment_rows(environment: Environment, inventory: Inventory) -> tuple[tuple[str, str], ...]:
    """Return everything that was read of the machine and the software."""
    groups = (
        (inventory.machine, "not known"),
        (inventory.limits, "no limit"),
        (inventory.software, "not known"),
    )
    rows = [
        (name.replace("_", " "), lack if value is None else _plain(name, value))
        for values, lack in groups
        for name, value in values.items()
    ]
    rows += [
        (f"built for {name}", _plain(name, built.packages)) for name, built in environment.builds.items()
    ]
    rows += [(f"{service} runs on", version) for service, version in environment.parts.items()]
    rows += [(f"calibrated ${each.name}", f"{each.value} ({each.run})") for each in environment.calibrated]
    rows += [("command", " ".join(environment.command))] if environment.command else []
    return tuple(rows)


def _plain(name: str, value: object) -> str:
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
    """Return the conditions that were not the same in all trials."""
    lines: dict[str, None] = {}
    for case in cases:
        for trial in case.trials:
            for name, change in trial.source.environment.items():
                before, now = (
                    change if isinstance(change, (list, tuple)) and len(change) == 2 else ("", change)
                )
                lines[f"{case.name}, {trial.source.name}: {name} {before} -> {now}"] = None
    return tuple(lines)


# --- limits -----------------------------------------------------------------------------------------------


def limits(
    cases: Sequence[CaseMeasures],
    facts: Facts,
    verdict: Verdict,
    capacities: Mapping[str, CurveCapacity],
    brief: Brief,
    damage: Sequence[str],
    predictions: Mapping[str, Prediction],
) -> tuple[str, ...]:
    """List what was thinned, left out, not watched or not identifiable, and what the figures assume."""
    lines = [f"quick profile: {text}" for text in brief.quick_differences]
    lines += brief.notes
    lines += [f"damaged record: {text}" for text in damage]
    window = brief.window
    if window != WHOLE:
        lines.append(f"figures are taken {in_words(window)}; the accounting is that of whole trials")
    lines += _trials_left_out(cases)
    lines += _cores(cases, facts.cores)
    lines += _external(cases)
    lines += rows_kept(cases)
    held = [case for case in cases if case.is_held_out]
    if held:
        lines.append("held-out cases are measured and shown; no rule and no curve uses them")
    lines += [
        f"{case.name} was not predicted: {why}" for case in held if (why := _not_predicted(case, predictions))
    ]
    lines += [f"{gate.text}" for gate in facts.gates if gate.passed is False]
    lines += [f"not looked at: {gate.text}" for gate in facts.gates if gate.passed is None]
    lines += [f"{finding.rule}: {text}" for finding in verdict.findings for text in finding.unknown]
    lines += _bounded(capacities)
    lines += _not_watched(cases)
    if any(len(case.usable) == 1 for case in cases):
        lines.append("cases with one trial: intervals say nothing about the variation between runs")
    return tuple(dict.fromkeys(lines))


def _not_predicted(case: CaseMeasures, predictions: Mapping[str, Prediction]) -> str | None:
    prediction = predictions.get(case.slug)
    return "no prediction was made before it ran" if prediction is None else prediction.undecided


def _bounded(capacities: Mapping[str, CurveCapacity]) -> list[str]:
    """Name curves whose throughput is only a lower bound of the capacity."""
    return [
        f"{label}: its throughput is a lower bound of the capacity: {reached.most.bounded_by}"
        for label, reached in capacities.items()
        if reached.most.bounded_by
    ]


def _trials_left_out(cases: Sequence[CaseMeasures]) -> list[str]:
    lines = []
    for case in cases:
        if not case.trials:
            lines.append(f"not run: {case.name}")
        for trial in case.trials:
            if not trial.is_usable:
                reason = "; ".join(trial.reasons) or "no figures"
                lines.append(f"{case.name}, {trial.source.name} is {trial.source.status}: {reason}")
    return lines


def _cores(cases: Sequence[CaseMeasures], cores: int) -> list[str]:
    beyond = [case.name for case in cases if not case.is_judged(cores)]
    if not beyond:
        return []
    return [f"shown but not judged, they need more than the {cores} cores here: {', '.join(beyond)}"]


def rows_kept(cases: Sequence[CaseMeasures]) -> list[str]:
    """Say where the record does not hold every request."""
    lines = []
    for case in cases:
        trials = [trial for trial in case.usable if trial.external is None and trial.load is not None]
        kept = {trial.thinned for trial in trials}
        if None in kept:
            lines.append(
                f"{case.name}: {NOT_KEPT}: sizes of bodies, kinds of failure and pauses are unknown; counts "
                "and times are of every request (--samples all keeps every row)"
            )
        elif most := max((k for k in kept if k), default=0):
            lines.append(
                f"{case.name}: 1 of every {2**most:,} requests has a row: sizes of bodies and kinds of "
                "failure are estimated from these, and pauses are not looked for; counts and times are of "
                "every request (--samples all keeps every row)"
            )
    return lines


def _external(cases: Sequence[CaseMeasures]) -> list[str]:
    """Describe loads that other programs made: only their own reports are known."""
    by_title: dict[str, list[CaseMeasures]] = {}
    for case in cases:
        if case.external is not None:
            by_title.setdefault(case.external.title, []).append(case)
    lines = []
    for title, own in by_title.items():
        names = ", ".join(case.name for case in own)
        text = f"made by {title}, whose accounting was not checked: {names}"
        text += "; its times begin when a request is sent"
        rounded = words.rounding(next((case.external.rounding_s for case in own if case.external), {}))
        lines.append(f"{text}; rounded by it: {rounded}" if rounded else text)
        generators = (trial.generator for case in own for trial in case.usable)
        notes = (note for generator in generators if generator is not None for note in generator.reasons)
        lines += dict.fromkeys(f"{title}: {note}" for note in notes)
    return lines


def _not_watched(cases: Sequence[CaseMeasures]) -> list[str]:
    usable = [trial for case in cases for trial in case.usable]
    if not usable:
        return []
    lines = []
    if not any(trial.resources.services for trial in usable):
        lines.append("not watched: the service's processes")
    if not any(trial.served.total for trial in usable):
        lines.append("not watched: response times as the service measures them")
    if not any(trial.probes for trial in usable):
        lines.append("not watched: no probe ran alongside the load")
    lines += dict.fromkeys(f"not read: {what}" for trial in usable for what in trial.runtime.unread)
    late = max((t.resources.tick_late_s or 0.0 for t in usable), default=0.0)
    if late > 0.5:
        lines.append(f"monitors read up to {numbers.with_unit(late, 's')} late")
    lines.append("not watched: memory bandwidth, locks inside libraries, anything on other machines")
    return lines


def next_commands(brief: Brief, command: Sequence[str], run_id: str) -> tuple[str, ...]:
    """Return commands that repeat the run and show the report again."""
    commands = [" ".join(command)] if command else []
    commands.append(f"loadlens report runs/{run_id}")
    if brief.quick:
        commands.append(f"loadlens run studies/{brief.name}")
    return tuple(dict.fromkeys(commands))
