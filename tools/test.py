"""Run the whole test suite, Rust then Python, and close with one line that counts both.

Extra arguments go to pytest. The origin (the known server that end-to-end tests drive), the specimens
and the writer of scripted records are built first.

Many tests race real processes on a machine that is not ours alone. Where three at most have failed, each
is run once more, alone: one that fails again is a failure; one that passes is named as unsteady above the
last line, with what it printed the first time further up, and wants mending all the same.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_UNSTEADY = 3
CRATES = (
    *("base", "http", "plan", "estimate", "record", "transport", "engine", "fuzz"),
    *("lua", "origin", "proxy", "specimen", "queues", "sys"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed, and what runs it alone."""

    name: str
    command: list[str]


def run(command: list[str]) -> tuple[int, str]:
    """Run a command with its output shown as it comes; return its exit code and what it printed."""
    print(f"$ {' '.join(command)}", flush=True)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return process.wait(), "".join(lines)


def counts(output: str, pattern: str) -> list[int]:
    """Sum the numbers of every match of a pattern with three groups: passed, failed, skipped."""
    total = [0, 0, 0]
    for match in re.finditer(pattern, output):
        total = [have + int(new) for have, new in zip(total, match.groups(), strict=True)]
    return total


def pytest_counts(output: str) -> list[int]:
    """Passed, failed (errors included) and skipped of pytest's last line."""
    last = next(
        (line for line in reversed(output.splitlines()) if re.search(r"\d+ \w+.* in [\d.]+s", line)), ""
    )
    words = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    failed = words.get("failed", 0) + words.get("errors", 0) + words.get("error", 0)
    return [words.get("passed", 0), failed, words.get("skipped", 0)]


def rust_failures(output: str) -> list[Failure]:
    """The tests that cargo named as failed, target by target."""
    found, names = [], []
    for line in output.splitlines():
        if match := re.fullmatch(r"    (\S+)", line):
            names.append(match[1])
        elif line == "failures:":
            names = []
        elif match := re.search(r"to rerun pass `(.+)`", line):
            command = ["cargo", "test", "--release", *match[1].split()]
            found += [Failure(name, [*command, "--", "--exact", name]) for name in names]
            names = []
    return found


def pytest_failures(output: str) -> list[Failure]:
    """The tests that pytest named as failed."""
    names = re.findall(r"^(?:FAILED|ERROR) (\S+::\w+(?:\[.*?\])?)(?: - .*)?$", output, re.MULTILINE)
    return [Failure(name, [sys.executable, "-m", "pytest", name]) for name in names]


def passes_alone(failure: Failure) -> bool:
    """Whether it was run again, that one test and no other, and passed."""
    code, output = run(failure.command)
    return code == 0 and [int(number) for number in re.findall(r"(\d+) passed", output)] == [1]


def main() -> int:
    """Exit 0 only when both suites ran and nothing failed."""
    build = ["cargo", "build", "--quiet", "--release"]
    for what in (
        ["-p", "loadlens-origin"],
        ["-p", "loadlens-specimen"],
        ["-p", "loadlens-engine", "--example", "scripted_record"],
    ):
        built, _ = run([*build, *what])
        if built:
            return built
    packages = [word for crate in CRATES for word in ("-p", f"loadlens-{crate}")]
    rust_code, rust_output = run(["cargo", "test", "--release", "--quiet", *packages, "--no-fail-fast"])
    python_code, python_output = run([sys.executable, "-m", "pytest", *sys.argv[1:]])
    rust = counts(rust_output, r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
    passed, failed, skipped = (a + b for a, b in zip(rust, pytest_counts(python_output), strict=True))
    failed = max(failed, int(bool(rust_code)) + int(bool(python_code)))
    found = [*rust_failures(rust_output), *pytest_failures(python_output)]
    # Whatever else went wrong (a crate that did not build, a run that was ended) has no name and stays.
    may_be_unsteady = len(found) == failed <= MOST_UNSTEADY
    unsteady = [failure for failure in found if may_be_unsteady and passes_alone(failure)]
    for failure in unsteady:
        print(f"UNSTEADY {failure.name}: failed among the others, passed alone")
    passed, failed = passed + len(unsteady), failed - len(unsteady)
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
