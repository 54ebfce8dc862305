"""Flags as getopt and Go read them, and those that are refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.errors import UsageError
from loadlens_compat.letters import (
    Flag,
    getopt,
    getopt_long,
    go_flags,
    literal,
    refuse,
    whole,
)

FLAGS = (
    Flag("n", "number", "requests"),
    Flag("k", "keep"),
    Flag("h2", "two"),
    Flag("X", "no proxies", "proxy:port", "the service's own URL"),
    Flag("B", "no binding", "address", "a rule"),
)


def read(given: list[tuple[Flag, str]]) -> list[tuple[str, str]]:
    return [(flag.name, value) for flag, value in given]


@pytest.mark.parametrize("words", [["-k", "-n", "10"], ["-kn10"], ["-kn", "10"], ["-k", "-n10"]])
def test_letters_cling_to_each_other_and_to_their_values(words: list[str]) -> None:
    given, rest = getopt([*words, "URL", "-k"], FLAGS, "ab")

    assert read(given) == [("k", ""), ("n", "10")]
    assert rest == ["URL", "-k"]  # nothing is read behind the first word


@pytest.mark.parametrize("words", [["-n", "10"], ["-n=10"], ["--n", "10"], ["--n=10"]])
def test_go_takes_one_dash_or_two_and_a_sign_of_equality(words: list[str]) -> None:
    given, rest = go_flags([*words, "-k", "-h2=false", "URL"], FLAGS, "hey")

    assert read(given) == [("n", "10"), ("k", "")]
    assert rest == ["URL"]


@pytest.mark.parametrize("reader", [getopt, go_flags])
def test_two_dashes_end_the_flags(reader) -> None:  # type: ignore[no-untyped-def]
    given, rest = reader(["-k", "--", "-n", "10"], FLAGS, "ab")

    assert read(given) == [("k", "")]
    assert rest == ["-n", "10"]


@pytest.mark.parametrize(
    ("reader", "words", "message"),
    [
        (getopt, ["-Q"], "ab has no flag -Q"),
        (getopt, ["-n"], "-n without its requests"),
        (go_flags, ["-kn"], "ab has no flag -kn"),
        (go_flags, ["-k=maybe"], "neither true nor false: 'maybe'"),
    ],
)
def test_what_cannot_be_read_is_named(reader, words: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError) as raised:
        reader(words, FLAGS, "ab")

    assert raised.value.message == message


def test_all_flags_that_cannot_be_honoured_are_named_at_once() -> None:
    given, _ = getopt(["-X", "p:1", "-k", "-B", "::1"], FLAGS, "ab")

    with pytest.raises(UsageError) as raised:
        refuse(given, "ab")

    assert raised.value.message == "-X proxy:port: no proxies; -B address: no binding"
    assert raised.value.hint == "the service's own URL; a rule"


@pytest.mark.parametrize("text", ["ten", "1.5", "0", "-3", ""])
def test_a_whole_number_is_asked_for(text: str) -> None:
    with pytest.raises(UsageError):
        whole(text, "-n", at_least=1)


def test_text_with_braces_is_refused_where_it_would_be_filled() -> None:
    assert literal("a {b}", "-H") == "a {b}"
    with pytest.raises(UsageError):
        literal("a {{b}}", "-H")


def test_an_unreadable_file_starts_nothing(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from loadlens.cli import app

    done = CliRunner().invoke(app, ["ab", "-p", str(tmp_path / "none"), "http://127.0.0.1:9/"])

    assert isinstance(done.exception, UsageError)
    assert "cannot read" in done.exception.message


LONG = (
    Flag("t", "threads", "N", long="threads"),
    Flag("d", "duration", "T", long="duration"),
    Flag("T", "timeout", "T", long="timeout"),
    Flag("L", "latency", long="latency"),
)


@pytest.mark.parametrize(
    "words",
    [
        ["-t2", "-L", "-d", "1s", "URL"],
        ["-Lt2", "URL", "-d1s"],
        ["URL", "--threads", "2", "--latency", "--duration=1s"],
        ["--thr=2", "URL", "--lat", "--dur", "1s"],
    ],
)
def test_long_names_and_letters_stand_anywhere(words: list[str]) -> None:
    given, rest = getopt_long(words, LONG, "wrk")

    assert sorted(read(given)) == [("L", ""), ("d", "1s"), ("t", "2")]
    assert rest == ["URL"]


def test_what_follows_two_dashes_is_no_flag() -> None:
    given, rest = getopt_long(["-t2", "URL", "--", "-d", "--latency", "x"], LONG, "wrk")

    assert read(given) == [("t", "2")]
    assert rest == ["URL", "-d", "--latency", "x"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--t", "1"], "--t could be several flags"),
        (["--nothing"], "--nothing is no flag of wrk"),
        (["--threads"], "-t without its N"),
        (["--latency=1"], "--latency takes no value, got '1'"),
        (["-tq", "-q"], "wrk has no flag -q"),
    ],
)
def test_a_long_name_that_cannot_be_read_is_named(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        getopt_long(words, LONG, "wrk")

    assert raised.value.message == message
