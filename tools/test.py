"""Run the tests of a tier, Rust, TypeScript, then Python, and close with one line that counts them.

    python tools/test.py fast   what needs no real seconds, on all cores (`make test`)
    python tools/test.py slow   the rest, file by file: real services, physics, kills (`make test-slow`)
    python tools/test.py all    both (`make test-all`)

Further arguments go to pytest. A Python test is slow by its folder or its mark (tests/conftest.py), a Rust
test by `test = false` in its target in Cargo.toml, which makes cargo leave it out unless it is named.

No test is run twice. A slow test may repeat a judgement of times or rates while others use the processors
(`tests/calm.py`): each repeat is printed and counted, and in the fast tier there must be none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parent.parent
TIERS = {"fast": ("fast",), "slow": ("slow",), "all": ("fast", "slow")}
RUST_AT_A_TIME = 4  # slow tests of a program per core: they wait for most of their time
SLOWEST = 10  # tests that pytest names with their time at the end


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of tests by outcome, and of repeated judgements."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    repeated: int = 0

    def __add__(self, other: Self) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.repeated + other.repeated,
        )

    @property
    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


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


def cargo_counts(output: str, code: int) -> Counts:
    """Sum what every test program of cargo counted; an exit code without a failed test is one failure."""
    ends = re.findall(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", output)
    passed, failed, skipped = (sum(int(end[i]) for end in ends) for i in range(3))
    return Counts(passed, max(failed, int(code != 0)), skipped)


def pytest_counts(output: str, code: int) -> Counts:
    """Read pytest's last line (errors are failures) and the number of repeated judgements."""
    last = next(
        (line for line in reversed(output.splitlines()) if re.search(r"\d+ \w+.* in [\d.]+s", line)), ""
    )
    words = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    failed = words.get("failed", 0) + words.get("errors", 0) + words.get("error", 0)
    repeated = sum(int(number) for number in re.findall(r"^(\d+) judgements repeated$", output, re.MULTILINE))
    return Counts(words.get("passed", 0), max(failed, int(code != 0)), words.get("skipped", 0), repeated)


def node_counts(output: str, code: int) -> Counts:
    """Read the last lines of Node's test runner; a suite that was skipped counts as one skipped test."""
    lines = re.findall(r"^# (pass|fail|skipped) (\d+)$", output, re.MULTILINE)
    ends = {word: int(number) for word, number in lines}
    skipped = ends.get("skipped", int(output.startswith("skipped")))
    return Counts(ends.get("pass", 0), max(ends.get("fail", 0), int(code != 0)), skipped)


def rust(tier: str) -> list[list[str]]:
    """Return the options of each `cargo test` of a tier: one per slow program, else one for all others.

    All name all packages, so that cargo builds what they share once, with the same features.
    """
    if tier == "fast":
        return [["--workspace"]]
    listed = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    described = json.loads(subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout)
    targets = [target for package in described["packages"] for target in package["targets"]]
    slow = [target["name"] for target in targets if target["kind"] == ["test"] and not target["test"]]
    threads = f"--test-threads={RUST_AT_A_TIME * len(os.sched_getaffinity(0))}"
    return [["--workspace", "--test", name, "--", threads] for name in slow]


def python(tier: str, cores: int) -> list[str]:
    """Return pytest's options for a tier: the fast one keeps all cores busy.

    The tests of a slow file share its services, and half of their time is waiting: one more than the cores,
    and one for those that only wait (tests/conftest.py).
    """
    if tier == "fast":
        return ["-m", "not slow", "-n", str(cores), "--dist", "worksteal"]
    return ["-m", "slow", "-n", str(cores + 2), "--dist", "loadfile"]


def run_tier(tier: str, more: list[str]) -> Counts:
    """Build, then run the tests of a tier in both languages."""
    cargo = ["cargo", "test", "--release", "--quiet"]
    began = time.monotonic()
    # The build for the fast tier also makes the programs that Python's tests start (origin, specimen).
    for options in [*rust("fast"), *(rust(tier) if tier != "fast" else [])]:
        code, _ = run([*cargo, "--no-run", *options])
        if code:
            return Counts(failed=1)
    built = time.monotonic()
    counts = Counts()
    with ThreadPoolExecutor() as pool:  # side by side: slow programs wait for most of their time
        for code, output in pool.map(run, [[*cargo, "--no-fail-fast", *options] for options in rust(tier)]):
            counts += cargo_counts(output, code)
    ran_rust = time.monotonic()
    if tier == "fast":
        code, output = run([sys.executable, str(ROOT / "tools" / "page.py"), "test"])
        counts += node_counts(output, code)
    pytest = [sys.executable, "-m", "pytest", f"--durations={SLOWEST}"]
    code, output = run([*pytest, *python(tier, len(os.sched_getaffinity(0))), *more])
    counts += pytest_counts(output, code)
    seconds = [built - began, ran_rust - built, time.monotonic() - ran_rust]
    print("\n{} tier: build {:.0f} s, Rust {:.0f} s, the rest {:.0f} s".format(tier, *seconds), flush=True)
    return counts


def main() -> int:
    """Exit 0 only when every tier that was asked for ran and nothing failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tier", choices=TIERS)
    asked, more = parser.parse_known_args()
    counts = Counts()
    for tier in TIERS[asked.tier]:
        ran = run_tier(tier, more)
        if tier == "fast" and ran.repeated:
            print(f"FAILED the fast tier: {ran.repeated} judgements repeated, there must be none")
            ran += Counts(failed=1)
        counts += ran
    print(f"{counts.repeated} judgements repeated")
    print(counts.line)
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main())
