"""ab's definitions, with expected values counted by hand from support/ab.c (2.4)."""

from __future__ import annotations

from loadlens.model.trial import Outcome
from loadlens_compat.ab.figures import Spread, figures_of, spread
from loadlens_compat.ab.files import percentile_file, request_file
from loadlens_compat.ab.layout import Shown, text
from loadlens_compat.logged import Request
from tests.unit.report.write import hit_result

MS = 1_000_000


def request(
    total_ms: float, *, connect_ms: float = 0, body: int = 5, outcome: Outcome = Outcome.OK
) -> Request:
    done = round(total_ms * MS)
    answered = outcome in (Outcome.OK, Outcome.UNEXPECTED_STATUS)
    first = done - MS // 2 if answered else -1
    return Request(0, round(connect_ms * MS), first, done, body, 200 if answered else 0, outcome)


def figures(*requests: Request, any_length: bool = False, **stream: object):  # type: ignore[no-untyped-def]
    result = hit_result.result(**stream)
    return figures_of(requests, result, closed_by_server=0, any_length=any_length)


def test_the_median_of_an_odd_number_is_the_mean_of_the_middle_and_the_one_above() -> None:
    # ab.c: (stats[done / 2] + stats[done / 2 + 1]) / 2 of 1, 2, 4, 8, 100 is (4 + 8) / 2.
    result = spread([100, 1, 2, 8, 4])

    assert result is not None
    assert result.median == 6
    assert (result.least, result.mean, result.most) == (1, 23, 100)


def test_the_median_of_an_even_number_is_the_upper_middle_value() -> None:
    result = spread([1, 2, 4, 8])

    assert result is not None
    assert result.median == 4
    # The mean 3.75 is cut to 3; squares 4 + 1 + 1 + 25 = 31 over n - 1 = 3.
    assert result.mean == 3
    assert round(result.deviation**2, 9) == round(31 / 3, 9)


def test_one_request_has_no_deviation() -> None:
    assert spread([7]) == Spread(7, 7, 0.0, 7, 7)
    assert spread([]) is None


def test_each_request_fails_in_one_class_at_most() -> None:
    outcomes = [
        Outcome.REFUSED, Outcome.TLS_TIMEOUT, Outcome.RESET, Outcome.CLOSED_BEFORE_RESPONSE,
        Outcome.TRUNCATED, Outcome.TIMEOUT, Outcome.MALFORMED, Outcome.LIMIT,
    ]  # fmt: skip
    result = figures(
        request(1), request(1, body=6), *(request(1, outcome=outcome, body=0) for outcome in outcomes)
    )

    assert (result.connect_failed, result.receive_failed, result.length_failed, result.exceptions) == (
        2,
        1,
        3,
        3,
    )
    assert result.failed == 9
    assert result.complete == 2 + 1 + 2  # answered, reset, cut short
    assert result.expected_but_other_length == 1
    assert result.document_length == 5


def test_the_first_answer_sets_the_length_whatever_ended_before_it() -> None:
    result = figures(request(1, outcome=Outcome.TRUNCATED, body=2), request(1, body=7), request(1, body=7))

    assert result.document_length == 7
    assert result.length_failed == 1


def test_only_2xx_are_2xx() -> None:
    result = figures(request(1), status={"200": 5, "204": 1, "302": 3, "404": 2, "500": 1})

    assert result.not_2xx == 6  # 302, 404 and 500


def test_rows_have_the_widths_of_ab() -> None:
    result = figures(*(request(10 + n, connect_ms=1) for n in range(100)))
    lines = text(result, Shown("127.0.0.1", 80, "/", 1))

    table = lines[lines.index("Connection Times (ms)") + 1 :]
    # 10 to 109 ms: mean 59.5 rounds up, the even median is the upper one, deviation 29.01; connect 1 ms.
    assert table[:5] == [
        "              min  mean[+/-sd] median   max",
        "Connect:        1    1   0.0      1       1",
        "Processing:     9   59  29.0     59     108",
        "Waiting:        9   58  29.0     59     108",
        "Total:         10   60  29.0     60     109",
    ]
    assert table[7:] == [
        "  50%     60",
        "  66%     76",
        "  75%     85",
        "  80%     90",
        "  90%    100",
        "  95%    105",
        "  98%    108",
        "  99%    109",
        " 100%    109 (longest request)",
    ]


def test_mean_and_median_far_apart_are_doubted_as_ab_doubts() -> None:
    # Ten of 1 ms and one of 1 s: mean 92, median 1, deviation 301: within one deviation.
    quiet = text(figures(*[request(1)] * 10, request(1000)), Shown("h", 80, "/", 1))

    assert not any(line.startswith(("WARNING", "ERROR")) for line in quiet)

    # In microseconds 1499, 1499, 1501: the mean 1499 rounds to 1 ms, the median of three, 1500, to 2; the
    # deviation is 1.4 microseconds.
    odd = text(figures(request(1.499), request(1.499), request(1.501)), Shown("h", 80, "/", 1))
    assert "ERROR: The median and mean for the total time are more than twice the standard" in odd


def test_the_percentile_file_takes_the_ranks_of_ab() -> None:
    lines = list(percentile_file([1000 * n for n in range(1, 201)]))

    # ab.c: stats[(0.5 + done * i / 100)], least at 0, most at 100.
    assert lines[1] == "0,1.000"
    assert lines[2] == "1,3.000"
    assert lines[51] == "50,101.000"
    assert lines[100] == "99,199.000"
    assert lines[101] == "100,200.000"


def test_the_percentile_file_of_one_request_reads_nothing_behind_it() -> None:
    assert list(percentile_file([1500]))[1:] == [f"{percent},1.500" for percent in range(101)]


def test_rows_of_requests_are_sorted_by_their_time() -> None:
    rows = list(request_file([request(30, connect_ms=2), request(20)], 1_700_000_000 * 10**9))

    assert rows[0] == "starttime\tseconds\tctime\tdtime\tttime\twait"
    assert [row.split("\t")[1:] for row in rows[1:]] == [
        ["1700000000", "0", "20", "20", "20"],
        ["1700000000", "2", "28", "30", "28"],
    ]
