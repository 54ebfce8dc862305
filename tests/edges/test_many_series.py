"""A service or a monitor that gives 100,000 new series with every reading: the report stays bounded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl
import pytest

from loadlens.model.readings import Labels
from loadlens.model.report import Report
from loadlens.report import build
from loadlens.signals.read.trial_series import MOST_SERIES
from tests.unit.measure import records
from tests.unit.whatif.services import Load, Trace, blocking_loop

NEW = 100_000  # series that each reading adds
READINGS = 20
PASSES = 8  # over the readings of a trial, by all that look at them
QUERY = {"name": "rate", "expression": "sum(rate(by_id_total[5s]))", "unit": "1/s"}
CROWDS = {  # monitor, metric, labels; # is a number that is new every time
    "label": ("scrape", "by_id_total", '{"id":"#","replica":"1","service":"web"}'),
    "metric": ("scrape", "requests_#_total", '{"replica":"1","service":"web"}'),
    "process": ("proc", "cpu_user_s", '{"pid":"#","process":"main","replica":"1","service":"web"}'),
}


@dataclass
class Crowded(records.Trial):
    """A trial with further readings."""

    crowd: pl.DataFrame = field(default_factory=pl.DataFrame)

    def readings(self) -> pl.DataFrame:
        return pl.concat([super().readings(), self.crowd], how="vertical_relaxed")


def crowd(source: str, metric: str, labels: str) -> pl.DataFrame:
    def numbered(text: str) -> pl.Expr:
        before, mark, after = text.partition("#")
        return pl.lit(before) + pl.col("number").cast(pl.String) + pl.lit(after) if mark else pl.lit(text)

    return pl.DataFrame({"number": range(READINGS * NEW)}).select(
        time_ns=pl.col("number") // NEW * 1_000_000_000,
        source=pl.lit(source),
        metric=numbered(metric),
        labels=numbered(labels),
        unit=pl.lit(""),
        value=pl.col("number").cast(pl.Float64),
    )


def reported(further: pl.DataFrame) -> Report:
    def service(load: Load, _: int) -> Trace:
        return blocking_loop(load, work_s=0.05)

    run = records.record(service, users=(5,), trials=1, report={"promql": [QUERY]})
    (trial,) = run.trials
    return build.report(replace(run, trials=[Crowded(**vars(trial), crowd=further)]))


@pytest.mark.parametrize("kind", CROWDS)
def test_a_report_reads_a_bounded_number_of_series_and_says_what_it_left_out(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    real = Labels.of

    def counted(text: str) -> Labels:
        nonlocal read
        read += 1
        return real(text)

    monkeypatch.setattr(Labels, "of", staticmethod(counted))
    crowded = crowd(*CROWDS[kind])

    made = reported(crowded)

    assert read <= PASSES * MOST_SERIES
    assert any("left out: more than" in limit for limit in made.limits)
    if kind != "process":  # without the CPU of the processes less is known
        assert made.answer == reported(crowded.clear()).answer
