"""What monitors read, as series of exports: the readings of the record, under load only."""

from __future__ import annotations

from loadlens.export.follow import Following
from loadlens.export.prometheus import RemoteWrite
from loadlens.export.tally import MOST_READINGS, READING, Point, Snapshot, Tally
from loadlens.record import Reading, open_run, sealed_readings
from tests.unit.export.build import PLAN, T0_NS
from tests.unit.ui.pages import KEPT


def test_readings_of_monitors_are_gauges_with_their_labels_up_to_a_number_of_series() -> None:
    tally = Tally(PLAN, T0_NS, {"loadlens.run": "r"})
    for number in range(MOST_READINGS + 5):
        labels = f'{{"pid": "{number}", "service": "api"}}'
        tally.add_reading(Reading("proc", "rss_bytes", labels, "bytes"), 7.0 + number)
    tally.add_reading(Reading("proc", "rss_bytes", '{"pid": "0", "service": "api"}', "bytes"), 9.0)

    points = tally.snapshot().points

    assert len(points) == MOST_READINGS
    assert points[0] == Point(
        READING,
        (
            ("loadlens.metric", "rss_bytes"),
            ("loadlens.monitor", "proc"),
            ("loadlens.run", "r"),
            ("loadlens.unit", "bytes"),
            ("pid", "0"),
            ("service", "api"),
        ),
        9.0,
    )


def test_a_sealed_run_is_sent_with_the_readings_of_its_load_and_without_those_around_it() -> None:
    trial = open_run(KEPT).trials[0]
    expected: dict[tuple[str, str, str], float] = {}
    for reading, seconds, values in sealed_readings(trial):
        for at_s, value in zip(seconds, values, strict=True):
            if value is not None and at_s >= 0:
                expected[reading.source, reading.metric, reading.labels] = value

    last = [each for each in Following(KEPT).more() if _is_of(each, trial.name)][-1]

    sent = [float(str(point.value)) for point in last.points if point.family is READING]
    assert sorted(sent) == sorted(expected.values())
    assert sent


def test_a_label_of_a_service_never_takes_the_place_of_one_of_the_export() -> None:
    tally = Tally(PLAN, T0_NS, {"loadlens.run": "r"})
    tally.add_reading(Reading("scrape", "jobs", '{"job": "mail", "le": "1"}', ""), 3.0)

    [(written, _)] = RemoteWrite().requests([tally.snapshot()])

    # Prometheus refuses a series with a name twice; the name of the other is that of its own scrapes
    assert written.count(b"\n\x03job") == 1
    assert b"\n\x0cexported_job\x12\x04mail" in written
    assert b"\n\x02le\x12\x011" in written


def _is_of(snapshot: Snapshot, trial: str) -> bool:
    labels = dict(snapshot.points[0].labels)
    case = open_run(KEPT).trials[0].case.slug
    return (labels["loadlens.trial"], labels["loadlens.case"]) == (trial, case)
