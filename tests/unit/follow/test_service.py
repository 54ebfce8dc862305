"""Readings over time: rates of counters, levels of gauges, and the choice of what is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadlens.follow import service
from loadlens.follow.service import MOST_OF_TOPIC, MOST_SHOWN, ServiceOverTime
from loadlens.model.readings import HostMetrics, Metric, PostgresMetrics, ProcMetrics, TcpMetrics
from loadlens.record import Reading


def reading(metric: Metric, **labels: str) -> Reading:
    return Reading(metric.monitor, metric.name, json.dumps(labels), metric.unit)


def scraped(name: str, **labels: str) -> Reading:
    return Reading("scrape", name, json.dumps(labels), "")


def shown(of: ServiceOverTime) -> dict[str, list[dict[str, Any]]]:
    """The series by topic and unit, once no more will come."""
    of.end()
    of.choose()
    return {f"{topic['id']} {topic['unit']}".strip(): topic["series"] for topic in of.whole()["topics"]}


def test_a_counter_is_its_growth_per_second_between_its_last_readings() -> None:
    columns = ServiceOverTime()
    run = reading(ProcMetrics.thread_run_s, thread="web", tid="7", service="api")

    # growth 0.5 in 1.0 s from 0.9 to 1.9, then 0.4 in 2 s over the second that has no reading
    for seconds, value in ((-0.1, 1.0), (0.4, 1.1), (0.9, 1.2), (1.4, 1.5), (1.9, 1.7), (3.9, 2.1)):
        columns.take(run, seconds, value)

    (series,) = shown(columns)["cpu share"]
    assert series["values"] == pytest.approx([0.2, 0.5, None, 0.2])


def test_a_gauge_is_its_last_reading_in_each_second() -> None:
    columns = ServiceOverTime()
    queue = reading(TcpMetrics.accept_queue, port="80")

    for seconds, value in ((0.1, 3.0), (0.6, 5.0), (1.1, None), (2.2, 1.0)):
        columns.take(queue, seconds, value)

    (series,) = shown(columns)["accept_queue"]
    assert series["values"] == [5.0, None, 1.0]


def test_a_counter_that_goes_back_is_not_known_for_that_second() -> None:
    columns = ServiceOverTime()
    waited = reading(HostMetrics.pressure_cpu_some_s)

    for seconds, value in ((0.5, 9.0), (1.5, 9.5), (2.5, 0.1), (3.5, 0.4)):
        columns.take(waited, seconds, value)

    (series,) = shown(columns)["run_queue share"]
    assert series["values"] == pytest.approx([None, 0.5, None, 0.3])


def test_names_that_services_export_find_their_topic_by_their_words() -> None:
    columns = ServiceOverTime()
    for at in (0.5, 1.5):
        columns.take(scraped("hikaricp_connections_active", pool="main"), at, 4.0)
        columns.take(scraped("jvm_gc_pause_seconds_sum", action="minor"), at, at / 10)
        columns.take(scraped("app_heap_bytes"), at, 1e6)
        columns.take(scraped("app_orders_total"), at, at)
        columns.take(reading(PostgresMetrics.connections, state="active", wait="Lock"), at, 2.0)

    topics = shown(columns)
    assert topics["pools"][0]["values"] == [4.0, 4.0]
    assert topics["gc share"][0]["values"] == pytest.approx([None, 0.1])
    assert topics["memory bytes"][0]["name"] == "app heap"
    assert topics["database"][0]["labels"] == {"state": "active", "wait": "Lock"}
    assert len(topics) == 4  # orders are no resource


def test_of_many_threads_the_busiest_are_shown_and_the_others_counted() -> None:
    columns = ServiceOverTime()
    for tid in range(30):
        for at in (0.5, 1.5):
            columns.take(reading(ProcMetrics.thread_run_s, tid=str(tid)), at, at * tid / 100)

    columns.end()
    columns.choose()
    (topic,) = columns.whole()["topics"]
    assert {series["labels"]["tid"] for series in topic["series"]} == {str(tid) for tid in range(22, 30)}
    assert topic["left_out"] == 30 - MOST_OF_TOPIC


def test_what_is_shown_stays_until_another_series_is_twice_as_high() -> None:
    columns = ServiceOverTime()
    for tid in range(MOST_OF_TOPIC + 1):
        columns.take(reading(ProcMetrics.rss_bytes, pid=str(tid)), 0.5, 10.0 + tid)
    columns.choose()
    before = columns.version

    columns.take(reading(ProcMetrics.rss_bytes, pid="0"), 1.5, 19.0)
    columns.choose()
    assert columns.version == before
    columns.take(reading(ProcMetrics.rss_bytes, pid="0"), 2.5, 30.0)
    columns.choose()
    assert columns.version == before + 1


def test_all_topics_together_stay_below_the_bound() -> None:
    columns = ServiceOverTime()
    metrics = [metric for topic in service.TOPICS for metric in topic.metrics]
    for metric in metrics:
        for number in range(20):
            for at in (0.5, 1.5):
                columns.take(reading(metric, state=str(number)), at, at * (number + 1))

    assert sum(map(len, shown(columns).values())) == MOST_SHOWN


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> ServiceOverTime:
    """Columns that keep ten series."""
    monkeypatch.setattr(service, "MOST_KEPT", 10)
    return ServiceOverTime()


def test_labels_that_differ_in_every_request_take_no_more_than_the_bound(columns: ServiceOverTime) -> None:
    for number in range(25):
        columns.take(scraped("pool_connections_active", request=str(number)), 0.5, 1.0)

    columns.choose()
    assert columns.whole()["left_out"] == 15


def test_a_series_beyond_the_bound_counts_once_however_often_it_is_read(columns: ServiceOverTime) -> None:
    for second in range(4):
        for number in range(25):
            columns.take(scraped("pool_connections_active", request=str(number)), second + 0.5, 1.0)

    assert columns.whole()["left_out"] == 15


def test_series_that_no_chart_shows_take_no_place_of_those_that_come_later(columns: ServiceOverTime) -> None:
    for number in range(25):
        columns.take(scraped("app_orders_total", request=str(number)), 0.5, 1.0)
        columns.take(Reading("otlp", "span", json.dumps({"path": str(number)}), "s"), 0.5, 1.0)
    columns.take(scraped("pool_connections_active"), 0.5, 4.0)

    assert columns.whole()["left_out"] == 0
    assert shown(columns)["pools"][0]["values"] == [4.0]


def test_series_that_are_not_kept_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_KEPT", 1)
    monkeypatch.setattr(service, "MOST_PASSED_OVER", 10)
    columns = ServiceOverTime()

    for number in range(95):
        columns.take(scraped("pool_connections_active", request=str(number)), 0.5, 1.0)
        columns.take(scraped("app_orders_total", request=str(number)), 0.5, 1.0)
        columns.take(Reading("otlp", "span", json.dumps({"path": str(number)}), "s"), 0.5, 1.0)

    held = (columns._series, columns._without_topic, columns._dropped)  # 1 kept, 10 of each sort passed over
    assert [len(each) for each in held] == [1, 10, 10]


def test_a_long_trial_has_longer_steps_and_its_columns_are_sent_anew() -> None:
    columns = ServiceOverTime()
    run, rss = reading(ProcMetrics.thread_run_s, tid="1"), reading(ProcMetrics.rss_bytes, pid="1")
    for second in range(5_000):
        columns.take(run, second + 0.5, second / 4)
        columns.take(rss, second + 0.5, float(second))

    topics = shown(columns)
    whole = columns.whole()
    assert whole["length_s"] == 2.0
    assert len(whole["start_s"]) == 2_500
    assert topics["memory bytes"][0]["values"][:3] == [1.0, 3.0, 5.0]  # the later of two
    assert topics["cpu share"][0]["values"][1:] == pytest.approx([0.25] * 2_499)


def test_few_series_stand_for_the_service_and_none_for_the_lab_itself() -> None:
    columns = ServiceOverTime()
    growth = {("api", "1"): 0.5, ("api", "2"): 0.9, ("(generator)", "9"): 1.0}
    for second in range(5):
        for (of, thread), share in growth.items():
            run = reading(ProcMetrics.thread_run_s, service=of, pid="1", tid=thread)
            columns.take(run, second + 0.5, second * share)
        accept = reading(TcpMetrics.accept_queue, service="api")
        columns.take(accept, second + 0.5, 0.0)  # no chart shows what never was anything else
    columns.choose()

    courses = columns.leading(3)

    assert [(course.name, course.newest) for course in courses] == [
        ("busiest thread", pytest.approx(0.9)),
        ("accept queue", 0.0),
    ]
    assert {len(course.values) for course in courses} == {3}


def test_threads_of_the_service_come_before_those_of_the_lab_however_busy() -> None:
    columns = ServiceOverTime()
    threads = [("(generator)", str(number), 9.0) for number in range(MOST_OF_TOPIC)] + [("api", "5", 1.0)]
    for second in range(2):
        for of, tid, share in threads:
            columns.take(reading(ProcMetrics.thread_run_s, service=of, tid=tid), second + 0.5, second * share)

    labels = [series["labels"]["service"] for series in shown(columns)["cpu share"]]
    assert labels == ["api", *["(generator)"] * (MOST_OF_TOPIC - 1)]


def test_processes_of_one_name_are_told_apart_by_their_numbers() -> None:
    columns = ServiceOverTime()
    for of, pid in (("api", "11"), ("api", "12"), ("db", "13")):
        columns.take(reading(ProcMetrics.rss_bytes, service=of, pid=pid), 0.5, 1e6)

    assert [series["name"] for series in shown(columns)["memory bytes"]] == ["api 11", "api 12", "db"]
