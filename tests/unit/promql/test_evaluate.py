"""Values of expressions over samples that are counted by hand."""

from __future__ import annotations

import math

import pytest

from loadlens import promql
from loadlens.promql import PromqlError, Series

TIMES = [float(t) for t in range(61)]


def counter(rate: float, **labels: str) -> Series:
    """One that grows by `rate` a second from 1,000 on, scraped every second."""
    return Series({"__name__": "hits_total", **labels}, TIMES, [1000 + rate * t for t in TIMES], TIMES)


GET_1, GET_2, PUT_1 = (
    counter(10, method="get", replica="1"),
    counter(30, method="get", replica="2"),
    counter(5, method="put", replica="1"),
)
ALL = [GET_1, GET_2, PUT_1]


def values(text: str, series: list[Series], at: float = 60.0) -> dict[str, float]:
    """`method=get replica=1` -> value."""
    found = promql.evaluate(promql.parse(text), series, at_s=at, range_s=60.0)
    return {" ".join(f"{k}={v}" for k, v in point.labels): point.value for point in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('rate(hits_total{method="get",replica="1"}[10s])', {"method=get replica=1": 10}),
        ('rate(hits_total{method!="get"}[10s])', {"method=put replica=1": 5}),
        ('rate(hits_total{method=~"p.t"}[10s])', {"method=put replica=1": 5}),
        ('sum(rate(hits_total{method=~"p"}[10s]))', {}),
        ('sum(rate(hits_total{method!~"p.*"}[10s]))', {"": 40}),
        ("sum(rate(hits_total[10s]))", {"": 45}),
        ("sum by (method) (rate(hits_total[10s]))", {"method=get": 40, "method=put": 5}),
        ("sum(rate(hits_total[10s])) by (method)", {"method=get": 40, "method=put": 5}),
        ("avg without (replica) (rate(hits_total[10s]))", {"method=get": 20, "method=put": 5}),
        ("max(rate(hits_total[10s])) - min(rate(hits_total[10s]))", {"": 25}),
        ("count(hits_total)", {"": 3}),
        ("quantile(0.5, rate(hits_total[10s]))", {"": 10}),
        ("increase(hits_total{replica='2'}[$__range])", {"method=get replica=2": 1800}),
        ('hits_total{method="put"}', {"__name__=hits_total method=put replica=1": 1300}),
        ('hits_total{method="put"} offset 20s', {"__name__=hits_total method=put replica=1": 1200}),
        ('hits_total{method="put"} / 100', {"method=put replica=1": 13}),
        ('1000 - hits_total{method="put"}', {"method=put replica=1": -300}),
        (
            'rate(hits_total{method="put"}[10s]) / ignoring(method) rate(hits_total{method="get"}[10s])',
            {"replica=1": 0.5},
        ),
        (
            'rate(hits_total{method="put"}[10s]) / on(replica) rate(hits_total{method="get"}[10s])',
            {"replica=1": 0.5},
        ),
        ("hits_total > 2000", {"__name__=hits_total method=get replica=2": 2800}),
        ("sum(hits_total > bool 2000)", {"": 1}),
        ("-2^2", {"": -4}),
        ("2^3^2", {"": 512}),
        ("1 + 2 * 3 - 4 / 8", {"": 6.5}),
        ("7 % 4", {"": 3}),
        ("2 >= bool 3", {"": 0}),
        ("scalar(hits_total{method='put'}) * 2", {"": 2600}),
        ("max_over_time(hits_total{method='put'}[1m])", {"method=put replica=1": 1300}),
        ("avg_over_time(hits_total{method='put'}[10s])", {"method=put replica=1": 1275}),
        ("count_over_time(hits_total{method='put'}[10s])", {"method=put replica=1": 11}),
        ("quantile_over_time(0.5, hits_total{method='put'}[10s])", {"method=put replica=1": 1275}),
        ("round(hits_total{method='put'} / 7)", {"method=put replica=1": 186}),
        ("clamp_max(hits_total{method='put'}, 9)", {"method=put replica=1": 9}),
    ],
)
def test_an_expression_gives_what_a_hand_count_gives(text: str, expected: dict[str, float]) -> None:
    assert values(text, ALL) == pytest.approx(expected)


def test_a_series_that_the_last_scrape_did_not_show_is_gone() -> None:
    gone = Series({"__name__": "up_to_ten"}, TIMES[:11], [1.0] * 11, TIMES)
    scraped_no_more = Series({"__name__": "up_to_ten"}, TIMES[:11], [1.0] * 11, TIMES[:11])

    assert values("up_to_ten", [gone], at=10.9) != {}
    assert values("up_to_ten", [gone], at=11.0) == {}
    assert values("up_to_ten", [scraped_no_more], at=309.9) != {}  # five minutes after the sample
    assert values("up_to_ten", [scraped_no_more], at=310.0) == {}


def bucket(le: str, count: float) -> Series:
    return Series({"__name__": "seconds_bucket", "le": le}, [0.0], [count])


def test_a_quantile_lies_within_its_bucket_by_interpolation() -> None:
    # 100 observations: 20 up to 0.1, 60 up to 0.2, 90 up to 0.5, all up to infinity
    buckets = [bucket("0.1", 20), bucket("0.2", 60), bucket("0.5", 90), bucket("+Inf", 100)]

    # the 50th is the 30th of the 40 in (0.1, 0.2]; the 80th the 20th of the 30 in (0.2, 0.5]; the 10th the
    # 10th of the 20 from 0; the 95th lies above the last finite end, of which no more is known
    for p, expected in ((0.5, 0.175), (0.8, 0.4), (0.1, 0.05), (0.95, 0.5)):
        assert values(f"histogram_quantile({p}, seconds_bucket)", buckets, at=0.0) == pytest.approx(
            {"": expected}
        )
    nothing = [bucket("0.1", 0), bucket("+Inf", 0)]
    assert math.isnan(values("histogram_quantile(0.5, seconds_bucket)", nothing, at=0.0)[""])


def test_series_that_nothing_tells_apart_are_refused() -> None:
    twins = [Series({"__name__": name}, TIMES, TIMES) for name in ("a", "b")]

    with pytest.raises(PromqlError, match="two series of the result have the labels"):
        values('rate({__name__=~"a|b"}[5s])', twins)
    with pytest.raises(PromqlError, match="two series on the right of / have the labels"):
        values("rate(hits_total[5s]) / on(method) rate(hits_total[5s])", ALL)


def test_a_part_is_evaluated_where_its_ranges_lie_within_it() -> None:
    inside = promql.moments("rate(a[2s])", 5.0, 15.0, 1.0)
    whole = promql.moments("increase(a[$__range])", 5.0, 15.0, 1.0)
    long = promql.moments("rate(a[1m])", 5.0, 15.0, 1.0)

    assert (inside.first_s, inside.last_s, inside.count) == (7.0, 15.0, 9)
    assert (whole.first_s, whole.last_s, whole.count) == (15.0, 15.0, 1)
    assert (long.first_s, long.count) == (5.0, 11)


def test_the_values_over_a_part_stand_at_its_steps() -> None:
    found = promql.evaluate_over(
        promql.parse("sum(rate(hits_total[2s]))"), ALL, begin_s=10.0, end_s=12.0, step_s=0.5, range_s=2.0
    )

    assert found == {(): [(10.0, 45.0), (10.5, 45.0), (11.0, 45.0), (11.5, 45.0), (12.0, 45.0)]}
