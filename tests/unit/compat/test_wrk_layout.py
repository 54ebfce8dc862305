"""wrk's layout against what wrk itself printed, published with its figures."""

from __future__ import annotations

import pytest

from loadlens_compat.wrk.layout import (
    Line,
    WrkFigures,
    binary,
    figures_of,
    head,
    metric,
    microseconds,
    text,
)

# wrk -t12 -c12 -d60s --latency, as published with a study of a JSON service.
ONE_MINUTE = """\
Running 1m test @ http://localhost:4000
  12 threads and 12 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   477.31us  123.80us   3.05ms   75.66%
    Req/Sec     2.10k   198.83     2.78k    62.43%
  Latency Distribution
     50%  450.00us
     75%  524.00us
     90%  648.00us
     99%    0.87ms
  1435848 requests in 1.00m, 345.77MB read
Requests/sec:  23931.42
Transfer/sec:      5.76MB
"""
# The same with -t100 -c100, overloaded.
OVERLOADED = """\
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    13.40ms   24.24ms 118.92ms   90.16%
    Req/Sec   256.22    196.73     2.08k    74.35%
  1462818 requests in 1.00m, 352.26MB read
Requests/sec:  24386.51
Transfer/sec:      5.87MB
"""


def figures(
    latency: Line, rate: Line, requests: int, per_s: float, mib: float, percentiles: dict[float, int]
) -> WrkFigures:
    return WrkFigures(
        latency=latency,
        rate=rate,
        percentiles=list(percentiles.items()),
        duration_us=round(1e6 * requests / per_s),
        requests=requests,
        bytes=round(mib * 2**20),
        connect=0,
        read=0,
        timeout=0,
        status=0,
    )


def test_the_published_output_comes_out_character_for_character() -> None:
    shown = figures(
        Line(477.31, 123.80, 3050, 75.66),
        Line(2100, 198.83, 2780, 62.43),
        1435848,
        23931.42,
        345.77,
        {50.0: 450, 75.0: 524, 90.0: 648, 99.0: 870},
    )

    lines = [
        *head("http://localhost:4000", duration_s=60, threads=12, connections=12),
        *text(shown, percentiles=True),
    ]

    assert "\n".join(lines) + "\n" == ONE_MINUTE


def test_units_of_one_letter_and_none_end_at_the_same_column() -> None:
    shown = figures(
        Line(13_400, 24_240, 118_920, 90.16), Line(256.22, 196.73, 2080, 74.35), 1462818, 24386.51, 352.26, {}
    )

    assert "\n".join(text(shown, percentiles=False)) + "\n" == OVERLOADED


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0.00us"),
        (849, "849.00us"),
        (850, "0.85ms"),
        (999_999, "1000.00ms"),
        (1e6, "1.00s"),
        (5.1e7, "0.85m"),
    ],
)
def test_times_change_their_unit_at_85_percent_of_the_next(value: float, shown: str) -> None:
    # src/units.c of wrk 4.1: above a second another list of units is taken, seconds to minutes.
    assert microseconds(value) == shown


def test_counts_go_by_thousands_and_bytes_by_1024() -> None:
    assert [metric(n) for n in (849, 850, 2_100, 850_000)] == ["849.00", "0.85k", "2.10k", "0.85M"]
    assert [binary(n) for n in (870, 871, 2**30)] == ["870.00", "0.85K", "1.00G"]


def test_a_load_without_answers_has_no_share_within_a_deviation() -> None:
    nothing = Line(0, 0, 0, None)
    shown = WrkFigures(nothing, nothing, [], 1_000_000, 0, 0, connect=1, read=2, timeout=3, status=4)

    lines = list(text(shown, percentiles=False))

    assert lines[1] == "    Latency     0.00us    0.00us   0.00us    -nan%"
    assert lines[2] == "    Req/Sec     0.00      0.00     0.00      -nan%"
    assert lines[4] == "  Socket errors: connect 1, read 2, write 0, timeout 3"
    assert lines[5] == "  Non-2xx or 3xx responses: 4"


def test_each_failure_is_in_one_of_the_words_of_wrk() -> None:
    failed = {"refused": 1, "tls": 2, "timeout": 4, "connect_timeout": 8, "reset": 16, "malformed": 32}
    result = {
        "measured_s": 2.0,
        "streams": [
            {
                "errors": {name: {"count": count} for name, count in failed.items()},
            }
        ],
    }
    line = {"count": 100, "mean": 0, "stdev": 0, "max": 0, "within_stdev": None}

    shown = figures_of(
        result,
        {"latency": line, "requests": line, "percentiles": [], "bytes": 1000, "statuses_above_399": 7},
    )

    assert (shown.connect, shown.timeout, shown.read, shown.status) == (3, 12, 48, 7)
    assert (shown.requests, shown.duration_us, shown.bytes) == (100, 2_000_000, 1000)
    assert shown.summary()["errors"] == {"connect": 3, "read": 48, "write": 0, "status": 7, "timeout": 12}
