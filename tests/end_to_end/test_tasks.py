"""Tasks of asyncio that are read from memory, against what the interpreter itself knows of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadlens.model.stacks import TASKS_FROM, Stack
from loadlens.signals.collect.threads import python_tasks

SERVICE = Path(__file__).parent / "coded" / "tasks.py"
LEFT_OUT = {"gathers", "calls_a_thread", "calls_an_executor", "groups"}
HIDDEN = {
    "iterates": ["numbers", "sleep"],
    "awaits_an_object": ["sleep"],
}  # Python does not show what it awaits
WAITS = {"acquire": "lock", "get": "lock", "sleep": "timer"}


def pythons() -> list[str]:
    """Return the interpreters of this machine whose tasks can be read: at least that of the tests."""
    minors = {11, 12, 13} - {sys.version_info.minor}
    others = [path for minor in sorted(minors) if (path := shutil.which(f"python3.{minor}")) is not None]
    return [sys.executable, *filter(runs, others)]


def runs(interpreter: str) -> bool:
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False).returncode == 0


def called(stack: Stack) -> list[tuple[str, int]]:
    return [(frame.function, frame.line) for frame in stack]


@pytest.mark.parametrize("interpreter", pythons())
def test_memory_says_where_tasks_are_as_python_does(interpreter: str) -> None:
    with subprocess.Popen([interpreter, SERVICE], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            of_python: Sequence[tuple[str, list[tuple[str, int]]]] = json.loads(process.stdout.readline())
            reader = python_tasks.reader_of(process.pid)
            assert reader is not None
            tasks = reader.read()
            for _ in range(100):  # until main, which has just printed, waits again
                if any(stack[0].function == "main" for stack in tasks.stacks.values()):
                    break
                time.sleep(0.05)
                tasks = reader.read()
            reader.close()
        finally:
            process.kill()

    expected = {}
    for name, places in of_python:
        function = places[0][0]
        if function not in LEFT_OUT | {"main"}:
            expected[int(name.removeprefix("Task-"))] = [tuple(place) for place in places]
    seen = {number - TASKS_FROM: stack for number, stack in tasks.stacks.items()}
    main = next(number for number, stack in seen.items() if stack[0].function == "main")
    assert [frame.function for frame in seen.pop(main)] == ["main", "sleep"]
    assert seen.keys() == expected.keys()
    for number, stack in seen.items():
        hidden = HIDDEN.get(stack[0].function, [])
        assert called(stack[: len(stack) - len(hidden)]) == expected[number]
        assert [frame.function for frame in stack[len(stack) - len(hidden) :]] == hidden
        assert tasks.waits[number + TASKS_FROM] == WAITS.get(stack[-1].function, "other")
    assert len(seen) == 15  # twelve that wait, and three that others wait for


def test_a_program_without_asyncio_has_no_tasks() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        time.sleep(0.2)
        assert python_tasks.reader_of(process.pid) is None
        process.kill()
