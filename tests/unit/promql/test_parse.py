"""Faults of expressions, found when they are read; also of what only a server answers."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from loadlens.promql import NotOurs, PromqlError, metrics_of, parse


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "an expression is missing"),
        ("rate(a)", r"rate\(\) wants a range of samples"),
        ("a[5s]", "a range of samples has no value of its own"),
        ("rate(a[5])", "the range is a duration"),
        ("rate(a[0s])", "longer than 0"),
        ("sum(a", r"wanted '\)', got 'the end'"),
        ("a b", "nothing can follow here"),
        ("rat(a[5s])", r"there is no function rat; did you mean rate\?"),
        ("a{b=c}", "stands in quotes"),
        ("a{b~'c'}", "cannot read"),
        ("a{b=~'('}", "is no pattern"),
        ("{a=~'.*'}", "without a condition"),
        ("1 > 2", "> bool"),
        ("quantile(a)", "takes a scalar and a vector"),
        ("sum(a[5s])", "wants series"),
        ("rate(sum(a)[5s])", "a range belongs behind a selector"),
        ("5m", "is a duration"),
        ("a / on(b) 2", "both sides are to be vectors"),
        ("rate(a[$x])", "stands for nothing here"),
        ("(" * 100 + "a" + ")" * 100, "nested deeper"),
        ("a" * 5000, "at most 4,000"),
    ],
)
def test_what_is_no_expression_is_named(text: str, words: str) -> None:
    with pytest.raises(PromqlError, match=words) as raised:
        parse(text)

    assert not isinstance(raised.value, NotOurs)


@pytest.mark.parametrize(
    "text",
    [
        "topk(3, a)",
        "label_replace(a, 'b', '$1', 'c', '(.*)')",
        "max_over_time(rate(a[5s])[1m:1s])",
        "a @ 1609746000",
        "a and b",
        "a offset -5m",
        "absent(a)",
        "a / on(b) group_left c",
    ],
)
def test_what_only_a_server_answers_is_told_apart(text: str) -> None:
    with pytest.raises(NotOurs, match="answered by a Prometheus server only"):
        parse(text)


def test_the_metrics_of_an_expression_are_known() -> None:
    expression = parse('sum(rate(a_total{x="1"}[5s])) / -b + histogram_quantile(0.9, {__name__="c"})')

    assert metrics_of(expression) == ("a_total", "b", "c")


@given(some.text(alphabet="ab{}[]()=~!<>+-*/^%,.:@$0159smh\"'` _", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(PromqlError):  # and nothing else
        parse(text)
