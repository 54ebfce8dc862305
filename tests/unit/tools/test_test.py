"""The tests that `tools/test.py` selects, and its counts of what cargo and pytest really printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts import ROOT, loaded

CARGO = """
running 76 tests
..................................... 37/76
misbehaviour::users_wait --- FAILED
......................................
failures:

---- misbehaviour::users_wait stdout ----

thread 'misbehaviour::users_wait' (6084) panicked at crates/engine/tests/against_origin/misbehaviour.rs:159:5:
1 faults:
    indented

failures:
    misbehaviour::users_wait
    pools::one_is_shared

test result: FAILED. 74 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 58.31s

error: test failed, to rerun pass `-p loadlens-engine --test against_origin`

running 3 tests
...
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.57s
"""
PYTEST = """
============================= repeated judgements ==============================
tests/end_to_end/test_ab.py::test_a_rate: the host gave 9 % to others
1 judgements repeated
=========================== short test summary info ============================
FAILED tests/unit/test_units.py::test_a_time[1 s - 2 s] - AssertionError: assert 1 == 2
ERROR tests/unit/test_store.py::test_a_record
2 failed, 6520 passed, 71 skipped, 1 error in 1203.11s (0:20:03)
"""
NODE = """
not ok 2 - a value has the text that the report gives it
1..18
# tests 18
# suites 0
# pass 16
# fail 1
# cancelled 0
# skipped 1
# todo 0
# duration_ms 153.095981
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("tools/test.py")


@pytest.fixture(scope="module")
def ci() -> ModuleType:
    return loaded("tools/ci.py")


def test_every_step_is_run_once_and_slow_tests_have_the_machine_for_themselves(ci: ModuleType) -> None:
    steps = [step for lanes in ci.STEPS for lane in lanes for step in lane]

    assert sorted(steps) == ["check", "studies", "test", "test-slow", "tools", "try-wheel"]
    assert [lane for lanes in ci.STEPS if len(lanes) == 1 for lane in lanes] == [("tools",), ("test-slow",)]


def test_all_programs_of_cargo_are_added_up(tool: ModuleType) -> None:
    assert tool.cargo_counts(CARGO, 101) == tool.Counts(passed=77, failed=2, skipped=1)


def test_a_suite_of_the_page_that_cannot_run_is_one_skipped_test(tool: ModuleType) -> None:
    assert tool.node_counts(NODE, 1) == tool.Counts(passed=16, failed=1, skipped=1)
    assert tool.node_counts("skipped test of the page: node and npm are not installed", 0) == tool.Counts(
        skipped=1
    )


def test_errors_of_pytest_are_failures_and_repeats_are_counted(tool: ModuleType) -> None:
    assert tool.pytest_counts(PYTEST, 1) == tool.Counts(passed=6520, failed=3, skipped=71, repeated=1)


def test_a_run_that_fails_without_a_failed_test_is_one_failure(tool: ModuleType) -> None:
    assert tool.cargo_counts("error: could not compile `loadlens-sys`", 101).failed == 1
    assert tool.pytest_counts("no tests ran in 0.01s", 5).failed == 1
    assert tool.node_counts("error: could not resolve ./nothing.ts", 1).failed == 1
    assert tool.pytest_counts("10 passed in 1.0s", 2) == tool.Counts(passed=10, failed=1)


def test_cargo_leaves_out_the_slow_programs_unless_they_are_named(tool: ModuleType) -> None:
    left_out = [
        path.parent.name
        for path in ROOT.glob("crates/**/Cargo.toml")
        for target in re.findall(r"\[\[test\]\](?:\n\w.*)+", path.read_text())
        if "test = false" in target
    ]

    assert left_out
    assert [options[:2] for options in tool.rust("slow")] == [["--workspace", "--test"]] * len(left_out)
    assert tool.rust("fast") == [["--workspace"]]


@pytest.mark.parametrize("tier", ["fast", "slow"])
@pytest.mark.parametrize(("cargo", "repeated"), [(0, 0), (101, 0), (0, 2)])
def test_only_the_slow_tier_may_repeat_judgements_and_nothing_is_run_twice(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tier: str,
    cargo: int,
    repeated: int,
) -> None:
    commands = []

    def run(command: list[str]) -> tuple[int, str]:
        commands.append(command)
        if command[0] == "cargo":
            status = 0 if "--no-run" in command else cargo
            ok = "test result: ok. 5 passed; 0 failed; 1 ignored"
            return status, ok if status == 0 else "test result: FAILED. 4 passed; 1 failed; 1 ignored"
        if command[-1] == "test":
            return 0, "# pass 3\n# fail 0\n# skipped 1\n"
        return 0, f"{repeated} judgements repeated\n10 passed, 2 skipped in 1.0s"

    monkeypatch.setattr(tool, "run", run)
    monkeypatch.setattr(sys, "argv", ["test.py", tier, "-k", "host"])

    code = tool.main()

    page, programs = int(tier == "fast"), len(tool.rust(tier))
    ran = [tuple(command) for command in commands if "--no-run" not in command]
    assert len(ran) == len(set(ran)) == programs + 1 + page
    assert commands[-1][-2:] == ["-k", "host"]
    *_, repeats, last = capsys.readouterr().out.splitlines()
    assert repeats == f"{repeated} judgements repeated"
    failed = programs * int(cargo != 0)
    passed = 10 + 5 * programs + 3 * page - failed
    failed += int(tier == "fast" and repeated > 0)
    assert code == int(failed > 0)
    assert last == f"{passed} passed, {failed} failed, {2 + programs + page} skipped"


def test_every_test_is_in_one_tier_by_its_folder_or_its_mark() -> None:
    places = ["tests/end_to_end/test_run.py", "tests/unit/signals/collect/test_tcp.py"]
    places += ["tests/catalogue/test_physics.py", "tests/catalogue/test_judging.py"]

    def collected(marks: str) -> set[str]:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-m", marks, *places]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}

    slow, fast = collected("slow"), collected("not slow")

    assert {name.partition("::")[0] for name in slow} >= {
        "tests/end_to_end/test_run.py",
        "tests/catalogue/test_physics.py",
        "tests/unit/signals/collect/test_tcp.py",
    }
    assert not [name for name in fast if name.startswith("tests/end_to_end")]
    assert not slow & fast


def test_a_step_of_ci_counts_its_own_last_line_or_as_one_failure(ci: ModuleType) -> None:
    printed = "1 passed, 0 failed, 0 skipped\nmore\n3361 passed, 0 failed, 71 skipped\n"

    assert ci.counted(printed, 0).line == "3361 passed, 0 failed, 71 skipped"
    assert ci.counted(printed, 2).line == "3361 passed, 1 failed, 71 skipped"
    assert ci.counted("5 ok", 0).line == "0 passed, 0 failed, 0 skipped"
    assert ci.counted("FAILED types", 2).line == "0 passed, 1 failed, 0 skipped"


def test_ci_goes_on_after_a_step_that_failed(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = []

    def run(command: list[str]) -> tuple[int, str]:
        steps.append(command[1])
        return (2, "FAILED types") if command[1] == "check" else (0, "7 passed, 0 failed, 1 skipped")

    monkeypatch.setattr(ci, "run", run)

    assert ci.main() == 1
    assert (steps[0], steps[-1]) == ("tools", "test-slow")
    assert sorted(steps[1:-1]) == ["check", "studies", "test", "try-wheel"]
    assert steps.index("test") < steps.index("check")
    assert steps.index("studies") < steps.index("try-wheel")
    assert capsys.readouterr().out.splitlines()[-1] == "35 passed, 1 failed, 5 skipped"


def test_ci_ends_where_the_environment_cannot_be_made(
    ci: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ci, "run", lambda command: (2, "no compiler"))

    assert ci.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_the_number_of_repeated_judgements_reaches_the_end_through_parallel_workers(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_any.py").write_text(
        "from tests.calm import REPEATED\n"
        "def test_repeated():\n    REPEATED.append('the host gave 9 % to others')\n"
        "def test_steady():\n    pass\n"
    )

    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "1",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert "test_any.py::test_repeated: the host gave 9 % to others\n1 judgements repeated\n" in done.stdout
