"""The results of the verbs in one form: a load of `hit`, an answer of `explain`, the report of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Final

from loadlens.model.comparison import Comparison, History
from loadlens.model.explanation import Explanation, Rung
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import Matrix, ObjectiveRow, Report, State
from loadlens.model.result import EngineResult, StepResult, StreamResult
from loadlens.present import comparison_text, history_text, numbers, words
from loadlens.report.write.hit_figures import MIXED, figure
from loadlens.report.write.result import Result, Row
from loadlens.report.write.terminal.explanation_text import MOST_CAUTIONS, capacity_in_words

# Figures of the whole load on the page: the service time differs in an open loop only.
ON_PAGE: Final = (
    "throughput",
    *(f"response_time.{statistic}" for statistic in ("mean", "p50", "p90", "p95", "p99", "p999")),
)
STATISTICS: Final = ("mean", "p50", "p75", "p90", "p95", "p99", "p999")
OF_STEPS: Final = ("throughput", "response_time.mean", "response_time.p50", "response_time.p99")
TIMES: Final = {"": "response_time", "service": "service_time"}  # by the first part of a key of a matrix
# Ends of a search by failures of the service.
FAILED: Final = ("harm", "fails_alone", "refused", "no_answer", "service_ended")


def of_load(
    title: str,
    result: EngineResult,
    lines: Sequence[str],
    objectives: tuple[ObjectiveRow, ...],
    *,
    failure: str = "",
    error: str = "",
) -> Result:
    """Return the result of one load; one that was changed while it ran has counts and no other figures.

    Args:
        title: What was loaded.
        result: The engine's result.
        lines: The answer, and what is worth a look.
        objectives: Judged objectives.
        failure: Reason if no request succeeded.
        error: Reason if the load is invalid.
    """
    stream = result.streams[0]
    statuses = " · ".join(f"{code}: {numbers.count(count)}" for code, count in stream.status.items())
    return Result(
        title,
        (*lines, *([f"status {statuses}"] if statuses else [])),
        objectives,
        tuple(_load_rows(stream, is_mixed=bool(result.load_changes))),
        subject="load",
        seconds=result.measured_s,
        failure=failure,
        error=error or ("" if failure or not result.load_changes else _changes(result)),
    )


def _changes(result: EngineResult) -> str:
    """Describe how a load was changed while it ran."""
    return f"exploratory: {MIXED}: {'; '.join(change.words for change in result.load_changes)}"


def _load_rows(stream: StreamResult, *, is_mixed: bool) -> Iterator[Row]:
    parts: list[tuple[str, StreamResult | StepResult]] = [("", stream)]
    if len(stream.steps) > 1:
        parts += [(step.name, step) for step in stream.steps]
    for step, part in parts:
        for each in _figures(part):
            is_shown = each.metric in (OF_STEPS if step else ON_PAGE)
            is_shown |= stream.kind == "open" and each.metric == "service_time.mean"
            label = words.metric(each.metric) if is_shown else ""
            unit = "1/s" if each.metric == "throughput" else "s"
            value = NotMeasured(each.metric, MIXED) if is_mixed else each
            yield Row(each.metric, value, unit, step=step, label=label)
        for kind, count in asdict(part.requests).items():
            yield Row(f"requests.{kind}", count, "requests", step=step)
    for code, count in stream.status.items():
        yield Row(f"status.{code}", count, "answers")
    for kind, error in stream.errors.items():
        yield Row(f"errors.{kind}", error.count, "requests")


def _figures(part: StreamResult | StepResult) -> Iterator[Figure]:
    """Return throughput and times of a load or of one of its requests."""
    yield figure("throughput", "1/s", part.throughput_rps, part.response_time_s.count)
    for block, times in (("response_time", part.response_time_s), ("service_time", part.service_time_s)):
        for statistic in STATISTICS:
            yield figure(f"{block}.{statistic}", "s", times.quantity(statistic), times.count)


def of_explanation(answer: Explanation) -> Result:
    """Return the result of a search."""
    named = (
        ("capacity", capacity_in_words(answer)),
        ("time", answer.time),
        ("others", answer.others),
        ("do", answer.do),
        ("brings", answer.brings),
        ("unknown", answer.unknown[0].what if answer.unknown else ""),
    )
    rows = [Row("capacity", answer.capacity, "1/s", label="capacity")]
    if answer.at_least is not None:
        rows.append(Row("capacity.reached", answer.at_least, "1/s"))
    rates = answer.rates
    if rates is not None:
        rows.append(Row("rate.meets", rates.figure, label="highest rate that meets the objectives"))
    if answer.knee_users is not None:
        rows.append(Row("knee", answer.knee_users, "users"))
    has_curves = len({rung.curve for rung in answer.ladder}) > 1
    for rung in answer.ladder:
        rows += _rung_rows(rung, f"{rung.curve}, {rung.users:g}" if has_curves else words.users(rung.users))
    is_failed = answer.stopped_because in FAILED
    is_measured = any(isinstance(rung.throughput, Estimate) for rung in answer.ladder)
    return Result(
        f"{'explain' if answer.rates is None else 'capacity'} {answer.target}: {', '.join(answer.requests)}",
        (
            *([] if rates is None else [rates.sentence]),
            answer.sentence,
            *(f"{label}: {text}" for label, text in named if text),
            *(f"{words.GLYPHS['caution']} {text}" for text in answer.cautions[:MOST_CAUTIONS]),
        ),
        # The level that was judged is part of the verdict: a name that changes is another test to CI systems.
        tuple(
            replace(row, word=", ".join(filter(None, (row.word, row.case))), case="")
            for row in answer.objectives
        ),
        tuple(rows),
        subject="search",
        seconds=answer.used_s,
        failure=answer.sentence if is_failed else "",
        error="" if is_failed or is_measured else answer.sentence,
        picture=_curve(answer),
    )


def _curve(answer: Explanation) -> str:
    """Return throughput by users as a chart that GitHub and GitLab draw (Mermaid); empty for one level."""
    levels = {
        rung.users: rung.throughput.point
        for rung in answer.ladder
        if isinstance(rung.throughput, Estimate) and rung.curve == answer.ladder[0].curve
    }
    if len(levels) < 2:
        return ""
    users = ", ".join(f'"{users:g}"' for users in sorted(levels))
    rates = ", ".join(f"{levels[users]:.4g}" for users in sorted(levels))
    lines = (
        "xychart-beta",
        '    title "requests/s by users"',
        f"    x-axis [{users}]",
        '    y-axis "requests/s"',
        f"    line [{rates}]",
    )
    return "\n".join(("```mermaid", *lines, "```"))


def _rung_rows(rung: Rung, case: str) -> Iterator[Row]:
    for metric, unit, value, label in (
        ("throughput", "1/s", rung.throughput, "throughput"),
        ("response_time.mean", "s", rung.mean, "mean"),
        ("response_time.p50", "s", rung.p50, "p50"),
        ("response_time.p99", "s", rung.p99, "p99"),
        ("failed.share", "share", rung.failed, "failed"),
    ):
        yield Row(metric, value, unit, case, note=rung.ended_early, label=label)
    if rung.cpu_cores is not None:
        yield Row("cpu", rung.cpu_cores, "cores", case)
    if rung.probe is not None:
        probe = rung.probe
        yield Row("response_time.mean", probe.mean, "s", case, probe.request, label=probe.request)
        yield Row("response_time.p99", probe.p99, "s", case, probe.request)
        yield Row("delayed.share", probe.delayed, "share", case, probe.request)


def of_comparison(answer: Comparison) -> Result:
    """Return the result of a comparison; its objective is that the second version is no slower."""
    rows = []
    for effect in answer.effects:
        name = words.metric(effect.metric)
        for version, value in ((answer.first, effect.before), (answer.second, effect.after)):
            label = f"{name}, {version}"
            rows.append(Row(effect.metric, value, effect.unit, effect.case, note=version, label=label))
        note = comparison_text.verdict_of(effect)
        ratio = f"{effect.metric}.ratio"
        rows.append(Row(ratio, effect.ratio, "ratio", effect.case, note=note, label=f"{name}, ratio"))
    main = next((effect for effect in answer.effects if effect.is_headline), None)
    state: State = "unknown" if answer.verdict == "undecided" else "bad" if answer.is_missed else "ok"
    worse = (effect for effect in answer.effects if effect.change == "worse" and effect.is_beyond)
    decides = next(worse, main) if state == "bad" else main
    judged: Figure = (
        NotMeasured("ratio", "nothing was measured of both") if decides is None else decides.ratio
    )
    word = {"ok": "met", "bad": "missed"}.get(state, "undecided")
    if answer.verdict == "failing":
        judged, word = NotMeasured("ratio", answer.failures[0]), f"missed, {answer.failures[0]}"
    elif decides is not None:
        word += f", {words.metric(decides.metric)}"
    pairs = [words.plain(line).replace("`", "'") for line in comparison_text.picture(answer)]
    objective = ObjectiveRow(
        f"{answer.second} against {answer.first}",
        f"not slower by more than {numbers.percent(answer.margin)}",
        judged,
        state,
        word,
    )
    return Result(
        f"compare {answer.second} with {answer.first}",
        (
            answer.sentence,
            *answer.versions,
            *(f"failures: {text}" for text in answer.failures),
            *([f"decides: {answer.decides}"] if answer.decides else []),
            answer.method,
            *(f"note: {text}" for text in answer.cautions),
        ),
        (objective,),
        tuple(rows),
        subject="comparison",
        error="" if answer.effects or answer.verdict == "failing" else answer.sentence,
        picture="\n".join(("```text", *pairs, "```")) if pairs else "",
    )


def of_history(answer: History) -> Result:
    """Return the result of a history: a row per record and metric; the step is the load."""
    rows = tuple(
        Row(
            each.metric,
            point.figure,
            each.unit,
            point.record,
            history_text.load(each),
            note=history_text.commit(point),
            label=f"{history_text.metric(each)}, {history_text.load(each)}",
        )
        for each in answer.series
        for point in each.points
    )
    shifts = [history_text.shift_in_words(each, shift) for each in answer.series for shift in each.shifts]
    lines = (answer.sentence, *shifts, answer.method, *(f"left out: {text}" for text in answer.left_out))
    return Result(f"history of {answer.folder}", lines, (), rows, subject="history")


def of_report(report: Report, *, error: str = "") -> Result:
    """Return the result of a study.

    Args:
        report: The whole report.
        error: Reason if trials are missing or invalid.
    """
    from loadlens.report.write.view import trust_of  # which loads the charts

    trust = trust_of(report, ids=set())
    caveats = [f"{words.GLYPHS[badge.state]} {badge.text}" for badge in trust.caveats]
    return Result(
        report.study,
        (
            *report.answer,
            *(f"{line.label}: {line.text}" for line in report.lines),
            *caveats,
            *([trust.words] if trust.words else []),
        ),
        report.objectives,
        tuple(row for matrix in report.matrices for row in _matrix_rows(matrix)),
        subject="trials",
        error=error,
    )


def _matrix_rows(matrix: Matrix) -> Iterator[Row]:
    labels = {key: (label, unit) for key, label, unit in matrix.metrics}
    for cell in matrix.cells.values():
        for key in (*labels, *(key for key in cell.figures if key not in labels)):
            if key in cell.figures:
                label, unit = labels.get(key, ("", ""))
                metric, _, step = key.partition(":")
                yield Row(_name(metric), cell.figures[key], unit, cell.case, step, cell.word, label)


def _name(key: str) -> str:
    """Return the name in CSV of a figure in a matrix: `response_time.mean` for `mean`."""
    of, _, statistic = key.rpartition("_")
    if statistic == "mean" or statistic[1:].isdecimal():
        return f"{TIMES.get(of, of)}.{statistic}"
    return {"rate": "throughput", "failed": "failed.share"}.get(key, key)
