"""Names of the testbed in commands, environment and paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadlens.errors import TestbedError
from loadlens.testbed.commands import arguments
from loadlens.testbed.replica_names import Names

NAMES = Names(
    {
        "host": "127.0.0.1",
        "port": 8001,
        "port.metrics": 9001,
        "scratch": "/tmp/a b",
        "replica": 2,
        "my-db.url": "http://127.0.0.1:5",
        "my-db.port": 5,
        "debug": True,
    }
)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--bind $host:$port", "--bind 127.0.0.1:8001"),
        ("$port.metrics", "9001"),  # the longest name that is known
        ("$scratch/users.db", "/tmp/a b/users.db"),
        ("times-$replica.jsonl", "times-2.jsonl"),  # no name of its own: a dot ends it
        ("$my-db.url/x", "http://127.0.0.1:5/x"),
        ("costs 5$$", "costs 5$"),
        ("$$port", "$port"),
        ("debug=$debug", "debug=true"),  # as it is written in the study file
        ("nothing", "nothing"),
    ],
)
def test_a_text_is_filled_with_the_longest_known_name_at_each_dollar(text: str, filled: str) -> None:
    assert NAMES.fill(text, where="start") == filled


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(TestbedError, match=r"unknown name \$prot in '--port \$prot'") as raised:
        NAMES.fill("--port $prot", where="services.api.start")

    assert raised.value.hint == "did you mean $port?"
    assert raised.value.where == "services.api.start"


def test_a_known_name_inside_a_longer_word_is_another_name() -> None:
    with pytest.raises(TestbedError, match=r"unknown name \$ports"):
        NAMES.fill("$ports", where="start")


def test_a_lone_dollar_says_how_to_write_one() -> None:
    with pytest.raises(TestbedError) as raised:
        NAMES.fill("5 $ each", where="start")

    assert raised.value.hint == "write $$ for a dollar"


def test_a_value_with_a_space_stays_one_argument_and_is_not_read_as_shell() -> None:
    names = NAMES.with_values({"scratch": "/tmp/a b; rm -rf 'x'"})

    argv = arguments("run --dir $scratch 'two words' \"$port\"", names, where="start")

    assert argv == ("run", "--dir", "/tmp/a b; rm -rf 'x'", "two words", "8001")


def test_an_unclosed_quote_is_refused_by_place() -> None:
    with pytest.raises(TestbedError, match="no closing quotation") as raised:
        arguments("run 'x", NAMES, where="services.api.start")

    assert raised.value.where == "services.api.start"


def test_a_secret_is_taken_from_the_callers_environment_for_variables_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOKEN", "s3cret$port")

    filled, secrets = NAMES.fill_environment("Bearer {{env TOKEN}} at $port", where="env")

    assert filled == "Bearer s3cret$port at 8001"  # what a secret holds is never read as a name
    assert secrets == ("s3cret$port",)
    with pytest.raises(TestbedError, match="would show in the process list"):
        NAMES.fill("--token {{env TOKEN}}", where="start")


def test_a_secret_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)

    with pytest.raises(TestbedError, match="no variable TOKEN"):
        NAMES.fill_environment("{{env TOKEN}}", where="env")


@given(st.text())
def test_doubling_every_dollar_gives_the_text_back(text: str) -> None:
    doubled = text.replace("$", "$$")
    if "{{" not in text:
        assert NAMES.fill(doubled, where="start") == text
