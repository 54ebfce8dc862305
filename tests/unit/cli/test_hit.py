"""`hit` from its arguments to its exit code, with an engine that returns what a test plants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from loadlens.cli import answers, app
from loadlens.cli.hit import _resolved
from loadlens.cli.hit_requests import target_of
from loadlens.errors import UsageError
from loadlens.model.finding import Estimate
from loadlens.model.result import EngineResult
from loadlens.report.write.hit_figures import metric_figure
from tests.unit.report.write import hit_result


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Runs `hit` on an engine that returns a result; gives exit code and output."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def with_result(result: dict[str, Any], *arguments: str, url: str = "http://127.0.0.1:9/") -> Any:
        monkeypatch.setattr("loadlens.run.single_load.run_trial", lambda *_, **__: result)
        monkeypatch.setattr("loadlens.cli.preflight.connect_once", lambda _: None)
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


def failed_only(**stream: Any) -> dict[str, Any]:
    requests = {"due": 50, "issued": 50, "answered": 0, "ok": 0, "failed": 50, "in_flight": 0}
    throughput = {"value": 0.0, "low": None, "high": None}
    times = {"response_time_s": hit_result.nothing(), "service_time_s": hit_result.nothing()}
    return hit_result.result(**{"requests": requests, "throughput_rps": throughput, **times, **stream})


@pytest.mark.parametrize(
    "made",
    [
        failed_only(errors={"reset": {"count": 50, "first_s": 0.0, "last_s": 1.0, "samples": []}}),
        failed_only(
            requests={"due": 50, "issued": 50, "answered": 50, "ok": 0, "unexpected_status": 50},
            status={"404": 50},
        ),
        failed_only(requests={"due": 50, "issued": 50, "answered": 50, "ok": 0, "check_failed": 50}),
        failed_only(requests={"due": 10, "issued": 10, "answered": 0, "ok": 0, "in_flight": 10}),
    ],
    ids=["reset", "404", "check failed", "no answer in time"],
)
def test_a_load_without_any_success_exits_3(run: Any, made: dict[str, Any]) -> None:
    assert run(made).exit_code == 3


def test_one_success_is_enough_to_exit_0(run: Any) -> None:
    requests = {"due": 51, "issued": 51, "answered": 1, "ok": 1, "failed": 50, "in_flight": 0}

    assert run(failed_only(requests=requests)).exit_code == 0


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

    parsed = answers.checks([f"json:id={number}" for number in given])

    assert [check.equals for check in parsed] == given


@pytest.mark.parametrize(
    ("bound", "code", "words"),
    [
        # p99 of the example is 39.0 ms with an interval from 35.4 to 43.6 ms
        ("p99<50ms", 0, "● met: p99 of response time below 50.0 ms; 39.0 ms (35.4–43.6)"),
        ("p99<30ms", 99, "■ missed: p99 of response time below 30.0 ms; 39.0 ms (35.4–43.6)"),
        ("p99<40ms", 0, "○ undecided: p99 of response time below 40.0 ms"),
        ("rate>30k/s", 99, "■ missed: requests/s above 30,000 /s"),
        ("failed<1%", 0, "● met: share of requests without success below 1.00 %"),
    ],
)
def test_an_objective_is_judged_by_its_interval(run: Any, bound: str, code: int, words: str) -> None:
    done = run(hit_result.result(), "--objective", bound)

    assert (done.exit_code, words in done.stdout) == (code, True), done.stdout


def test_objectives_are_in_the_json(run: Any) -> None:
    done = run(hit_result.result(), "--json", "--objective", "p99<30ms", "--objective", "rate>1/s")

    assert done.exit_code == 99
    assert [row["word"] for row in json.loads(done.stdout)["objectives"]] == ["missed", "met"]


@pytest.mark.parametrize("text", ["p99", "p42<1s", "body_bytes.mean<1k"])
def test_an_objective_that_cannot_be_judged_is_refused_before_the_load(run: Any, text: str) -> None:
    done = run(hit_result.result(), "--objective", text)

    assert isinstance(done.exception, UsageError)
    assert done.exception.where == "--objective"


def test_the_share_of_failures_has_the_interval_of_wilson() -> None:
    # R. G. Newcombe, Statistics in Medicine 17 (1998), table I: 15 of 148 give 0.0624 to 0.1605.
    made = hit_result.result(requests={"answered": 148, "ok": 133, "unexpected_status": 15, "failed": 0})
    stream = EngineResult.from_json(made).streams[0]

    figure = metric_figure(stream, "unsuccessful.share")

    assert isinstance(figure, Estimate)
    assert figure.low is not None
    assert figure.high is not None
    assert (round(figure.low, 4), round(figure.high, 4)) == (0.0624, 0.1605)


@pytest.mark.parametrize(
    ("text", "statuses"),
    [
        ("200,404", (200, 404)),
        ("2xx", tuple(range(200, 300))),
        ("200-202,5XX", (200, 201, 202, *range(500, 600))),
    ],
)
def test_expected_statuses_are_codes_families_and_ranges(text: str, statuses: tuple[int, ...]) -> None:
    assert answers.expected(text) == statuses


@pytest.mark.parametrize("text", ["1xx", "ok", "20", "299-200", "200-", "600"])
def test_what_is_no_status_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        answers.expected(text)

    assert refused.value.hint == "200, 2xx or 200-299"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--follow", "3"], "redirects are not followed"),
        (["-x", "http://proxy:3128"], "HTTP proxies are not supported"),
        (["--unix", "/run/x.sock"], "UNIX sockets are not supported"),
        (["--compressed"], "responses are not decompressed"),
        (["--samples", "none"], "without a record no rows are kept"),
        (["--samples", "all", "--driver", "wrk", "-o", "x"], "keeps every request that wrk reports"),
        (["--samples", "5", "-o", "x"], "at least 1000"),
    ],
)
def test_what_other_tools_have_is_refused_by_name_with_a_hint(run: Any, flags: list[str], words: str) -> None:
    done = run(hit_result.result(), *flags)

    assert isinstance(done.exception, UsageError)
    assert words in done.exception.message
    assert done.exception.hint


def test_resolve_changes_the_address_and_keeps_the_name() -> None:
    target, _ = target_of("https://api.test/")

    moved = _resolved(target, "api.test:443:127.0.0.1")

    assert (moved.host, moved.authority, moved.origin) == ("127.0.0.1", "api.test", "https://api.test")
    assert moved.tls is not None
    assert moved.tls.server_name == "api.test"


@pytest.mark.parametrize("text", ["api.test", "other.test:443:127.0.0.1", "api.test:80:127.0.0.1"])
def test_resolve_for_another_place_is_refused(text: str) -> None:
    target, _ = target_of("https://api.test/")

    with pytest.raises(UsageError):
        _resolved(target, text)
