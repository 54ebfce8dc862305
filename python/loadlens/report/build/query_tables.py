"""The report's PromQL: what a Prometheus server answered, or our own evaluation of what our scrapes recorded.

Series of both carry the labels `job`, `instance`, `service` and `replica`: an expression means the same to
both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from loadlens import promql
from loadlens.estimate.interval import Interval
from loadlens.measure.case import CaseMeasures
from loadlens.measure.source import from_record
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Figure, NotMeasured
from loadlens.model.readings import Labels as SeriesLabels
from loadlens.model.readings import ScrapeMetrics
from loadlens.model.recorded import PlannedCase, ServerAnswer, ServerAnswers
from loadlens.model.report import Cell, Chart, Column, Table
from loadlens.model.study import Query, Window
from loadlens.present import numbers
from loadlens.report.build.brief import Brief
from loadlens.signals.read.trial_series import SCRAPE, bounded, too_many

if TYPE_CHECKING:
    import polars as pl

OWN = "Loadlens, from its scrapes"
MOST_ROWS = 20  # series of one expression in the table
MOST_LINES = 6  # of one expression in the chart
_OF_SCRAPING = {ScrapeMetrics.scrape_seconds.name: "scrape_duration_seconds"}
_PLACE = ("job", "instance", "service", "replica")  # the same for every series where there is one replica

Labels = tuple[tuple[str, str], ...]
Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The values of one expression in one trial."""

    series: Mapping[Labels, Points]  # seconds since the trial began, value
    by: str
    why_not: str = ""  # there is no answer


class Answers:
    """One trial's answers; nothing is read before something is asked."""

    def __init__(
        self, trial: TrialMeasures, case: PlannedCase, window: Window, asked: Sequence[Query]
    ) -> None:
        self._trial, self._case, self._window, self._asked = trial, case, window, asked
        self._server = from_record(ServerAnswers, trial.source.answers(), "promql.json")

    def of(self, query: Query) -> Answer:
        """The server's answer where there is one, else our own."""
        for answer in self._server.answers:
            if answer.name == query.name and answer.expression == query.expression:
                return self._from_server(answer)
        return self._own(query)

    def _from_server(self, answer: ServerAnswer) -> Answer:
        by = "Prometheus" if self._server.by is None else f"Prometheus {self._server.by.version}"
        if answer.error:
            return Answer({}, by, f"{by} refused it: {answer.error}")
        series = {
            tuple(sorted(line.labels.items())): _known(line.times_s, line.values) for line in answer.series
        }
        return Answer(series, by)

    def _own(self, query: Query) -> Answer:
        try:
            expression = promql.parse(query.expression)
            lost = [metric for metric in promql.metrics_of(expression) if metric in self._left_out]
            if lost:
                return Answer({}, OWN, too_many(lost))
            when = promql.moments(query.expression, *self._part, query.step_s)
            begin, end = self._part
            series = promql.evaluate_over(
                expression,
                self._series,
                begin_s=when.first_s,
                end_s=when.last_s,
                step_s=when.step_s,
                range_s=end - begin,
            )
        except promql.NotOurs as error:
            return Answer({}, OWN, "; ".join(part for part in (str(error), self._server.why) if part))
        except promql.PromqlError as error:
            return Answer({}, OWN, str(error))
        finite = {labels: [p for p in points if math.isfinite(p[1])] for labels, points in series.items()}
        return Answer({labels: points for labels, points in finite.items() if points}, OWN)

    @cached_property
    def _part(self) -> tuple[float, float]:
        result = self._trial.source.result
        begin, end = (0.0, 0.0) if result is None else (result.warmup_s, result.load_s)
        return self._window.of(begin, end)

    @cached_property
    def _scraped(self) -> tuple[pl.DataFrame, tuple[str, ...]]:
        """The rows of the scrapes, those that are asked for before others, and the metrics left out."""
        import polars as pl

        rows = self._trial.source.readings().filter(pl.col("source") == SCRAPE)
        return bounded(
            rows, SCRAPE, first={m for query in self._asked for m in _metrics_of(query.expression)}
        )

    @property
    def _left_out(self) -> tuple[str, ...]:
        return self._scraped[1]

    @cached_property
    def _series(self) -> list[promql.Series]:
        replicas = {service.name: service.replicas for service in self._case.services}
        return list(series_of(self._scraped[0], replicas))


def _metrics_of(expression: str) -> tuple[str, ...]:
    try:
        return promql.metrics_of(promql.parse(expression))
    except promql.PromqlError:
        return ()


def _known(times: Iterable[float], values: Iterable[float | None]) -> Points:
    return [(time, value) for time, value in zip(times, values, strict=True) if value is not None]


def series_of(rows: pl.DataFrame, replicas: Mapping[str, int]) -> Iterator[promql.Series]:
    """Return the samples of the scrapes as series.

    Args:
        rows: Readings of the scrapes of a trial.
        replicas: How many there are of each service, for the label `instance`.
    """
    scrapes: dict[tuple[str, str], list[float]] = {}
    metrics: list[tuple[str, SeriesLabels, list[float], list[float | None]]] = []
    for key, part in rows.group_by(["metric", "labels"], maintain_order=True):
        metric, labels = str(key[0]), SeriesLabels.of(str(key[1]))
        columns = part.select("time_ns", "value").iter_columns()
        times, values = (column.to_list() for column in columns)
        times = [time / 1e9 for time in times]
        target = (labels.service, labels.replica)
        if metric in ("missed", "scrapes") and set(labels) <= {"service", "replica", "why"}:
            continue
        if metric in _OF_SCRAPING and set(labels) == {"service", "replica"}:
            scrapes[target] = times
            metrics.append((_OF_SCRAPING[metric], labels, times, values))
            metrics.append(("up", labels, times, [float(value is not None) for value in values]))
            continue
        metrics.append((metric, labels, times, values))
    for metric, labels, times, values in metrics:
        points = _known(times, values)
        if not points:
            continue
        service, replica = labels.service, labels.replica
        instance = service if replicas.get(service, 1) == 1 else f"{service}.{replica}"
        yield promql.Series(
            {"__name__": metric, "job": service, "instance": instance, **labels},
            [time for time, _ in points],
            [value for _, value in points],
            scrapes.get((service, replica), ()),
        )


# --- for the report ---------------------------------------------------------------------------------------


def table(case: CaseMeasures, brief: Brief) -> Table | None:
    """A row for each series of each expression: its figure over the trials, and who answered."""
    if not brief.report.promql or not case.usable:
        return None
    asked = brief.report.promql
    trials = [Answers(trial, case.plan, brief.window, asked) for trial in case.usable]
    rows: list[tuple[Cell, ...]] = []
    for query in brief.report.promql:
        answers = [trial.of(query) for trial in trials]
        by = ", ".join(dict.fromkeys(answer.by for answer in answers))
        labels = list(dict.fromkeys(label for answer in answers for label in answer.series))
        if not labels:
            why = next(
                (answer.why_not for answer in answers if answer.why_not),
                "no series has the samples that it needs in this part",
            )
            rows.append((query.name, "none", query.unit, NotMeasured(query.name, why), by))
        for label in labels[:MOST_ROWS]:
            rows.append((query.name, shown(label), query.unit, _figure(case, query, answers, label), by))
        if len(labels) > MOST_ROWS:
            more = f"{len(labels) - MOST_ROWS} more series"
            rows.append((query.name, more, query.unit, NotMeasured(query.name, "not shown"), by))
    expressions = [f"{query.name}: {query.take} of {query.expression}" for query in brief.report.promql]
    columns = (
        Column("query", align="left"),
        Column("series", align="left"),
        Column("unit", align="left"),
        Column("value"),
        Column("answered by", align="left"),
    )
    return Table(
        columns, tuple(rows), f"over the measured part of the valid trials; {'; '.join(expressions)}"
    )


def _figure(case: CaseMeasures, query: Query, answers: Iterable[Answer], labels: Labels) -> Figure:
    """The figure over the trials in which the series has values."""
    intervals = []
    for answer in answers:
        values = [value for _, value in answer.series.get(labels, ())]
        if values:
            intervals.append(Interval(_taken(query.take, values), None, None, float(len(values)), "PromQL"))
    return case.level_figure(query.name, "", intervals)


def _taken(take: str, values: list[float]) -> float:
    match take:
        case "last":
            return values[-1]
        case "max":
            return max(values)
        case "min":
            return min(values)
        case _:
            return math.fsum(values) / len(values)


def shown(labels: Labels) -> str:
    """Labels as an expression has them; those that only say where it was scraped are left out."""
    name = next((value for key, value in labels if key == "__name__"), "")
    kept = [(key, value) for key, value in labels if key not in ("__name__", *_PLACE)]
    instance = next((value for key, value in labels if key == "instance"), "")
    if "." in instance:
        kept.insert(0, ("instance", instance))
    inside = ", ".join(f'{key}="{value}"' for key, value in kept)
    return f"{name}{{{inside}}}" if inside else name or instance or "all"


def chart(case: CaseMeasures, brief: Brief) -> Chart | None:
    """The values of each expression over the time of one trial."""
    if not brief.report.promql or not case.usable:
        return None
    trial = case.usable[0]
    answers = Answers(trial, case.plan, brief.window, brief.report.promql)
    rows: list[dict[str, object]] = []
    drawn: dict[str, list[float]] = {}  # values of each expression
    by, names = dict[str, None](), dict[str, None]()
    for query in brief.report.promql:
        answer = answers.of(query)
        lines = [(labels, points) for labels, points in answer.series.items() if len(points) > 1]
        for labels, points in lines[:MOST_LINES]:
            resource, name = f"{query.name}, {query.unit}" if query.unit else query.name, shown(labels)
            by[answer.by] = names[name] = None
            drawn.setdefault(resource, []).extend(value for _, value in points)
            rows += [
                {"t": time, "resource": resource, "process": name, "value": value} for time, value in points
            ]
    if not rows:
        return None
    return Chart(
        kind="resources",
        anchor=f"chart-promql-{case.slug}",
        headline=_headline(*next(iter(drawn.items()))),
        datasets={"readings": tuple(rows)},
        options={"trials": 1, "resources": list(drawn)},
        caption=f"{trial.source.name}, answered by {' and '.join(by)}",
        entities={name: slot for slot, name in enumerate(list(names)[:6], start=1)},
    )


def _headline(resource: str, values: Iterable[float]) -> str:
    low, high = (numbers.value(end(values), numbers.Scale("", 1.0)) for end in (min, max))
    return f"{resource} lies between {low} and {high}"
