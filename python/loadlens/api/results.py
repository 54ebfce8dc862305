"""Results of the verbs in Python: the answer, its figures, and the record it rests on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from loadlens.api.measured import Measured, unit_of
from loadlens.errors import ExitCode, UsageError, did_you_mean
from loadlens.model.comparison import Comparison
from loadlens.model.explanation import Explanation
from loadlens.model.finding import Finding, Undecided
from loadlens.model.report import Chart, ObjectiveRow, Report
from loadlens.present import words
from loadlens.record import RunRecord

if TYPE_CHECKING:
    import polars as pl

    from loadlens.api.notebook import Picture
    from loadlens.cli.hit import Load as MadeLoad
    from loadlens.cli.outputs import Received
    from loadlens.model.comparison import Verdict
    from loadlens.model.result import EngineResult
    from loadlens.report.write.result import Result

_COLUMNS: Final = ("value", "low", "high")  # numbers of a row of figures
_COUNTS: Final = ("trials", "samples")


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """The result of any verb."""

    content: Result  # as files for other programs show it
    exit_code: ExitCode  # of the same command
    path: Path | None  # the record; `None`: none was kept
    as_json: Callable[[], str]

    @property
    def title(self) -> str:
        """Service and load in one line."""
        return self.content.title

    @property
    def headline(self) -> str:
        """The answer in one line."""
        return self.content.lines[0]

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer, then what belongs to it."""
        return self.content.lines

    @property
    def objectives(self) -> tuple[ObjectiveRow, ...]:
        """The objectives with their verdicts."""
        return self.content.objectives

    @property
    def is_valid(self) -> bool:
        """True if the figures can be used: the load was what it should be."""
        return not self.content.error

    @property
    def record(self) -> Record | None:
        """The record; its trials give Polars frames. `None` where none was kept (`out="FOLDER"`)."""
        return None if self.path is None else Record(self.path)

    @cached_property
    def figures(self) -> pl.DataFrame:
        """One row per figure: case, step, metric, unit, value, low, high, trials, samples, note.

        Values are in base units (seconds, per second, shares); `low` and `high` end the 95 % interval.

        Raises:
            UsageError: The packages of the lab are not installed.
        """
        _refuse_without_polars()
        import polars as pl

        from loadlens.report.write.result import HEAD, cells_of

        columns = list(zip(*map(cells_of, self.content.rows), strict=True)) or [()] * len(HEAD)
        types = {
            name: pl.Float64 if name in _COLUMNS else pl.Int64 if name in _COUNTS else pl.String
            for name in HEAD
        }
        return pl.DataFrame(
            {
                name: [None if value == "" and types[name] != pl.String else value for value in column]
                for name, column in zip(HEAD, columns, strict=True)
            },
            schema=types,
        )

    def figure(self, metric: str, *, case: str = "", step: str = "") -> Measured:
        """Return one figure by its metric, as in `figures`.

        Raises:
            UsageError: There is none.
        """
        for row in self.content.rows:
            if (row.metric, row.case, row.step) == (metric, case, step) and row.figure is not None:
                return self._measured(words.metric(metric), row.figure, unit_of(row.figure, row.unit))
        cases = [row.case for row in self.content.rows if row.metric == metric and row.figure is not None]
        metrics = [row.metric for row in self.content.rows if (row.case, row.step) == (case, step)]
        raise UsageError(
            f"no figure {metric!r}" + "".join(f" of {part!r}" for part in (case, step) if part),
            where="figure",
            hint=f"case={cases[0]!r}" if any(cases) else did_you_mean(metric, list(dict.fromkeys(metrics))),
        )

    @property
    def charts(self) -> tuple[Picture, ...]:
        """The charts; the first is the picture of the answer."""
        return self._charts()

    def to_json(self) -> str:
        """Return what `--json` prints."""
        return self.as_json()

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain data."""
        content: dict[str, Any] = json.loads(self.as_json())
        return content

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def _repr_html_(self) -> str:
        from loadlens.api.notebook import html

        return html(self.content, self._charts())

    def _charts(self) -> tuple[Picture, ...]:
        return ()

    def _measured(self, name: str, figure: Any, unit: str) -> Measured:
        return Measured(
            name,
            unit,
            figure,
            origin=self.title,
            trust=tuple(line for line in self.lines if line[:1] in "▲■"),
            doubt=self.content.error,
            measured_s=self.content.seconds,
            record="" if self.path is None else str(self.path),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Load(Outcome):
    """The result of `hit`: one load."""

    engine: EngineResult  # every count and distribution

    @property
    def rate(self) -> Measured:
        """Successful requests per second."""
        return self.figure("rate")

    @property
    def failed(self) -> Measured:
        """Share of requests that did not succeed: no answer, an unexpected status, a failed check."""
        return self.figure("failed")

    @property
    def mean(self) -> Measured:
        """Mean response time."""
        return self.figure("mean")

    @property
    def p50(self) -> Measured:
        """Median response time."""
        return self.figure("p50")

    @property
    def p75(self) -> Measured:
        """75 % of requests had this response time or a shorter one."""
        return self.figure("p75")

    @property
    def p90(self) -> Measured:
        """90 % of requests had this response time or a shorter one."""
        return self.figure("p90")

    @property
    def p95(self) -> Measured:
        """95 % of requests had this response time or a shorter one."""
        return self.figure("p95")

    @property
    def p99(self) -> Measured:
        """99 % of requests had this response time or a shorter one."""
        return self.figure("p99")

    @property
    def p999(self) -> Measured:
        """99.9 % of requests had this response time or a shorter one."""
        return self.figure("p999")

    def figure(self, metric: str, *, case: str = "", step: str = "") -> Measured:
        """Return a figure by its name in objectives, `p99` or `first_byte.p95`, or as in `figures`."""
        from loadlens.report.write import hit_figures
        from loadlens.study import objectives
        from loadlens.units import UnitError

        try:
            full = objectives.metric_of(metric)
        except UnitError:
            full = ""
        if case or step or not hit_figures.is_known_metric(full):
            return super().figure(full or metric, case=case, step=step)
        stream = self.engine.load
        assert stream is not None, "loads of other programs are refused"
        unit = {"throughput": "1/s"}.get(full, "share" if full.endswith(".share") else "s")
        return self._measured(words.metric(full), hit_figures.metric_figure(stream, full), unit)

    @property
    def distribution(self) -> pl.DataFrame:
        """Response times as counted, one row per bin: upper end in seconds, and requests."""
        _refuse_without_polars()
        import polars as pl

        stream = self.engine.load
        rows = () if stream is None else stream.response_time_s.histogram or ()
        return pl.DataFrame(list(rows), schema={"upper_s": pl.Float64, "count": pl.Int64}, orient="row")

    def _charts(self) -> tuple[Picture, ...]:
        from loadlens.report.write import result_charts

        return pictures_of(result_charts.of_load(self.engine, self.headline))


@dataclass(frozen=True, eq=False, repr=False)
class Explained(Outcome):
    """The result of `explain`: what limits a service, on what evidence."""

    answer: Explanation

    @property
    def limit(self) -> str | None:
        """The finding that names the limit, such as `cpu.saturated`; `None`: undecided."""
        return self.answer.limit

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings with their evidence."""
        return self.answer.findings

    @property
    def capacity(self) -> Measured:
        """The highest throughput."""
        return self.figure("capacity")

    def _charts(self) -> tuple[Picture, ...]:
        from loadlens.report.write import result_charts

        return pictures_of(result_charts.of_explanation(self.answer))


@dataclass(frozen=True, eq=False, repr=False)
class Found(Explained):
    """The result of `capacity`: the highest rate that meets objectives, and what limits the service."""

    @property
    def rate(self) -> Measured:
        """The highest rate that meets all objectives: confirmed by fresh trials, up to one that missed."""
        rates, name = self.answer.rates, "rate that meets the objectives"
        if rates is None:
            return self._measured(name, Undecided("rate", "1/s", self.headline), "1/s")
        return self._measured(name, rates.figure, "1/s")


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Outcome):
    """The result of `compare`: is the second version faster, slower, equivalent or undecided."""

    answer: Comparison

    @property
    def verdict(self) -> Verdict:
        """`faster`, `slower`, `equivalent`, `undecided`, or `failing` if the second fails more often."""
        return self.answer.verdict

    @property
    def is_missed(self) -> bool:
        """True if the second version is slower by more than the margin for sure, or fails more often."""
        return self.answer.is_missed

    def ratio(self, metric: str, *, case: str = "") -> Measured:
        """Return the effect on a metric: the second version over the first, 1 for no change."""
        return self.figure(f"{metric}.ratio", case=case)

    def _charts(self) -> tuple[Picture, ...]:
        from loadlens.api.notebook import Picture
        from loadlens.report.write.html.comparison import drawing

        svg = drawing(self.answer)
        return (Picture(self.headline, lambda: svg),) if svg else ()


@dataclass(frozen=True, eq=False, repr=False)
class Studied(Outcome):
    """The report of a study."""

    answer: Report

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings with their evidence."""
        return self.answer.findings

    def _charts(self) -> tuple[Picture, ...]:
        first = self.answer.pictures
        return pictures_of(sorted(self.answer.charts, key=lambda chart: chart.anchor not in first))


class Record(RunRecord):
    """A record on disk: its trials give Polars frames, its report is what a notebook shows."""

    @cached_property
    def report(self) -> Studied:
        """The report of the record."""
        from loadlens.cli.report import result_of_run
        from loadlens.report import build
        from loadlens.report.write.json import report_as_json

        made = build.report(self)
        result = result_of_run(made, self.path)
        is_missed = any(row.state == "bad" for row in made.objectives)
        code = ExitCode.OBJECTIVE if is_missed else ExitCode.INVALID if result.error else ExitCode.OK
        return Studied(result, code, self.path, partial(report_as_json, made), made)

    def __repr__(self) -> str:
        return f"<Record: {self.path}, {words.plural(len(self.trials), 'trial')}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()


def load_of(made: MadeLoad) -> Load:
    """Return a load as Python shows it."""
    return Load(made.as_result(), made.exit_code, made.done.record, made.as_json, made.result)


def outcome_of(received: Received, code: ExitCode, *, is_capacity: bool = False) -> Outcome:
    """Return an answer as Python shows it."""
    common = (received.result, code, received.record, received.as_json)
    match received.content:
        case Explanation() as answer:
            return (Found if is_capacity else Explained)(*common, answer)
        case Comparison() as answer:
            return Compared(*common, answer)
        case Report() as answer:
            return Studied(*common, answer)
        case other:
            raise TypeError(f"no result of Python for {type(other).__name__}")


def pictures_of(charts: Iterable[Chart]) -> tuple[Picture, ...]:
    """Return charts of reports as pictures."""
    from loadlens.api.notebook import picture_of

    return tuple(map(picture_of, charts))


def _refuse_without_polars() -> None:
    """Name the command that installs what frames need.

    Raises:
        UsageError: It is not installed.
    """
    from importlib.util import find_spec

    from loadlens.cli.lab import INSTALL

    if find_spec("polars") is None:
        raise UsageError(f"frames need more packages: {INSTALL}")
