"""Reports of simulated services: what the cause was is known, and the report must say it by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from loadlens.diagnose.rules.network import accept_drops
from loadlens.measure import whole_run
from loadlens.model.finding import Estimate, Grade, NotMeasured, Undecided
from loadlens.model.notes import NOTES
from loadlens.model.recorded import Bounds, PlacedService, Placement, ServiceProcess
from loadlens.model.report import Chart, MatrixCell, Report
from loadlens.model.trial import TrialStatus
from loadlens.present.charts import columns
from loadlens.report import build
from loadlens.report.build import charts
from tests.unit.measure.records import Names, Run, record
from tests.unit.whatif import services

SHORT: dict[str, Any] = {"users": (1, 20), "trials": 1}


@cache
def looped() -> Run:
    return record(lambda load, k: services.blocking_loop(load, processes=k), processes=(1, 2))


@cache
def looped_report() -> Report:
    return build.report(looped())


def cell(report: Report, row: str, column: str) -> MatrixCell:
    return report.matrices[0].cells[(row, column)]


def point(figure: object) -> float:
    assert isinstance(figure, Estimate), figure
    return figure.point


def test_a_blocked_loop_is_named_first_with_its_rate_and_what_the_bystander_pays() -> None:
    report = looped_report()
    lines = {line.label: line.text for line in report.lines}

    # 1 / 0.2 s less the probes' own work
    assert report.answer[0].startswith("order blocks the event loop: 4.9")
    assert lines["who waits"].startswith("GET /ping takes 3.8")  # (20 - 0.75) / 4.9 of waiting
    assert "From 1.7 users per process on they queue" in report.findings[0].explanation  # 4.9 x (0.2 + 0.15)


@pytest.mark.parametrize(
    ("loops", "where"),
    [
        ((1, 2, 3), ""),
        ((2,), " (processes=2)"),
        ((1, 3), " (processes=1; processes=3)"),
        ((1, 2, 3, 4), " (4 of 5 curves)"),
    ],
)
def test_the_answer_says_where_it_holds_unless_that_is_everywhere(loops: tuple[int, ...], where: str) -> None:
    def service(load: services.Load, level: int) -> services.Trace:
        if level in loops:
            return services.blocking_loop(load)
        return services.fair_threads(load, cores=4, work_s=0.001)

    levels = (1, 2, 3, 4, 5) if len(loops) > 3 else (1, 2, 3)
    report = build.report(record(service, users=(1, 20), processes=levels, trials=1))

    assert report.findings[0].rule == "eventloop.blocked"
    assert report.answer[0] == f"{report.findings[0].statement}{where}."


def test_the_finding_is_strong_over_three_trials_and_the_plateau_is_folded_under_it() -> None:
    first, *others = looped_report().findings
    folded = {other.rule: other.explained_by for other in others if other.explained_by is not None}
    standing = [other.rule for other in others if other.explained_by is None]

    assert (first.rule, first.grade) == ("eventloop.blocked", Grade.STRONG)
    assert folded["saturation.plateau"] == "eventloop.blocked"
    assert others[-1].rule in NOTES  # they come last
    assert set(standing) <= NOTES | {"scaling.workers"}  # 4.9 /s from one process, 9.8 /s from two


def test_a_study_chooses_its_charts_and_their_order() -> None:
    all_of_them = looped_report().charts

    assert [c.kind for c in charts.chosen(all_of_them, ("demand", "load_curve"))] == ["demand", "load_curve"]
    assert charts.chosen(all_of_them, ()) == all_of_them


def test_a_lower_bound_of_the_capacity_is_said_where_the_plateau_is_drawn_and_among_the_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load_chart(report: Report) -> Chart:
        return next(chart for chart in report.charts if chart.kind == "load_curve")

    closed = looped_report()
    monkeypatch.setattr(accept_drops, "are_kept_waiting", lambda curve, step: "processes=1" in curve.label)

    bound = build.report(looped())

    labels = [[str(row["label"]) for row in load_chart(one).datasets["plateau"]] for one in (closed, bound)]
    assert [["at least" in label for label in both] for both in labels] == [[False, False], [True, False]]
    assert load_chart(bound).headline.startswith("The capacity is at least ")
    assert "at least" not in load_chart(closed).headline
    said = [text for text in bound.limits if "lower bound of the capacity: clients waited" in text]
    assert len(said) == 1
    assert not any("lower bound of the capacity" in text for text in closed.limits)


def test_evidence_points_at_charts_that_the_report_has() -> None:
    made = looped_report()
    anchors = {chart.anchor: chart.kind for chart in made.charts}

    pointed = {e.signal: anchors[e.chart] for e in made.findings[0].evidence if e.chart}

    assert pointed["probe.coupling"] == "bystander"
    assert pointed["work.cpu"] == "demand"


@pytest.mark.parametrize(
    ("service", "rule"),
    [
        (lambda load, _: services.fair_threads(load, cores=1), "saturation.plateau"),
        (lambda load, _: services.behind_lock(load), "saturation.plateau"),
        (lambda load, _: services.behind_lock(load, timeout_s=2.0), "db.lock-timeouts"),
    ],
    ids=["threads", "lock", "lock with time-outs"],
)
def test_other_causes_are_not_called_a_blocked_loop(service, rule) -> None:  # type: ignore[no-untyped-def]
    report = build.report(record(service, trials=1))

    assert rule in [f.rule for f in report.findings]
    assert "eventloop.blocked" not in [f.rule for f in report.findings]


def test_renaming_everything_and_stretching_time_finds_the_same() -> None:
    names = Names("x", "y", "z", "/ж", "q", "/", "e", "n", "m")
    renamed = build.report(
        record(
            lambda load, k: services.blocking_loop(load, processes=k, work_s=0.6),
            processes=(1, 2),
            names=names,
            scale=3.0,
            seconds=45.0,
        )
    )

    assert [(f.rule, f.grade, f.explained_by) for f in renamed.findings] == [
        (f.rule, f.grade, f.explained_by) for f in looped_report().findings
    ]


def test_cells_hold_the_simulated_truth() -> None:
    one = cell(looped_report(), "1", "20")

    assert point(one.figures["rate"]) == pytest.approx(
        1 / 0.204, rel=0.02
    )  # 0.2 s, and 4 probes of 1 ms each
    assert point(one.figures["mean"]) == pytest.approx(20 / 4.9 - 0.15, rel=0.02)  # N / X - Z
    assert point(one.figures["cpu"]) == pytest.approx(1.0, abs=0.01)


def test_figures_stand_on_three_trials_and_one_trial_is_labelled_as_such() -> None:
    over = cell(looped_report(), "1", "20").figures["mean"]
    single = cell(build.report(record(lambda load, _: services.blocking_loop(load), **SHORT)), "", "20")

    assert isinstance(over, Estimate)
    assert over.trials == 3
    assert "within one trial" in single.figures["mean"].method  # type: ignore[union-attr]


def test_two_usable_trials_are_undecided_with_what_they_gave() -> None:
    run = record(lambda load, _: services.blocking_loop(load), users=(5,), trials=2)

    report = build.report(run)
    (only,) = report.matrices[0].cells.values()
    mean = only.figures["mean"]

    assert report.answer[0].startswith("Undecided: needs at least 3 trials, has 2")
    assert isinstance(mean, Undecided)
    assert "needs at least 3 trials, has 2; they gave 8" in mean.reason


def test_the_knee_stands_before_the_first_column_beyond_it() -> None:
    assert looped_report().matrices[0].knee_after == {"1": "1", "2": "1"}  # N* = 1.7 and 3.5 users


def test_every_request_is_reconciled_with_what_the_service_wrote_down() -> None:
    rows = {row.source: row for row in looped_report().accounting}

    assert rows["service, /orders"].difference == 0
    assert rows["service, /ping"].difference == 2 * 18  # readiness of 18 trials
    assert all(row.state == "ok" for row in rows.values())
    assert "readiness 36" in rows["service, /ping"].explained_by


def test_requests_that_the_service_never_wrote_down_are_not_explained_away() -> None:
    run = record(lambda load, _: services.blocking_loop(load), **SHORT)
    run.trials[1].uncounted = 3

    report = build.report(run)

    assert any(row.state == "bad" and "-" in row.explained_by for row in report.accounting)
    assert any(badge.state == "bad" and "not explained" in badge.text for badge in report.badges)


def test_an_invalid_trial_is_shown_and_enters_no_figure() -> None:
    run = record(lambda load, _: services.blocking_loop(load), users=(1, 20), trials=1)
    run.trials[1].status = TrialStatus.INVALID
    run.trials[1].reasons = ("the data were not put back",)

    report = build.report(run)
    shown = cell(report, "", "20")

    assert (shown.state, shown.word) == ("bad", "invalid")
    assert shown.figures["mean"] == NotMeasured("response_time.mean", "the data were not put back")
    assert any("the data were not put back" in limit for limit in report.limits)
    assert report.details[1].trials[0].note == "the data were not put back"


def test_a_run_without_any_trial_still_reports() -> None:
    run = record(lambda load, _: services.blocking_loop(load), **SHORT)
    run.trials.clear()

    report = build.report(run)

    assert report.answer == ("Nothing was measured: not run.",)
    assert report.findings == ()


def test_held_out_cases_are_shown_but_no_rule_and_no_curve_uses_them() -> None:
    run = record(lambda load, k: services.blocking_loop(load, processes=k), processes=(1, 2), trials=1)
    for case in run.study["cases"]:
        case["held_out"] = case["levels"]["processes"] == "2"
    for trial in run.trials:
        trial.case = replace(trial.case, held_out=trial.case.levels["processes"] == "2")

    facts, report = whole_run.facts(run), build.report(run)

    assert [curve.label for curve in facts.curves] == ["processes=1"]
    assert any("held-out cases" in limit for limit in report.limits)
    assert any(cell.word == "held out" for matrix in report.matrices for cell in matrix.cells.values())


def test_a_held_out_change_stands_beside_what_it_changed() -> None:
    def changed(load: services.Load, level: int) -> services.Trace:
        return services.blocking_loop(load) if level == 1 else services.fair_threads(load, cores=4)

    run = record(changed, users=(1, 20), processes=(1, 2), trials=1)
    for case in run.study["cases"]:
        case["held_out"] = case["levels"].pop("processes") == "2"
        case["levels"] |= {"work": "threads"} if case["held_out"] else {}

    lines = {line.label: line.text for line in build.report(run).lines}

    assert lines["measured"].startswith("work=threads at 20 users: 4.9")  # requests per second before
    assert "; ping takes 3.8" in lines["measured"]


def test_cases_that_need_more_cores_are_not_judged() -> None:
    run = record(lambda load, _: services.blocking_loop(load), **SHORT)
    run.study["cases"][0]["needs_cores"] = 4  # as many as there are
    run.study["cases"][1]["needs_cores"] = 8

    assert cell(build.report(run), "", "1").judged
    shown = cell(build.report(run), "", "20")

    assert not shown.judged
    assert shown.word == "not judged: 4 cores"


def test_every_chart_keeps_the_contract_of_its_columns() -> None:
    report = looped_report()
    charts = [*report.charts, *(chart for detail in report.details for chart in detail.charts)]

    assert {chart.kind for chart in charts} >= {"load_curve", "bystander", "demand", "heat", "resources"}
    assert [fault for chart in charts for fault in columns.faults(chart)] == []


def test_the_time_of_a_request_is_split_without_a_rest_that_was_not_looked_at() -> None:
    chart = next(chart for chart in looped_report().charts if chart.kind == "demand")
    parts = {
        row["part"]: row["ms"]
        for row in chart.datasets["parts"]
        if row["case"].endswith("processes=1 users=20")
    }

    assert parts["CPU, user"] == pytest.approx(204, rel=0.02)
    assert parts["waiting for the event loop"] == pytest.approx(3930 - 200, rel=0.03)
    assert "unexplained" not in parts
    assert chart.headline.startswith("Waiting for the event loop: 3.")


def test_server_and_client_times_stand_side_by_side() -> None:
    step = whole_run.facts(looped()).curves[0].steps[-1]

    assert point(step.classes[0].inside) == pytest.approx(0.2, rel=0.02)
    assert point(step.classes[0].response.mean) == pytest.approx(3.93, rel=0.02)


PUBLISHED = {
    "file": "published.csv",
    "cores": 4,
    "rows": [
        {"experiment": "rush", "processes": "1", "users": n, "step": "order", "metric": "response_time.mean",
         "side": "client", "value": value, "unit": "ms", "note": ""}
        for n, value in (("1", "220"), ("5", "950"), ("20", "9000"))
    ],
}  # fmt: skip


def test_published_figures_are_compared_as_multiples_of_a_reference() -> None:
    section = build.report(replace(looped(), study={**looped().study, "published": PUBLISHED})).published

    assert section is not None
    assert [row.shape for row in section.rows] == ["reference", "agrees", "differs"]
    assert section.rows[1].ratio == pytest.approx((0.867 / 0.201) / (950 / 220), rel=0.02)


def test_claims_about_shape_hold_or_not_with_our_figure() -> None:
    claims = [
        {"kind": "ratio", "metric": "response_time.mean", "step": "order", "experiment": "rush",
         "where": {"processes": "1"}, "of": {"users": "20"}, "to": {"users": "5"},
         "published": 4.5, "within": 0.3},
        {"kind": "rises", "metric": "response_time.mean", "step": "ping", "experiment": "rush",
         "where": {"processes": "1"}, "over": "users"},
        {"kind": "order", "metric": "throughput", "step": None, "experiment": "rush",
         "where": {"users": "20"}, "across": "processes", "expected": ["2", "1"]},
        {"kind": "same", "metric": "throughput", "step": None, "experiment": "rush",
         "where": {"users": "20"}, "across": "processes", "within": 0.1},
    ]  # fmt: skip

    section = build.report(replace(looped(), study={**looped().study, "claims": claims})).published

    assert section is not None
    assert [claim.holds for claim in section.claims] == [True, True, False, False]
    assert [claim.claim for claim in section.claims] == [
        "response time mean of order in rush: users=20 over users=5 at processes=1",
        "response time mean of ping in rush rises over users at processes=1",
        "throughput in rush: order across processes at users=20",
        "throughput in rush is the same across processes at users=20",
    ]
    assert point(section.claims[0].ours) == pytest.approx(3.93 / 0.867, rel=0.02)


def test_one_trial_cannot_contradict_a_claim() -> None:
    claim = {"kind": "ratio", "metric": "response_time.mean", "step": "order", "experiment": "rush",
             "of": {"users": "20"}, "to": {"users": "1"}, "published": 2.0, "within": 0.1}  # fmt: skip
    run = record(lambda load, _: services.blocking_loop(load), claims=[claim], **SHORT)

    section = build.report(run).published

    assert section is not None
    assert section.claims[0].holds is None
    assert "one trial" in section.claims[0].note


def test_a_share_of_cpu_time_counts_once_for_each_replica() -> None:
    run = record(lambda load, _: services.blocking_loop(load), users=(5,), trials=1)
    (trial,) = run.trials
    trial.placement = Placement(services={"web": PlacedService(cpu=0.3), "front": PlacedService()})
    trial.services = (
        *(ServiceProcess("web", replica, pid=100) for replica in (1, 2, 3)),
        ServiceProcess("front", pid=100),
    )

    (curve,) = whole_run.facts(run).curves

    assert curve.cores_allotted == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("held", "cores"),
    [(([1], [1]), 1.0), (([0], [1]), 2.0), (([0, 1, 2, 3],), 4.0), (([1], None), 4.0), ((), 4.0)],
)
def test_what_ran_already_is_allotted_the_cpus_that_it_may_run_on(held: Any, cores: float) -> None:
    run = record(lambda load, _: services.blocking_loop(load), users=(5,), trials=1)
    (trial,) = run.trials
    replicas = tuple(Bounds(cpus=None if cpus is None else tuple(cpus)) for cpus in held)
    trial.placement = Placement(services={"web": PlacedService(held=replicas)})

    (curve,) = whole_run.facts(run).curves

    assert curve.cores_allotted == cores


def test_a_figure_of_nothing_is_no_reference_and_no_claim_divides_by_it() -> None:
    base = {"metric": "failed.share", "step": None, "experiment": "rush", "where": {"processes": "1"}}
    claims = [
        {
            **base,
            "kind": "ratio",
            "of": {"users": "20"},
            "to": {"users": "1"},
            "published": 2.0,
            "within": 0.1,
        },
        {**base, "kind": "rises", "over": "users"},
        {**base, "kind": "same", "across": "users"},
    ]
    row = {"experiment": "rush", "step": "order", "metric": "failed.share", "side": "client", "unit": ""}
    rows = [{**row, "processes": "1", "users": users, "value": "0.5"} for users in ("1", "20")]
    published = {"file": "p.csv", "cores": None, "rows": rows}

    # nobody fails at the simulated service, so every share is 0
    study = {**looped().study, "claims": claims, "published": published}
    section = build.report(replace(looped(), study=study)).published

    assert section is not None
    assert [row.holds for row in section.claims] == [None, None, None]
    assert all(isinstance(row.ours, NotMeasured) for row in section.claims)
    assert {row.ratio for row in section.rows} == {None}
