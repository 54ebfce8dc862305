"""The first screen: the answer, what to do about it, who else suffers, how sure it is, what to run next.

Sentences are made from findings, effects and figures by rules that hold for any study.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from loadlens.diagnose import Verdict
from loadlens.diagnose.capacity import CurveCapacity
from loadlens.diagnose.rules.processor import host_interference
from loadlens.measure import figures
from loadlens.measure.case import CaseMeasures
from loadlens.measure.curve import Capacity, capacity_of
from loadlens.measure.curves import CurveCases
from loadlens.measure.whole_run import Measured
from loadlens.model.finding import Estimate, Finding, Grade, Undecided
from loadlens.model.notes import NOTES
from loadlens.model.report import Chart, Line
from loadlens.model.stacks import CodeEvidence
from loadlens.model.study import asks_nothing_more
from loadlens.present import numbers, words
from loadlens.report.build.brief import Brief
from loadlens.report.build.effects import Effects

CURVE, TIME = "chart-load-", "chart-demand-"  # anchors, before the name of the experiment
MOST_SENTENCES = 3
MOST_NAMED = 2  # curves
MOST_CURVES = 3  # whose capacity is said
MOST_GAINS = 3  # predictions of a remedy
# What other programs took is a condition of the measurement: the line of trust says it.
CONDITIONS = NOTES | {host_interference.ID}


@dataclass(frozen=True, slots=True)
class Opening:
    """The first screen, without the verdicts on the record."""

    answer: tuple[str, ...]  # the headline, then what follows from it
    lines: tuple[Line, ...]
    pictures: tuple[str, ...]  # anchors of charts


def opening(
    run: Measured,
    verdict: Verdict,
    changes: Effects | None,
    capacities: Mapping[str, CurveCapacity],
    charts: Sequence[Chart],
    brief: Brief,
    command: Sequence[str],
    code: CodeEvidence,
) -> Opening:
    """Return the answer to the study's question, or the limit where its question names no factor."""
    plain = [finding for finding in verdict.findings if finding.explained_by is None]
    limits = [finding for finding in plain if finding.rule not in CONDITIONS]
    causes = [finding for finding in limits if finding.grade >= Grade.PROBABLE]
    cause = causes[0] if causes else None
    limit = [f"{_placed(finding, run.groups)}." for finding in causes[:2]]
    effects = [] if changes is None else [f"{line}." for line in changes.answers]
    leads = changes is not None and (changes.is_answer or asks_nothing_more(brief.question) or not causes)
    leads = leads and bool(effects)
    first, then = (effects, limit) if leads else (limit, effects)
    answer = [*first[:1], *then[:1], *first[1:2], *then[1:2]]
    if not causes:
        answer.append(_plain_figures(run.cases, list(capacities.values())))
        if limits and not leads:
            answer.append(f"Suspected, not confirmed: {_placed(limits[0], run.groups)}.")
        answer += [
            f"{f.statement}." for f in plain if f.rule in NOTES and f.grade >= Grade.PROBABLE and not limits
        ][:1]
    experiment = changes.lead if leads and changes is not None else _experiment_of(cause, run.groups)
    return Opening(
        tuple(answer[:MOST_SENTENCES]),
        tuple(_lines(run, cause, capacities, brief, command, code)),
        tuple(_pictures(charts, experiment, None if changes is None else changes.section.chart, leads=leads)),
    )


def _placed(finding: Finding, groups: Sequence[CurveCases]) -> str:
    """Return the statement of a finding, with the curves where it holds unless it holds everywhere."""
    labels = [group.label for group in groups if group.is_curve]
    held = [label for label in labels if label in finding.curves]
    if not held or len(held) == len(labels):
        return finding.statement
    where = "; ".join(held) if len(held) <= MOST_NAMED else f"{len(held)} of {len(labels)} curves"
    return f"{finding.statement} ({where})"


def _plain_figures(cases: Sequence[CaseMeasures], capacities: Sequence[CurveCapacity]) -> str:
    """Return the highest capacity, or else the figures of the case with the highest throughput."""
    limited = [reached for reached in capacities if isinstance(reached.most.figure, Estimate)]
    if limited:
        best = max(limited, key=lambda reached: figures.point(reached.most.figure))
        where = f" ({best.group.label})" if len(capacities) > 1 else ""
        return f"The capacity is {best.most.words}{where}; what limits it was not found."
    measured = [(case.throughput.point, case) for case in cases if isinstance(case.throughput, Estimate)]
    undecided = [(figure.reason, case) for case in cases if isinstance(figure := case.throughput, Undecided)]
    if not measured and undecided:
        return f"Undecided: {undecided[0][0]} requests ({undecided[0][1].name})."
    if not measured:
        reasons = dict.fromkeys(case.why_nothing() for case in cases)
        begin = "No trial is valid" if any(case.trials for case in cases) else "Nothing was measured"
        return f"{begin}: {'; '.join(reasons) or 'no case was run'}."
    case = max(measured, key=lambda pair: pair[0])[1]
    kind = "response" if case.external is None else "service"
    what = "mean" if kind == "response" else "mean service time"
    return (
        f"{case.name} reaches {numbers.shown(case.throughput)}, {what} "
        f"{numbers.shown(case.mean(kind=kind))}; {numbers.shown(case.failed_share)} fail."
    )


# --- pictures ---------------------------------------------------------------------------------------------


def _experiment_of(cause: Finding | None, groups: Sequence[CurveCases]) -> str:
    held = () if cause is None else cause.curves
    return next((group.experiment for group in groups if group.label in held), "")


def _pictures(charts: Sequence[Chart], experiment: str, effects: str | None, *, leads: bool) -> Iterator[str]:
    """Yield the anchors of the load curve, or of the effects, and of the parts of a request's time."""
    anchors = [chart.anchor for chart in charts if chart.kind in ("load_curve", "demand")]
    curves = [anchor for anchor in anchors if anchor.startswith(CURVE)]
    if CURVE + experiment in curves:
        yield CURVE + experiment
    elif effects is not None and (leads or not curves):
        yield effects
    else:
        yield from curves[:1]
        experiment = curves[0].removeprefix(CURVE) if curves else experiment
    times = [anchor for anchor in anchors if anchor not in curves]
    yield from sorted(times, key=lambda anchor: anchor != TIME + experiment)[:1]


# --- lines ------------------------------------------------------------------------------------------------


def _lines(
    run: Measured,
    cause: Finding | None,
    capacities: Mapping[str, CurveCapacity],
    brief: Brief,
    command: Sequence[str],
    code: CodeEvidence,
) -> Iterator[Line]:
    texts = (
        ("capacity", _capacity(run, cause, capacities)),
        ("code", code.sentence),
        ("setting", "; ".join(f"{place.text}, “{place.source}”" for place in code.settings)),
        ("fix", "" if cause is None else cause.advice),
        ("predicted", "" if cause is None else "; ".join(_gains(cause))),
        ("measured", "" if cause is None else _measured_change(cause, run.groups)),
        ("who waits", _others(cause, run.groups)),
        ("how sure", "" if cause is None else _how_sure(cause)),
    )
    yield from (Line(label, text) for label, text in texts if text)
    yield from _next(cause, brief, command)


def _capacity(run: Measured, cause: Finding | None, capacities: Mapping[str, CurveCapacity]) -> str:
    """Return the capacity of each curve with its interval, origin and knee; else why it is not known."""
    held = () if cause is None else cause.curves
    ranked = sorted(capacities.items(), key=lambda pair: pair[0] not in held)
    parts = []
    for label, reached in ranked[:MOST_CURVES]:
        knee = reached.capacity.saturation.knee
        text = numbers.show(reached.most.figure).text
        if reached.most.bounded_by:
            text = f"{reached.most.words}: {reached.most.bounded_by}"
        text += "" if knee is None else f", knee at {words.users(knee)}"
        parts.append(f"{label}: {text}" if len(capacities) > 1 else text)
    if len(ranked) > MOST_CURVES:
        parts.append(f"{words.plural(len(ranked) - MOST_CURVES, 'more curve')} under Cases")
    if parts:
        return "; ".join(parts)
    looked = [look for curve in run.curves if isinstance(look := capacity_of(curve), Capacity)]
    return f"not reached: {looked[0].saturation.reason}" if looked else ""


def _gains(cause: Finding) -> list[str]:
    """Return the predicted effects of each remedy that could be computed."""
    by_remedy: dict[str, list[str]] = {}
    for gain in cause.predictions:
        if isinstance(gain.before, Estimate) and isinstance(gain.after, Estimate):
            change = f"{gain.what} {numbers.short(gain.before)} → {numbers.shown(gain.after)}"
            by_remedy.setdefault(gain.remedy, []).append(change)
    return [
        f"{remedy}: {', '.join(changes[:MOST_GAINS])}" if remedy else ", ".join(changes[:MOST_GAINS])
        for remedy, changes in by_remedy.items()
    ]


def _measured_change(finding: Finding, groups: Sequence[CurveCases]) -> str:
    """Return what was measured on a held-out curve that differs from the finding's in what was changed."""
    for base in groups:
        if base.is_held_out or base.label not in finding.curves:
            continue
        for changed in groups:
            more = {f: level for f, level in changed.levels.items() if base.levels.get(f) != level}
            same = all(changed.levels.get(f) == level for f, level in base.levels.items())
            if changed.is_held_out and changed.experiment == base.experiment and same and more:
                sentence = _compared(base, changed, more)
                if sentence:
                    return sentence
    return ""


def _compared(base: CurveCases, changed: CurveCases, more: Mapping[str, str]) -> str:
    """Compare throughput and the probe, or else the load itself, at the highest level that both have."""
    before = {case.reference.plan.load: case for case in base.cases if case.reference is not None}
    for case in reversed(changed.cases):
        was = None if case.reference is None else before.get(case.reference.plan.load)
        if was is None or case.reference is None:
            continue
        name = next((name for name in case.probe_names if name in was.probe_names), "")
        times = (was.probe_mean(name), case.probe_mean(name)) if name else (was.mean(), case.mean())
        if not all(isinstance(figure, Estimate) for figure in times):
            continue
        levels = ", ".join(f"{factor}={level}" for factor, level in more.items())
        return (
            f"{levels} at {case.reference.plan.load:g} users: {numbers.short(was.throughput)} → "
            f"{numbers.shown(case.throughput)}; {name or 'a request'} takes {numbers.short(times[0])} → "
            f"{numbers.shown(times[1])}"
        )
    return ""


def _others(cause: Finding | None, groups: Sequence[CurveCases]) -> str:
    """Return what the load does to a probe: its mean at the highest and at the lowest level of one curve."""
    held = () if cause is None else cause.curves
    curves = [group for group in groups if group.is_curve]
    for group in sorted(curves, key=lambda g: (g.label not in held, -len(g.cases))):
        for name in group.cases[-1].probe_names:
            seen = [
                (case.reference.plan.load, mean, case)
                for case in group.cases
                if case.reference is not None and isinstance(mean := case.probe_mean(name), Estimate)
            ]
            if seen:
                load, mean, case = seen[-1]
                request = words.probe(name, case.probe_streams(name)[0].plan.steps[0].request)
                closed = case.reference is not None and case.reference.plan.is_closed
                at = words.users(load, exactly=True) if closed else f"{load:g} requests/s"
                first = f", {numbers.short(seen[0][1])} at {seen[0][0]:g}" if len(seen) > 1 else ""
                where = f" ({group.label})" if len(curves) > 1 else ""
                return f"{request} takes {numbers.shown(mean)} at {at}{first}{where}"
    return ""


def _how_sure(cause: Finding) -> str:
    """Return the grade of the answer, and what stands in the way of more."""
    open_rivals = [counter.rival for counter in cause.counter if counter.ruled_out is not True]
    missing = [piece.signal for piece in cause.evidence if piece.passed is not True]
    if open_rivals:
        return f"{cause.grade.word}: not excluded: {', '.join(open_rivals)}"
    if missing:
        return f"{cause.grade.word}: not seen: {', '.join(missing)}"
    passed, excluded = len(cause.evidence), len(cause.counter)
    return (
        f"{cause.grade.word}: {words.plural(passed, 'signal')} passed, "
        f"{words.plural(excluded, 'other cause')} excluded"
    )


def _next(cause: Finding | None, brief: Brief, command: Sequence[str]) -> Iterator[Line]:
    """Yield the command that brings more certainty, and the experiment that would confirm the cause."""
    if brief.quick and command:
        yield Line("next", whole_study(command), is_command=True)
    elif "explain" in command[1:2]:
        target = next((part for part in command if "://" in part), "URL")
        yield Line("next", f"loadlens init {target}", is_command=True)
    if cause is not None:
        yield Line("to confirm", cause.confirm)


def whole_study(command: Sequence[str]) -> str:
    """Return the command of a quick run without what made it quick and without its place."""
    kept: list[str] = []
    for part, before in zip(command, ("", *command), strict=False):
        if part not in ("--quick", "--out", "-o", "-q", "--quiet") and before not in ("--out", "-o"):
            kept.append(part)
    return " ".join(kept)
