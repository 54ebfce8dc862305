"""`hit` from its arguments to its exit code, with an engine that returns what a test plants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadlens.cli import answers, app
from loadlens.errors import UsageError
from tests.unit.report.write import hit_result


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `hit` on an engine that returns a result; gives exit code and output."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def with_result(result: dict[str, Any], *arguments: str, url: str = "http://127.0.0.1:9/") -> Any:
        monkeypatch.setattr("loadlens.run.single_load.run_trial", lambda *_, **__: result)
        return CliRunner().invoke(app, ["hit", url, *arguments])

    return with_result


def mismatch() -> dict[str, Any]:
    """One request of the example is in no class."""
    law = "due 244012 = issued 244012 + dropped 0 + waiting 0; issued 244012 != answered 243911 + ..."
    return hit_result.result(law_holds=False, law=law, requests={"answered": 243_911, "ok": 243_911})


def test_books_that_balance_exit_0(run: Any) -> None:
    assert run(hit_result.result()).exit_code == 0


def test_one_request_in_no_class_exits_4_and_shows_no_time(run: Any) -> None:
    done = run(mismatch())

    assert done.exit_code == 4
    assert done.stdout.startswith("■ invalid: 1 request unaccounted for")
    assert "response time" not in done.stdout


def test_the_json_of_broken_books_exits_4_too(run: Any) -> None:
    done = run(mismatch(), "--json")

    assert done.exit_code == 4
    assert json.loads(done.stdout)["requests"]["answered"] == 243_911


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://api.test:8443/a?b=c", "https://api.test:8443/a?b=c"),
        ("http://api.test/a", "http://api.test/a"),
        ("api.test", "http://api.test/"),
    ],
)
def test_the_json_names_the_url_that_the_load_went_to(run: Any, url: str, target: str) -> None:
    done = run(hit_result.result(), "--json", url=url)

    assert json.loads(done.stdout)["target"] == target


@pytest.mark.parametrize("limit", ["own_descriptors", "own_ports", "own_memory"])
def test_running_out_of_something_of_our_own_exits_4_and_is_called_invalid(run: Any, limit: str) -> None:
    error = {"count": 3, "first_s": 1.0, "last_s": 2.0, "samples": []}
    requests = {"answered": 243_909, "ok": 243_909, "failed": 3}

    done = run(hit_result.result(errors={limit: error}, requests=requests))

    assert done.exit_code == 4
    assert "■ invalid" in done.stdout
    assert "the generator ran out of" in done.stdout


def test_what_bears_on_a_load_is_said_on_stderr_before_it_and_never_in_json(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadlens.run.cautions.before", lambda _: ("1 core: taken from the service",))

    plain, json_, quiet = (run(hit_result.result(), *flags) for flags in ((), ("--json",), ("-q",)))

    assert "taken from the service" in plain.stderr
    assert "taken from the service" not in plain.stdout
    assert "taken from" not in json_.output + quiet.output


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("18446744073709551616", "'18446744073709551616' does not fit 64 bits"),  # 2^64
        ('{"ids": [-9223372036854775809]}', "'-9223372036854775809' does not fit 64 bits"),
        ("1" * 5000, "does not fit 64 bits"),  # more digits than Python reads
        ("1e400", "out of the range of a number"),
    ],
)
def test_a_number_that_a_check_would_compare_rounded_is_refused(value: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        answers.checks([f"json:data.id={value}"])

    assert words in refused.value.message
    assert refused.value.where == "--check"
    assert refused.value.hint


def test_whole_numbers_of_64_bits_are_compared_as_they_are_given() -> None:
    given = [2**64 - 1, -(2**63)]

    found = answers.checks([f"json:id={number}" for number in given])

    assert [check.equals for check in found] == given
