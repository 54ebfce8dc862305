"""Trials driven by another program: figures are those it reported; the others say why they are missing."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import polars as pl
import pytest

from loadlens.measure import external_trial, whole_run
from loadlens.measure.case import CaseMeasures
from loadlens.measure.metrics import figure_of
from loadlens.measure.source import study_of
from loadlens.model.counters import Counters
from loadlens.model.finding import Estimate, NotMeasured, Undecided
from loadlens.model.study import METRICS, Edge, Window
from loadlens.model.trial import Outcome
from loadlens.report import build
from loadlens.report.build.details import quantile_chart
from loadlens.report.write import html, markdown
from loadlens.report.write.json import report_as_json
from loadlens.run.external import Request, Times, ToolReport, result_of
from loadlens.run.external_load import ExternalLoad
from tests.unit.measure.records import Json, Run, Trial, record
from tests.unit.whatif import services

TIMES = Times(
    count=990,
    mean=0.004,
    deviation=0.001,
    least=0.002,
    most=0.05,
    quantiles={"p50": 0.003, "p75": 0.005, "p90": 0.006, "p95": 0.007, "p99": 0.012},
    rounding={"quantiles": 1e-6, "mean": 1e-3},
)
REPORT = ToolReport(
    seconds=10.0,
    answered=1000,
    unexpected_status=10,
    failed=5,
    errors={"connect": 5},
    times=TIMES,
    bytes_in=123_000,
)
SAMPLE = ("seq", "due_ns", "sent_ns", "first_ns", "done_ns", "user", "connection", "wire_bytes", "body_bytes",
          "step", "status", "outcome", "stream", "thinned", "flags")  # fmt: skip


@dataclass
class DrivenTrial(Trial):
    """A trial of `records`, driven by a program with this report."""

    tool_report: ToolReport = REPORT
    driver: str = "siege"

    def _result(self) -> Json:
        made = result_of(self.tool_report, stopped=False, began_unix_ns=0, began_monotonic_ns=0, cpu_s=2.5)
        times = self.tool_report.times
        made["driver"] = {
            "name": self.driver, "version": f"{self.driver} 4.1", "command": [self.driver], "ran_s": 12.5,
            "tells_begin": False, "tells_requests": self.tool_report.requests is not None,
            "rounding_s": {} if times is None else dict(times.rounding),
        }  # fmt: skip
        return made

    def counters(self) -> Counters:
        return Counters()

    def intervals(self, but: Container[tuple[str, str]] = (), edges_s: Sequence[float] = ()) -> list[Any]:
        return []

    def samples(self, columns: Sequence[str] = ()) -> pl.DataFrame:
        rows = list(ExternalLoad({}, self.tool_report).samples())
        frame = pl.DataFrame(rows, schema=dict.fromkeys(SAMPLE, pl.Int64), orient="row")
        return frame.select(columns) if columns else frame

    def readings(self) -> pl.DataFrame:
        return (
            super().readings().filter(pl.col("source") != "server_times")
        )  # of another load than the reported one


def made_by(trial: Trial, tool_report: ToolReport, driver: str = "siege") -> DrivenTrial:
    given = {name: getattr(trial, name) for name in Trial.__dataclass_fields__}
    alone = trial.planned | {"streams": [s for s in trial.planned["streams"] if s["role"] == "load"]}
    return DrivenTrial(**(given | {"planned": alone}), tool_report=tool_report, driver=driver)


def run_of(*reports: ToolReport, users: Sequence[int] = (20,), driver: str = "siege") -> Run:
    """A record with one trial per report, of every case."""
    run = record(lambda load, _: services.blocking_loop(load), users=users, trials=len(reports))
    each = [made_by(trial, reports[trial.block - 1], driver) for trial in run.trials]
    cases = [case | {"driver": driver} for case in run.study["cases"]]
    return replace(run, trials=list(each), study=run.study | {"cases": cases})


def case_of(*reports: ToolReport) -> CaseMeasures:
    run = run_of(*reports)
    return CaseMeasures(study_of(run).cases[0], tuple(external_trial.measure(trial) for trial in run.trials))


def test_figures_of_one_trial_are_those_of_the_report_without_an_interval() -> None:
    case = case_of(REPORT)

    rate, mean, p99 = case.throughput, case.mean(kind="service"), case.quantile(0.99, kind="service")

    assert isinstance(rate, Estimate)
    assert (rate.point, rate.low, rate.high) == (99.0, None, None)  # 990 successes in 10 s
    assert isinstance(mean, Estimate)
    assert (mean.point, mean.low, mean.method) == (0.004, None, "reported by siege, rounded to 1 ms")
    assert isinstance(p99, Estimate)
    assert (p99.point, p99.high, p99.method) == (0.012, None, "reported by siege, rounded to 1 µs")


def test_three_trials_give_an_interval_over_trials() -> None:
    times = [replace(TIMES, mean=mean) for mean in (0.004, 0.005, 0.006)]
    case = case_of(*(replace(REPORT, times=reported) for reported in times))

    mean = case.mean(kind="service")

    assert isinstance(mean, Estimate)
    assert mean.trials == 3
    # Student's t on the logs by hand: mean of ln(4, 5, 6) is 1.5958, their deviation 0.2031, t(2) is 4.303.
    assert mean.point == pytest.approx(4.932e-3, rel=1e-3)
    assert mean.low == pytest.approx(2.975e-3, rel=2e-3)
    assert mean.high == pytest.approx(8.175e-3, rel=2e-3)


def test_two_trials_are_undecided_and_name_what_they_gave() -> None:
    rate = case_of(REPORT, REPORT).throughput

    assert isinstance(rate, Undecided)
    assert "needs at least 3 trials" in rate.reason


def test_counts_give_shares_and_no_interval_within_a_trial() -> None:
    case = case_of(REPORT)

    shares = {
        metric: figure_of(case, f"{metric}.share", None)
        for metric in ("failed", "unexpected", "unsuccessful")
    }

    assert {metric: share.point for metric, share in shares.items() if isinstance(share, Estimate)} == {
        "failed": pytest.approx(5 / 1005),
        "unexpected": pytest.approx(10 / 1000),
        "unsuccessful": pytest.approx(15 / 1005),
    }
    assert isinstance(case.failed_share, Estimate)
    assert case.failed_share.point == pytest.approx(15 / 1005)
    assert case.failed_share.low is None
    assert case.failed_count == 15
    assert case.issued is None


NOT_REPORT = {
    "response_time.mean": "when requests were due",
    "response_time.p99": "when requests were due",
    "service_time.p999": "its p999",
    "connect.p99": "what the parts of a request took",
    "first_byte.mean": "what the parts of a request took",
    "body_bytes.mean": "how long each body was",
    "ab_failed.share": "how long each body was",
}


@pytest.mark.parametrize(("metric", "what"), NOT_REPORT.items())
def test_what_is_not_told_is_not_measured_and_says_who_does_not_tell(metric: str, what: str) -> None:
    assert figure_of(case_of(REPORT), metric, None) == NotMeasured(metric, f"siege does not say {what}")


REPORTS = {
    "all": REPORT,
    "no successes known": replace(REPORT, unexpected_status=None),
    "no times": replace(REPORT, times=None, bytes_in=None),
    "no answer": replace(REPORT, answered=0, unexpected_status=0, times=None, bytes_in=0),
    "no request": replace(REPORT, requests=()),
}


@cache
def case_by(name: str, count: int) -> CaseMeasures:
    return case_of(*[REPORTS[name]] * count)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", REPORTS)
def test_every_metric_has_an_answer_whatever_the_report_holds(metric: str, name: str) -> None:
    for count in (1, 3):
        figure = figure_of(case_by(name, count), metric, None)

        assert isinstance(figure, (Estimate, NotMeasured, Undecided))
        if isinstance(figure, Estimate):
            assert figure.point == figure.point  # no NaN


def test_successes_that_are_not_told_are_no_zero() -> None:
    case = case_of(replace(REPORT, unexpected_status=None))

    for figure in (case.throughput, case.failed_share):
        assert isinstance(figure, NotMeasured)
        assert figure.reason == "siege does not say how many of its answers were as expected"


def requests() -> tuple[Request, ...]:
    """A hundred a second for ten seconds, 4 ms each, but for one of 500 and one that failed."""
    plain = [Request(0.01 * n, 0.004, 200, 64) for n in range(998)]
    return (*plain, Request(9.98, 0.5, 500, 10), Request(9.99, 0.2, 0, 0, is_failed=True))


def test_single_requests_give_intervals_of_service_time_and_failures_with_their_times() -> None:
    tool_report = replace(
        REPORT, seconds=10.48, answered=999, unexpected_status=1, failed=1, requests=requests()
    )
    case = case_of(tool_report)

    mean, p50 = case.mean(kind="service"), case.quantile(0.5, kind="service")

    assert isinstance(mean, Estimate)
    assert mean.point == pytest.approx(0.004)  # of the 998 successes
    assert mean.low is not None
    assert isinstance(p50, Estimate)
    assert p50.point == pytest.approx(0.004)
    assert isinstance(case.mean(), NotMeasured)
    rate = case.throughput
    assert isinstance(rate, Estimate)
    assert rate.point == pytest.approx(998 / 10.48)
    by_outcome = {failure.outcome: failure for failure in case.usable[0].failures}
    assert set(by_outcome) == {"unexpected_status", "unclassed"}
    seconds = by_outcome["unclassed"].seconds
    assert seconds is not None
    assert seconds.tolist() == pytest.approx([0.2])  # from sent: the due time is unknown


def test_rows_of_single_requests_say_what_is_not_known() -> None:
    first, *_, last = ExternalLoad({}, replace(REPORT, requests=requests())).samples()

    assert dict(zip(SAMPLE, first, strict=True)) == {
        "seq": 0, "due_ns": -1, "sent_ns": 0, "first_ns": -1, "done_ns": 4_000_000, "user": 2**32 - 1,
        "connection": 2**32 - 1, "wire_bytes": 2**32 - 1, "body_bytes": 64, "step": 0, "status": 200,
        "outcome": Outcome.OK, "stream": 0, "thinned": 0, "flags": 0,
    }  # fmt: skip
    assert dict(zip(SAMPLE, last, strict=True))["outcome"] == Outcome.UNCLASSED


def test_a_window_cannot_be_taken_of_a_whole() -> None:
    trial = run_of(REPORT).trials[0]

    measured = external_trial.measure(trial, Window(begin=Edge(share=0.2)))

    assert not measured.is_usable
    assert measured.reasons == ("siege: its figures are of the whole load: no window can be taken of it",)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize(
    "tool_report",
    [
        REPORT,
        replace(REPORT, unexpected_status=None),
        replace(REPORT, times=None, bytes_in=None),
        replace(REPORT, answered=0, unexpected_status=0, failed=9, times=None),
        replace(REPORT, requests=requests(), answered=999, unexpected_status=1, failed=1, seconds=10.48),
        replace(
            REPORT, requests=requests()[:998], answered=998, unexpected_status=0, failed=0, seconds=9.974
        ),
        replace(REPORT, requests=(), seconds=0.0, answered=0, unexpected_status=0, failed=0, times=None),
    ],
    ids=["all", "no successes known", "no times", "no answer", "requests", "successes", "nothing"],
)
def test_a_report_lives_with_nulls_everywhere(tool_report: ToolReport, blocks: int) -> None:
    made = build.report(run_of(*[tool_report] * blocks, users=(1, 5, 20)))

    assert html.page(made, explore=False)
    for text in (*markdown.files(made).values(), report_as_json(made)):
        assert not re.search(r"\bnan\b", text.lower())
    gates = {badge.text: badge.state for badge in made.badges}
    assert not [text for text, state in gates.items() if state == "bad" and "valid" not in text]


def test_a_load_of_ours_beside_one_of_a_program_keeps_its_own_gates_and_curves() -> None:
    ours = record(lambda load, _: services.blocking_loop(load), users=(5, 20), trials=1)
    theirs = run_of(REPORT, users=(5, 20))
    cases = [case | {"driver": None} for case in ours.study["cases"]]
    for case in theirs.study["cases"]:
        changed = {"slug": f"by-{case['slug']}", "name": f"by siege {case['name']}"}
        cases.append(case | changed | {"levels": case["levels"] | {"driver": "siege"}})
    for trial in theirs.trials:
        trial.case = replace(trial.case, slug=f"by-{trial.case.slug}")
    both = replace(ours, trials=[*ours.trials, *theirs.trials], study=ours.study | {"cases": cases})

    facts, made = whole_run.facts(both), build.report(both)

    gates = {gate.name: gate for gate in facts.gates}
    assert gates["counting"].passed is True
    assert gates["generator"].passed is True
    assert "siege does not say" in gates["generator"].text
    assert "made by siege 4.1, whose accounting was not checked" in " ".join(made.limits)
    assert {step.driver for curve in facts.curves for step in curve.steps} == {"", "siege"}


def test_quantiles_without_an_interval_are_drawn_without_a_band() -> None:
    chart = quantile_chart(case_of(REPORT))

    assert chart is not None
    assert [(row["lo"], row["hi"]) for row in chart.datasets["curve"]] == [
        (row["ms"], row["ms"]) for row in chart.datasets["curve"]
    ]
