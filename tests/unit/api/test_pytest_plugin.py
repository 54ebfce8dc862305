"""The pytest plugin: loads as fixtures, failures with their evidence, a budget, one load at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadlens.api import testing
from loadlens.api.testing import Loads
from tests.unit.api.conftest import PLUGIN, URL
from tests.unit.report.write import hit_result

Run = Callable[..., pytest.RunResult]
OTHERS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:hypothesispytest")


@pytest.fixture
def run(plant: Any, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs tests whose loads give the planted result: p99 39 ms, from 35.4 to 43.6."""
    plant(hit_result.result())
    monkeypatch.setenv("LOADLENS_CACHE", str(pytester.path / "cache"))

    def ran(body: str, *words: str) -> pytest.RunResult:
        pytester.makepyfile(f"URL = {URL!r}\ndef test_it(loadlens):\n    " + "\n    ".join(body.splitlines()))
        return pytester.runpytest_inprocess(*PLUGIN, *OTHERS, *words)

    return ran


@pytest.mark.parametrize(
    "body",
    [
        'assert loadlens.hit(URL).p99 < "50ms"',
        'assert "50ms" > loadlens.hit(URL).p99',
        'assert "30ms" < loadlens.hit(URL).p99 < "50ms"',
        'assert not loadlens.hit(URL).p99 > "40ms"  # it may be, and is not proven',
        'assert loadlens.hit(URL).rate > "10k/s"',
    ],
)
def test_a_figure_that_keeps_its_limit_passes(run: Run, body: str) -> None:
    run(body).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "expression", ['result.p99 < "30ms"', '"30ms" > result.p99', '"10ms" < result.p99 < "30ms"']
)
def test_a_missed_limit_fails_with_value_interval_and_origin(run: Run, expression: str) -> None:
    done = run(f"result = loadlens.hit(URL)\nassert {expression}")

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *assert missed: p99 of response time below 30.0 ms",
            "E *value: 39.0 ms, 95 % interval 35.4–43.6 (within one trial, *",
            f"E *measured: {URL.rstrip('/')}: GET / · closed · 10 connections",
        ]
    )


def test_an_undecided_limit_fails_and_says_so(run: Run) -> None:
    done = run('assert loadlens.hit(URL).p99 < "40ms"')

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["E *p99 of response time below 40.0 ms is undecided: the interval covers the limit"]
    )


def test_other_comparisons_are_explained_as_without_the_plugin(run: Run) -> None:
    run("assert [1, 2] == [1, 3]").stdout.fnmatch_lines(["E *At index 1 diff: 2 != 3"])


def test_a_mistake_shows_the_line_of_the_command_and_nothing_of_the_inside(run: Run) -> None:
    done = run("loadlens.hit(URL, rat=5)")

    done.stdout.fnmatch_lines(["E *UsageError: hit has no keyword 'rat'", "E *did you mean rate[?]"])
    assert "verbs.py" not in done.stdout.str()


def test_tests_with_a_load_are_left_out_by_their_mark(run: Run) -> None:
    run("loadlens.hit(URL)", "-m", "not loadlens", "--strict-markers").assert_outcomes(deselected=1)


def test_figures_become_properties_in_junit_xml(run: Run, pytester: pytest.Pytester) -> None:
    done = run("loadlens.hit(URL)\nloadlens.hit(URL, connections=5)", "--junitxml=a.xml")

    tree = ElementTree.parse(pytester.path / "a.xml")
    values = {each.attrib["name"]: each.attrib["value"] for each in tree.iter("property")}
    assert values["loadlens.response_time.p99"] == "39.0 ms (35.4–43.6)"
    assert values["loadlens.load"].endswith("10 connections")
    assert values["loadlens.2.load"].endswith("5 connections")
    done.stdout.fnmatch_lines(["loadlens: 2 loads in 0.* s"])


@pytest.mark.parametrize("words", [["--loadlens-budget", "20s"], ["-o", "loadlens_budget=20s"]])
def test_a_load_that_does_not_fit_the_budget_is_skipped(run: Run, words: list[str]) -> None:
    done = run('loadlens.hit(URL, duration="19s")\nloadlens.hit(URL, duration="50s")', *words, "-rs")

    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(
        ["loadlens: 1 load in 0.* s, no time left for 1", "*no time left: 20 s for loads*"]
    )


def test_another_session_does_not_count_against_the_budget(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")  # of the pytest whose test starts these
    (pytester.path / "loadlens-seconds").write_text("8.0")  # where the workers of a session add up theirs

    done = run('loadlens.hit(URL, duration="9s")', "--loadlens-budget", "10s", "--basetemp", "folder")

    done.assert_outcomes(passed=1)


def test_loads_of_earlier_tests_count_against_the_budget(
    plant: Any, tmp_path: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(hit_result.result())
    monkeypatch.setenv("LOADLENS_CACHE", str(tmp_path))
    (tmp_path / "used").write_text("8.0")
    test = pytester.getitem("def test_func(): pass")  # our own summary counts the loads of this very test
    loads = Loads(test, 10.0, tmp_path / "used")

    loads.hit(URL, duration="2s")
    with pytest.raises(pytest.skip.Exception, match="no time left: 10 s for loads, 8"):
        loads.hit(URL, duration="2s")


def test_a_second_load_waits_for_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOADLENS_CACHE", str(tmp_path))
    entered = threading.Event()

    def second() -> None:
        with testing._alone():
            entered.set()

    thread = threading.Thread(target=second)
    with testing._alone():
        thread.start()
        assert not entered.wait(0.1)
    thread.join()

    assert entered.is_set()


def test_the_plugin_loads_nothing_before_a_fixture_is_used() -> None:
    plugin = "loadlens.api.pytest_plugin"
    code = f"import pytest, sys\nold = set(sys.modules)\nimport {plugin}\nprint(*set(sys.modules) - old)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert set(done.stdout.split()) == {"loadlens", "loadlens.api", plugin}
