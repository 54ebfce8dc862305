"""Run all that a change must pass, step by step, and close with one line that counts the tests.

A step that fails does not stop the next ones. `.ci/run` calls this once the machine has what it needs, with
the system's Python, since `make` makes the environment first.
"""

from __future__ import annotations

import re
import sys
import time

from tools.test import Counts, run

STEPS = ("check", "test", "try-wheel", "test-slow", "studies")


def counted(output: str, code: int) -> Counts:
    """Read a step's last line of counts; a step that failed for another reason is one failure."""
    lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", output, re.MULTILINE)
    passed, failed, skipped = map(int, lines[-1]) if lines else (0, 0, 0)
    return Counts(passed, max(failed, int(code != 0)), skipped)


def main() -> int:
    """Exit 0 only when every step did."""
    total, ends = Counts(), []
    for step in STEPS:
        began = time.monotonic()
        code, output = run(["make", step])
        minutes = (time.monotonic() - began) / 60
        ends.append(f"{'FAILED' if code else 'ok':<7}make {step:<10} {minutes:5.1f} min")
        total += counted(output, code)
    print("\n" + "\n".join(ends))
    print(total.line)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
