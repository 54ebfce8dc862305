"""hey's summary and CSV, with expected text from the template of hey 0.1.5 and figures counted by hand."""

from __future__ import annotations

from loadlens.model.trial import Outcome
from loadlens_compat.hey.layout import csv, figures_of, text
from loadlens_compat.logged import Request

MS = 1_000_000


def request(
    total_ms: float, *, sent_ms: float = 0, connect_ms: float = 0, status: int = 200, body: int = 11
) -> Request:
    sent, done = round(sent_ms * MS), round((sent_ms + total_ms) * MS)
    return Request(sent, round(connect_ms * MS), done - MS, done, body, status, Outcome.OK)


def refused() -> Request:
    return Request(0, 0, -1, MS, 0, 0, Outcome.REFUSED)


def test_the_summary_is_that_of_the_template() -> None:
    # 10, 20, ... 100 ms: ten steps of 9 ms from 10 to 100; each time but the first lies in a step of its own.
    load = [request(10.0 * n, connect_ms=5 if n == 1 else 0) for n in range(1, 11)]

    printed = text(figures_of(load, 0.5))

    bar = "■" * 40
    marks = [
        "0.010",
        "0.019",
        "0.028",
        "0.037",
        "0.046",
        "0.055",
        "0.064",
        "0.073",
        "0.082",
        "0.091",
        "0.100",
    ]
    counts = [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    histogram = "".join(f"  {m} [{n}]\t|{bar * n}\n" for m, n in zip(marks, counts, strict=True))
    # Of ten values the last lies at 90 %: none is at or above 95 %, and hey says 0 there.
    assert printed == (
        "\nSummary:\n"
        "  Total:\t0.5000 secs\n"
        "  Slowest:\t0.1000 secs\n"
        "  Fastest:\t0.0100 secs\n"
        "  Average:\t0.0550 secs\n"
        "  Requests/sec:\t20.0000\n"
        "  \n"
        "  Total data:\t110 bytes\n"
        "  Size/request:\t11 bytes\n"
        "\nResponse time histogram:\n"
        f"{histogram}"
        "\n\nLatency distribution:\n"
        "  10%% in 0.0200 secs\n"
        "  25%% in 0.0400 secs\n"
        "  50%% in 0.0600 secs\n"
        "  75%% in 0.0900 secs\n"
        "  90%% in 0.1000 secs\n"
        "  0%% in 0.0000 secs\n"
        "  0%% in 0.0000 secs\n"
        "\nDetails (average, fastest, slowest):\n"
        "  DNS+dialup:\t0.0005 secs, 0.0000 secs, 0.0050 secs\n"
        "  DNS-lookup:\t0.0000 secs, 0.0000 secs, 0.0000 secs\n"
        "  req write:\tnot measured: it is in resp wait\n"
        "  resp wait:\t0.0535 secs, 0.0040 secs, 0.0990 secs\n"
        "  resp read:\t0.0010 secs, 0.0010 secs, 0.0010 secs\n"
        "\nStatus code distribution:\n"
        "  [200]\t10 responses\n"
        "\n\n\n"
    )


def test_failures_stand_below_and_count_as_requests_per_second() -> None:
    result = figures_of([request(10), refused(), refused(), request(10, status=503)], 2.0)

    assert result.ended == 4
    assert text(result).endswith(
        "Status code distribution:\n  [200]\t1 responses\n  [503]\t1 responses\n\n"
        "Error distribution:\n  [2]\trefused\n\n"
    )
    assert "  Requests/sec:\t2.0000\n" in text(result)


def test_a_load_without_answers_has_no_number_for_its_mean() -> None:
    printed = text(figures_of([refused()], 0.1))

    assert "  Average:\tNaN secs\n" in printed
    assert "Response time histogram:\n\n\nLatency distribution:\n\nDetails" in printed


def test_the_load_lasts_until_its_last_request_has_ended() -> None:
    assert figures_of([request(100, sent_ms=950)], 1.0).seconds == 1.05


def test_rows_of_the_csv_leave_out_what_was_not_measured() -> None:
    rows = list(csv([request(20, sent_ms=500, connect_ms=2), refused()]))

    assert rows == [
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset",
        "0.0200,0.0020,0.0000,,0.0170,0.0010,200,0.5000",
    ]
