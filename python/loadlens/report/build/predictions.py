"""Held-out cases: predictions made before they ran, measurements, and how far they differ.

A prediction counts as one only if it was written down before the first trial of its case began.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median_high

from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.model.finding import Estimate, Figure, Undecided
from loadlens.model.recorded import PredictedFigure, Prediction
from loadlens.model.report import (
    Chart,
    Column,
    PredictionRow,
    PredictionSection,
    State,
    Table,
)
from loadlens.present import numbers, words

DRAWN = ("throughput", "response_time.mean")
TOO_LATE = "made after the case began: no prediction"


def section(
    cases: Sequence[CaseMeasures], predictions: Mapping[str, Prediction], disturbed: str = ""
) -> PredictionSection | None:
    """Every prediction with its score; none where nothing was held out.

    Args:
        cases: All of the record.
        predictions: By the case's slug.
        disturbed: What took the machine from the service; then the predictions get no score.
    """
    held = [case for case in cases if case.is_held_out]
    if not held:
        return None
    rows: list[PredictionRow] = []
    lines: list[str] = []
    for case in held:
        prediction = predictions.get(case.slug)
        if prediction is None:
            lines.append(f"{case.name}: not predicted: no prediction was made before it ran")
        elif prediction.undecided:
            lines.append(f"{case.name}: not predicted: {prediction.undecided}")
        else:
            rows += _rows(case, prediction)
    score = [f"no score: {disturbed}"] if rows and disturbed else _score(rows)
    return PredictionSection((*score, *lines), tuple(rows), _models(held, predictions))


def _rows(case: CaseMeasures, prediction: Prediction) -> list[PredictionRow]:
    is_before = _is_before(case, prediction)
    return [_row(case, figure, prediction, is_before=is_before) for figure in prediction.predicted]


def _is_before(case: CaseMeasures, prediction: Prediction) -> bool:
    """Return true if it was made before any trial of the case began; unsealed trials do not count."""
    began = [trial.source.began_unix_ns for trial in case.trials]
    return all(not at or prediction.made_unix_ns < at for at in began)


def _row(
    case: CaseMeasures, figure: PredictedFigure, prediction: Prediction, *, is_before: bool
) -> PredictionRow:
    metric, step = figure.metric, figure.step
    predicted = Estimate(
        metric,
        figure.unit,
        figure.point,
        figure.low,
        figure.high,
        trials=len(prediction.inputs),
        samples=0,
        method=figure.method,
        confidence=prediction.confidence,
    )
    measured = figure_of(case, metric, step)
    error, state, word = _verdict(predicted, measured)
    if not is_before:
        state, word = "bad", TOO_LATE
    return PredictionRow(case.slug, case.name, metric, step, predicted, measured, error, state, word)


def _verdict(predicted: Estimate, measured: Figure) -> tuple[float | None, State, str]:
    """Return the error as a share of the measurement, and whether the interval contains the measurement."""
    if not isinstance(measured, Estimate):
        seen = "undecided" if isinstance(measured, Undecided) else "not measured"
        return None, "unknown", f"{seen}: {measured.reason}"
    if measured.point <= 0:
        return None, "unknown", "nothing above 0 was measured"
    error = predicted.point / measured.point - 1
    low, high = predicted.low or 0.0, predicted.high if predicted.high is not None else math.inf
    if low <= measured.point <= high:
        return error, "ok", "inside its interval"
    if (measured.high or measured.point) >= low and (measured.low or measured.point) <= high:
        return error, "caution", "outside, the intervals overlap"
    return error, "bad", "outside its interval"


def _score(rows: Sequence[PredictionRow]) -> list[str]:
    """One line: how many were inside, and how far off they were."""
    scored = [row for row in rows if row.error is not None and row.word != TOO_LATE]
    if not scored:
        return []
    inside = sum(row.state == "ok" for row in scored)
    errors = [abs(row.error) for row in scored if row.error is not None]
    typical, worst = median_high(errors), max(errors)
    return [
        (
            f"{inside} of {words.plural(len(scored), 'predicted figure')} were measured inside "
            f"their intervals; off by {_percent(typical)} at the median and by {_percent(worst)} at most"
        )
    ]


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"


def _models(held: Sequence[CaseMeasures], predictions: Mapping[str, Prediction]) -> Table | None:
    """Return the model and the inputs of each prediction."""
    rows = []
    for case in held:
        prediction = predictions.get(case.slug)
        if prediction is None or prediction.undecided or not prediction.structures:
            continue
        structure = prediction.structures[0].words
        others = len(prediction.structures) - 1
        if others:
            structure += f" ({words.plural(others, 'other structure')} fit as well and widen the interval)"
        fitted = "; ".join(f"{p.name} {numbers.with_unit(p.point, p.unit)}" for p in prediction.parameters)
        cases = len({entry.case for entry in prediction.inputs})
        measured = f"{words.plural(len(prediction.inputs), 'trial')} of {words.plural(cases, 'case')}"
        miss = _percent(math.expm1(prediction.misses.all))
        assumed = "; ".join(prediction.assumed) or "nothing more"
        rows.append((case.name, structure, fitted, measured, miss, assumed))
    if not rows:
        return None
    heads = ("case", "what requests wait for", "fitted", "from", "misses these by", "taken for granted")
    return Table(tuple(Column(head, align="left") for head in heads), tuple(rows))


# ------------------------------------------------------------------------------------------------------ chart


def charts(section: PredictionSection | None) -> tuple[Chart, ...]:
    """One chart for each kind of figure that was predicted of some case."""
    if section is None:
        return ()
    groups: dict[tuple[str, str | None], list[PredictionRow]] = {}
    for row in section.rows:
        if row.metric in DRAWN and isinstance(row.predicted, Estimate):
            groups.setdefault((row.metric, row.step), []).append(row)
    return tuple(_chart(metric, step, rows) for (metric, step), rows in groups.items())


def _chart(metric: str, step: str | None, rows: Sequence[PredictionRow]) -> Chart:
    what = words.metric(metric) + (f" of {step}" if step else "")
    scored = [row for row in rows if row.error is not None]
    inside = sum(row.state == "ok" for row in scored)
    verdict = f"{inside} of {len(scored)} inside the interval" if scored else "not measured yet"
    return Chart(
        kind="predicted",
        anchor="-".join(part for part in ("chart-predicted", metric, step) if part),
        headline=f"{what} as predicted: {verdict}",
        datasets={"rows": tuple(_point(row) for row in rows)},
        options={"unit": _unit(rows[0]), "x_label": what, "trials": _trials(rows)},
        caption="triangle: predicted before the case ran, dashed its 95 % interval; circle: measured",
    )


def _point(row: PredictionRow) -> dict[str, object]:
    predicted, measured = row.predicted, row.measured
    assert isinstance(predicted, Estimate)  # `charts` takes no others
    seen = measured if isinstance(measured, Estimate) else None
    return {
        "case": row.name,
        "predicted": predicted.point,
        "predicted_low": predicted.low,
        "predicted_high": predicted.high,
        "point": seen.point if seen else None,
        "low": seen.low if seen else None,
        "high": seen.high if seen else None,
    }


def _unit(row: PredictionRow) -> str:
    return row.predicted.unit if isinstance(row.predicted, Estimate) else ""


def _trials(rows: Sequence[PredictionRow]) -> int:
    return min((row.measured.trials for row in rows if isinstance(row.measured, Estimate)), default=1)
