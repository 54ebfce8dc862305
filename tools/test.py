"""Run the whole test suite, Rust then Python, and close with one line that counts both.

Extra arguments go to pytest. The origin (the known server that end-to-end tests drive), the specimens
and the writer of scripted records are built first.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


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
    rust_code, rust_output = run(
        [
            "cargo",
            "test",
            "--release",
            "--quiet",
            "-p",
            "loadlens-engine",
            "-p",
            "loadlens-lua",
            "-p",
            "loadlens-origin",
            "-p",
            "loadlens-proxy",
            "-p",
            "loadlens-specimen",
            "-p",
            "loadlens-queues",
            "-p",
            "loadlens-fuzz",
            "--no-fail-fast",
        ]
    )
    python_code, python_output = run([sys.executable, "-m", "pytest", *sys.argv[1:]])
    rust = counts(rust_output, r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
    passed, failed, skipped = (a + b for a, b in zip(rust, pytest_counts(python_output), strict=True))
    failed = max(failed, int(bool(rust_code or python_code)))
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
