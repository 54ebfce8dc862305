"""Run all that a change must pass, step by step, and close with one line that counts the tests.

A step that fails does not stop the next ones, unless the environment cannot be made. The slow tests, which
judge times, have the machine for themselves. The studies judge none and mostly wait: the fast tests run next
to them, and to the checks and the wheel, which are quick. `.ci/run` calls this once the machine has what it
needs, with the system's Python, since `make` makes the environment first.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tools.test import Counts, run

Lane = tuple[str, ...]  # steps one after the other
FIRST: tuple[Lane, ...] = (("tools",),)
STEPS: tuple[tuple[Lane, ...], ...] = (
    FIRST,
    (("test",), ("studies", "check", "try-wheel")),  # side by side
    (("test-slow",),),
)


def counted(output: str, code: int) -> Counts:
    """Read a step's last line of counts; a step that failed for another reason is one failure."""
    lines = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", output, re.MULTILINE)
    passed, failed, skipped = map(int, lines[-1]) if lines else (0, 0, 0)
    return Counts(passed, max(failed, int(code != 0)), skipped)


def made(step: str) -> tuple[Counts, str]:
    """Run a step; return its counts, and a line on its end."""
    began = time.monotonic()
    code, output = run(["make", step])
    minutes = (time.monotonic() - began) / 60
    return counted(output, code), f"{'FAILED' if code else 'ok':<7}make {step:<10} {minutes:5.1f} min"


def lane(steps: Lane) -> list[tuple[Counts, str]]:
    """Run steps one after the other."""
    return [made(step) for step in steps]


def main() -> int:
    """Exit 0 only when every step did."""
    total, ends = Counts(), []
    for lanes in STEPS:
        with ThreadPoolExecutor() as pool:
            for counts, end in itertools.chain.from_iterable(pool.map(lane, lanes)):
                total += counts
                ends.append(end)
        if total.failed and lanes == FIRST:
            break
    print("\n" + "\n".join(ends))
    print(total.line)
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
