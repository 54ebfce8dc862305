"""The study file as a record keeps it: credentials replaced in place, everything else as written."""

from __future__ import annotations

import pytest

from loadlens.credentials import Hiding
from loadlens.record.study_text import without_credentials


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("headers: {Cookie: a=b, Accept: c}\n", 'headers: {Cookie: "(hidden)", Accept: c}\n'),
        ("headers:\n  Cookie: a=b  # of ada\nx: 1\n", 'headers:\n  Cookie: "(hidden)"  # of ada\nx: 1\n'),
        ("json: {a: {password: 5}, b: [1, 2]}\n", 'json: {a: {password: "(hidden)"}, b: [1, 2]}\n'),
        ("json: {tokens: [a], secrets: [b]}\n", 'json: {tokens: [a], secrets: ["(hidden)"]}\n'),
        ('headers: {Authorization: "Bearer {{env T}}"}\n', 'headers: {Authorization: "Bearer {{env T}}"}\n'),
        ("get: /a?token=b&c=d\n", 'get: "/a?token=(hidden)&c=d"\n'),
        ("body: >\n  password=a\n  &b=c\nx: 1\n", 'body: "password=(hidden) &b=c\\n"\n\n\nx: 1\n'),
        ("- body: |\n    password=a\n  expect: 2\n", '- body: "password=(hidden)\\n"\n\n  expect: 2\n'),
        ("- body: >-\n    password=a\n- get: /\n", '- body: "password=(hidden)"\n\n- get: /\n'),
        ("json:\n  token: &k\n    a\n  x: *k\n", 'json:\n  token: &k "(hidden)"\n\n  x: *k\n'),
        ("x: &k token\njson: {*k : a}\n", 'x: &k token\njson: {*k : "(hidden)"}\n'),
        ("headers: {<<: {Cookie: a}}\n", 'headers: {<<: {Cookie: "(hidden)"}}\n'),
        ("# password: a\nx: '# token: b'\n", '# password: (hidden)\nx: "# token: (hidden)"\n'),
        ("params: {k: a}\nheaders: {Cookie: $k}\n", 'params: {k: "(hidden)"}\nheaders: {Cookie: $k}\n'),
        ("params: {k: &k a}\njson: {token: *k}\n", 'params: {k: &k "(hidden)"}\njson: {token: *k}\n'),
        ("extract: {token: data.token}\n", "extract: {token: data.token}\n"),
        ("factors: {token: [a, b]}\n", "factors: {token: [a, b]}\n"),
        ("report: {promql: {a: 'b{token=\"c\"}'}}\n", "report: {promql: {a: 'b{token=\"c\"}'}}\n"),
        ("name: password=a\n", "name: password=a\n"),
        ("json: {name: {token: a}, x: {}}\n", 'json: {name: {token: "(hidden)"}, x: {}}\n'),
        ("json: {report: {token: a}}\n", 'json: {report: {token: "(hidden)"}}\n'),
    ],
)  # fmt: skip
def test_only_the_credentials_of_a_study_are_replaced(written: str, kept: str) -> None:
    assert without_credentials(written, Hiding()) == kept


def test_a_credential_that_is_known_is_hidden_wherever_it_stands() -> None:
    text = "params: {base: zq-7}\nnotes: [the key is zq-7-abc]\n"

    kept = without_credentials(text, Hiding(values=["zq-7", "zq-7-abc"]))

    assert kept == 'params: {base: "(hidden)"}\nnotes: ["the key is (hidden)"]\n'
