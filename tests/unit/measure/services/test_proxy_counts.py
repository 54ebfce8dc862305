"""The books of fault proxies in reports, from scrapes written by hand; expected values are sums by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl

from loadlens.measure.services import proxy_counts
from loadlens.model.finding import Estimate
from loadlens.model.plain import read
from loadlens.model.report import Table
from loadlens.model.result import StreamResult
from loadlens.model.topology import Entry, Service
from loadlens.report.build import report
from loadlens.report.write import html, markdown
from loadlens.report.write.json import report_as_json
from loadlens.report.write.terminal.report_text import report_lines
from tests.records import planned_case, request_counts, stream_result
from tests.unit.measure.records import Run, record
from tests.unit.whatif.services import blocking_loop

SCHEMA = {
    "time_ns": pl.Int64,
    "source": pl.String,
    "metric": pl.String,
    "labels": pl.String,
    "unit": pl.String,
    "value": pl.Float64,
}
PLAN = planned_case(
    entry={"service": "gate"},
    services=[{"name": "api"}, {"name": "gate", "use": "fault-proxy", "over": ["api"]}],
)
FIGURES = {  # the same law as in crates/proxy: outcomes add up to the requests
    "requests_total": (2.0, 102.0),
    "forwarded_total": (1.0, 41.0),
    "outcomes_total passed": (1.0, 40.0),
    "outcomes_total queue_full": (1.0, 51.0),
    "outcomes_total waited": (0.0, 10.0),
    "outcomes_total failed": (0.0, 1.0),
    "outcomes_total gone": (0.0, 0.0),
    "upstream_errors_total reset": (0.0, 1.0),
    "injected_total delay_request": (0.0, 20.0),
    "delayed_seconds_total": (0.0, 0.5),
    "wait_seconds_count": (0.0, 25.0),
    "wait_seconds_sum": (0.0, 1.0),
    "in_flight_most": (1.0, 8.0),
    "queue_length_most": (0.0, 5.0),
    "connections_total": (1.0, 7.0),
    "upstream_connections_total": (1.0, 9.0),
}


def scrapes(figures: dict[str, tuple[float, float]], service: str = "gate") -> list[Any]:
    """Two scrapes, one before the load and one after it."""
    label = {"outcomes_total": "outcome", "injected_total": "fault", "upstream_errors_total": "kind"}
    rows = []
    for place, at in enumerate((-1.0, 20.0)):
        for name, values in figures.items():
            metric, _, value = name.partition(" ")
            labels = {"service": service, "replica": "1"} | ({label[metric]: value} if value else {})
            text = json.dumps(labels)
            rows.append((int(at * 1e9), "scrape", f"loadlens_proxy_{metric}", text, "", values[place]))
    return rows


def trial(
    figures: dict[str, tuple[float, float]], issued: int = 100, answered: int = 99, failed: int = 1
) -> Any:
    frame = pl.DataFrame(scrapes(figures), schema=SCHEMA, orient="row")
    requests = request_counts(issued=issued, answered=answered, failed=failed)
    result = read(StreamResult, stream_result(requests=requests))
    stream = SimpleNamespace(result=result, plan=SimpleNamespace(is_probe=False), external=None)
    return SimpleNamespace(source=SimpleNamespace(readings=lambda: frame), streams=(stream,))


def case(*trials: Any) -> Any:
    return SimpleNamespace(plan=PLAN, usable=trials)


def cells(table: Table | None) -> dict[str, tuple[float, float | None]]:
    """Row -> how much, and what share of the requests."""
    assert table is not None
    by_name = {}
    for proxy, what, much, share in table.rows:
        assert proxy == "gate"
        assert isinstance(much, Estimate)
        by_name[str(what)] = (much.point, share.point if isinstance(share, Estimate) else None)
    return by_name


def test_the_table_says_what_came_in_and_what_became_of_it_in_counts_and_shares() -> None:
    counts = cells(proxy_counts.table(case(trial(FIGURES))))

    assert counts["came in"] == (100.0, 1.0)
    assert counts["handed to the service"] == (40.0, 0.4)
    assert counts["answered by the service"] == (39.0, 0.39)
    assert counts["refused: the queue was full"] == (50.0, 0.5)
    assert counts["refused: waited as long as it may"] == (10.0, 0.1)
    assert counts["failed at the service"] == (1.0, 0.01)
    assert "the client went away first" not in counts  # it never happened
    assert sum(counts[what][0] for what in proxy_counts.OUTCOMES.values() if what in counts) == 100


def test_times_have_seconds_and_the_most_at_once_is_the_highest_reading() -> None:
    table = proxy_counts.table(case(trial(FIGURES)))
    counts = cells(table)

    assert table is not None
    units = {str(row[1]): row[2].unit for row in table.rows if isinstance(row[2], Estimate)}
    assert counts["waiting, mean of these"] == (0.04, None)
    assert counts["time added, all together"] == (0.5, None)
    assert counts["time added, mean of a request"] == (0.005, None)
    assert {units[what] for what in ("waiting, mean of these", "time added, all together")} == {"s"}
    assert counts["at the service at once, most"] == (8.0, None)
    assert counts["waiting at once, most"] == (5.0, None)


def test_counts_of_several_trials_are_added_and_the_most_is_of_all() -> None:
    fuller = FIGURES | {"in_flight_most": (1.0, 11.0)}

    counts = cells(proxy_counts.table(case(trial(FIGURES), trial(fuller))))

    assert counts["came in"] == (200.0, 1.0)
    assert counts["time added, all together"] == (1.0, None)
    assert counts["at the service at once, most"] == (11.0, None)


def test_a_case_without_a_proxy_or_without_its_books_has_no_table() -> None:
    alone = SimpleNamespace(plan=planned_case(services=[{"name": "api"}]), usable=(trial(FIGURES),))

    assert proxy_counts.table(alone) is None  # type: ignore[arg-type]  # what it reads of a case
    assert proxy_counts.table(case(trial({}))) is None


def test_what_the_proxy_read_and_answered_is_held_against_the_client() -> None:
    read, answered = proxy_counts.accounting([case(trial(FIGURES))])

    assert (read.source, read.sent, read.observed, read.state) == ("gate, requests read", 100, 100, "ok")
    # 39 passed, 50 and 10 refused; the client had 99 answers, the one that failed at the service is open
    assert (answered.sent, answered.observed, answered.state) == (99, 99, "ok")
    assert (answered.expected_low, answered.expected_high) == (98, 100)


def test_requests_that_nobody_sent_and_answers_that_nobody_got_are_not_explained() -> None:
    more = FIGURES | {"requests_total": (2.0, 105.0), "outcomes_total queue_full": (1.0, 54.0)}

    read, answered = proxy_counts.accounting([case(trial(more))])

    assert (read.difference, read.state) == (3, "bad")
    assert "+3 not explained" in read.explained_by
    assert (answered.difference, answered.state) == (3, "bad")


def test_what_stands_behind_a_proxy_is_reached_through_it_alone() -> None:
    lb = Service("lb", use="nginx", over=("api",))

    assert proxy_counts.before(PLAN, "api") == "gate"
    assert proxy_counts.before(PLAN, "gate") is None
    assert proxy_counts.before(replace(PLAN, entry=Entry("api")), "api") is None
    assert proxy_counts.before(replace(PLAN, services=(*PLAN.services, lb)), "api") is None
    assert proxy_counts.before(replace(PLAN, entry=Entry("lb"), services=(lb,)), "api") is None


def guarded(counted: float, held: dict[str, tuple[float, float]]) -> Run:
    """A simulated service behind a proxy; what it counted, and the proxy's books."""
    run = record(lambda load, _: blocking_loop(load), users=(5,), trials=1)
    for case in run.study["cases"]:
        case["entry"] = {"service": "gate", "port": None}
        case["services"] = [
            {"name": "api", "use": "process", "scrape": {"requests": "served_total", "port": "metrics"}},
            {"name": "gate", "use": "fault-proxy", "over": ["api"]},
        ]
    text = json.dumps({"service": "api", "replica": "1"})
    own = [(int(at * 1e9), "scrape", "served_total", text, "", n) for at, n in ((-1.0, 0.0), (20.0, counted))]
    run.trials[0].further_readings = [*scrapes(held), *own]
    return run


def row_of(run: Run, source: str) -> Any:
    return next(row for row in report(run).accounting if row.source.startswith(source))


def test_what_a_service_counted_is_held_against_what_the_proxy_handed_on() -> None:
    good, bad = guarded(39.0, FIGURES), guarded(60.0, FIGURES)

    right, wrong = row_of(good, "api, served_total"), row_of(bad, "api, served_total")

    # 40 were handed on, one of them was reset: whether it was counted is not known
    assert (right.expected_low, right.expected_high, right.state) == (39, 40, "ok")
    assert right.explained_by.startswith("handed on by gate 39–40")
    assert (wrong.observed, wrong.state) == (60, "bad")


def test_what_was_handed_on_for_clients_that_have_gone_may_not_be_counted_yet() -> None:
    # 2 of the 39 answers were for clients that had gone
    gone = FIGURES | {"outcomes_total passed": (1.0, 38.0), "outcomes_total gone": (0.0, 2.0)}

    row = row_of(guarded(37.0, gone), "api, served_total")

    assert (row.expected_low, row.expected_high, row.state) == (37, 40, "ok")


def test_every_format_shows_what_the_proxy_did() -> None:
    made = report(guarded(39.0, FIGURES))

    page, text = html.page(made), markdown.page(made)
    (detail,) = json.loads(report_as_json(made))["details"]
    terminal = " ".join(" ".join(report_lines(made)).split())  # however it is wrapped

    assert "What the fault proxy did" in page
    assert "refused: the queue was full" in page
    assert "What the fault proxy did:" in text
    assert "| gate | refused: the queue was full | 50 requests | 50.0 % |" in text
    assert ["gate", "refused: the queue was full"] in [row[:2] for row in detail["proxies"]["rows"]]
    assert "gate: 100 requests" in terminal
    assert "50.0 % refused: the queue was full" in terminal
