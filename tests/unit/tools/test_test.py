"""What `tools/test.py` takes for failed, from what cargo and pytest really printed, and runs again."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tests.scripts import loaded

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
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.57s
"""
PYTEST = """
=========================== short test summary info ============================
FAILED tests/unit/test_units.py::test_a_time[1 s - 2 s] - AssertionError: assert 1 == 2
FAILED tests/end_to_end/test_interruptions.py::test_it[warming up-15] - Assertion...
ERROR tests/unit/test_store.py::test_a_record
3 failed, 6520 passed, 71 skipped in 1203.11s (0:20:03)
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return loaded("tools/test.py")


def test_failed_tests_of_cargo_are_run_again_in_their_target(tool: ModuleType) -> None:
    target = [
        "cargo",
        "test",
        "--release",
        "-p",
        "loadlens-engine",
        "--test",
        "against_origin",
        "--",
        "--exact",
    ]

    assert [(failure.name, failure.command) for failure in tool.rust_failures(CARGO)] == [
        ("misbehaviour::users_wait", [*target, "misbehaviour::users_wait"]),
        ("pools::one_is_shared", [*target, "pools::one_is_shared"]),
    ]


def test_failed_tests_of_pytest_are_run_again_by_their_whole_name(tool: ModuleType) -> None:
    names = [failure.name for failure in tool.pytest_failures(PYTEST)]

    assert names == [
        "tests/unit/test_units.py::test_a_time[1 s - 2 s]",
        "tests/end_to_end/test_interruptions.py::test_it[warming up-15]",
        "tests/unit/test_store.py::test_a_record",
    ]
    assert tool.pytest_counts(PYTEST) == [6520, 3, 71]


@pytest.mark.parametrize(
    ("printed", "status", "passes"),
    [
        ("1 passed in 0.1s", 0, True),
        ("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 75 filtered out", 0, True),
        ("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 76 filtered out", 0, False),
        ("no tests ran in 0.01s", 5, False),
        ("1 failed in 0.1s", 1, False),
        ("1 passed, 1 error in 0.1s", 1, False),
    ],
)
def test_only_a_test_that_was_run_and_passed_passes_alone(
    tool: ModuleType, printed: str, status: int, passes: bool
) -> None:
    program = f"print({printed!r}); raise SystemExit({status})"

    assert tool.passes_alone(tool.Failure("any", [sys.executable, "-c", program])) is passes


@pytest.mark.parametrize(("failures", "status"), [(0, 0), (1, 0), (3, 0), (4, 1)])
def test_few_unsteady_tests_are_named_and_more_are_failures(
    tool: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    failures: int,
    status: int,
) -> None:
    lines = [f"FAILED tests/unit/test_any.py::test_{number} - no" for number in range(failures)]
    whole = "\n".join([*lines, f"{failures} failed, 10 passed, 0 skipped in 1.0s"])

    def run(command: list[str]) -> tuple[int, str]:
        if command[0] == "cargo":
            return 0, ""
        is_alone = command[-1].startswith("tests/")
        return (0, "1 passed in 0.1s") if is_alone else (int(failures > 0), whole)

    monkeypatch.setattr(tool, "run", run)
    monkeypatch.setattr(sys, "argv", ["test.py"])

    assert tool.main() == status
    *named, last = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len([line for line in named if line.startswith("UNSTEADY tests/unit/test_any.py::test_")]) == (
        failures if status == 0 else 0
    )
    assert last == f"{10 + len(named)} passed, {0 if status == 0 else failures} failed, 0 skipped"
