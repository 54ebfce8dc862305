"""Credentials in texts, command lines and plain data; each case by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.credentials import Hiding, names_in


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer s3cret", "Authorization: (hidden)"),
        ("-Hcookie:a=s3cret", "-Hcookie:(hidden)"),
        ("X-Api-Key: {{env KEY}}", "X-Api-Key: {{env KEY}}"),
        ("Authorization: Bearer {{env TOKEN}}", "Authorization: Bearer {{env TOKEN}}"),
        ("curl -H 'Authorization: Bearer s3cret' http://h/", "curl -H 'Authorization: (hidden)' http://h/"),
        ("Accept: text/html", "Accept: text/html"),
        ("http://localhost/authorization", "http://localhost/authorization"),
        ("http://ada:s3cret@h/p", "http://ada:(hidden)@h/p"),
        ("there is no record http:/ada:s3cret@h/p", "there is no record http:/ada:(hidden)@h/p"),  # as a path
        ("postgres://lab:p%40ss@h:5432/db", "postgres://lab:(hidden)@h:5432/db"),
        ("postgres://lab@h:5432/db", "postgres://lab@h:5432/db"),
        ("/a?token=s3cret&page=1", "/a?token=(hidden)&page=1"),
        ("/a?page=1&Access_Token=s3cret", "/a?page=1&Access_Token=(hidden)"),
        ("/a?tokens=3", "/a?tokens=3"),
        ("user=ada&password=s3cret", "user=ada&password=(hidden)"),
        ('{"user": "ada", "password": "s3\\"cret"}', '{"user": "ada", "password": "(hidden)"}'),
        ('"{\\"password\\": \\"s3cret\\"}"', '"{\\"password\\": \\"(hidden)\\"}"'),
        ('{"pin_token": 1234}', '{"pin_token": (hidden)}'),
        ("serve --password s3cret --port 80", "serve --password (hidden) --port 80"),
        ("serve --api-key='s3 cret' -v", "serve --api-key=(hidden) -v"),
        ("java -Ddb.password=s3cret -jar a.jar", "java -Ddb.password=(hidden) -jar a.jar"),
        ("SECRET_KEY=s3cret run", "SECRET_KEY=(hidden) run"),
        ("alter user lab password 's3cret'", "alter user lab password (hidden)"),
        ("select 1 where password = 's3 cret'", "select 1 where password = (hidden)"),
        ("# the password: s3cret", "# the password: (hidden)"),
        ("the answer is 'Bearer abc12345'", "the answer is 'Bearer (hidden)'"),
        ("/a?token=$key", "/a?token=$key"),
        ("--auth basic:USER:NAME or bearer:NAME", "--auth basic:USER:NAME or bearer:NAME"),
        ("hit has no option --token\n  try --auth", "hit has no option --token\n  try --auth"),
        ("-H 'Cookie: NAME=VALUE', or --cookies", "-H 'Cookie: NAME=VALUE', or --cookies"),
    ],
)
def test_a_text_is_shown_without_its_credentials(text: str, shown: str) -> None:
    assert Hiding().text(text) == shown
    assert Hiding().text(shown) == shown


def test_further_names_are_hidden_everywhere() -> None:
    hiding = Hiding(["sig", "X-Partner"])

    assert hiding.text("/a?sig=s3cret&b=1") == "/a?sig=(hidden)&b=1"
    assert hiding.content({"headers": [["x-partner", "a"], ["Accept", "b"]]}) == {
        "headers": [["x-partner", "(hidden)"], ["Accept", "b"]]
    }


def test_a_command_line_is_kept_without_the_credentials_in_it() -> None:
    typed = ["hit", "http://h/?token=a", "-H", "X-Session: b", "-HX-Auth: c", "--password", "d", "-n", "5"]

    assert Hiding().arguments(typed) == [
        "hit", "http://h/?token=(hidden)", "-H", "X-Session: (hidden)", "-HX-Auth: (hidden)", "--password",
        "(hidden)", "-n", "5",
    ]  # fmt: skip


def test_plain_data_keep_everything_but_credentials() -> None:
    content = {
        "name": "token",
        "levels": {"token": "a"},
        "params": {"key": "s3cret-a", "users": 5},
        "services": [{"env": {"DB_PASSWORD": "b", "PORT": "$port"}, "start": "serve --token c"}],
        "steps": [
            {
                "path": "/?token=d",
                "headers": [["Cookie", "e"], ["Accept", "*/*"]],
                "body": {"kind": "json", "value": {"name": {"secret": "s3cret-a"}, "password": 7, "n": None}},
                "auth": {"kind": "bearer", "token_env": "TOKEN"},
                "checks": [{"kind": "json", "path": "data.token", "equals": "f"}],
            }
        ],
    }

    assert Hiding().content(content) == {
        "name": "token",
        "levels": {"token": "a"},
        "params": {"key": "(hidden)", "users": 5},
        "services": [
            {"env": {"DB_PASSWORD": "(hidden)", "PORT": "$port"}, "start": "serve --token (hidden)"}
        ],
        "steps": [
            {
                "path": "/?token=(hidden)",
                "headers": [["Cookie", "(hidden)"], ["Accept", "*/*"]],
                "body": {
                    "kind": "json",
                    "value": {"name": {"secret": "(hidden)"}, "password": "(hidden)", "n": None},
                },
                "auth": {"kind": "bearer", "token_env": "TOKEN"},
                "checks": [{"kind": "json", "path": "data.token", "equals": "(hidden)"}],
            }
        ],
    }


def test_words_from_outside_do_not_repeat_a_known_credential() -> None:
    hiding = Hiding(values=["s3cret-token"])

    assert hiding.content({"samples": ["got s3cret-token back"]}) == {"samples": ["got (hidden) back"]}


def test_names_are_read_from_a_command_line_that_cannot_be_used() -> None:
    assert names_in(["hit", "--hide", "a,b", "--hide=c", "-d", "5x"]) == ("a", "b", "c")


PIECES = [*"aA-_ :=\"'@/?&{}\\\n", "token", "://", "Bearer ", "cookie"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_hiding_twice_is_hiding_once(text: str) -> None:
    once = Hiding().text(text)

    assert Hiding().text(once) == once


@pytest.mark.parametrize("unit", ["a", "token", "token=", '"token":"', "://a:", "a-", "--", "bearer "])
def test_a_long_text_takes_linear_time(unit: str) -> None:
    def cpu_s(length: int) -> float:
        began = time.process_time()
        Hiding().text((unit * length)[:length])
        return time.process_time() - began

    cpu_s(1000)
    # Quadratic time would be 64 times as long.
    assert cpu_s(160_000) < 24 * max(cpu_s(20_000), 0.001)
