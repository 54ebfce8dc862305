"""One load accompanied by a script of wrk.

What a script does before and after the load happens on a thread of its own while the main thread waits:
Ctrl-C ends the program also where a script loops for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from loadlens.engine import Script, ScriptSpec
from loadlens.errors import EngineError, ScriptError
from loadlens.model.workload import Plan
from loadlens.run.single_load import HitDone, run_hit

T = TypeVar("T")
LOOK_EVERY_S = 0.05  # how late Ctrl-C may be heard


def prepare(asked: ScriptSpec) -> Script:
    """Load the script and call `setup` and `init` for each thread.

    Raises:
        TestbedError, ScriptError: See `engine.Script`.
    """
    return _apart(lambda: Script(asked))


def run_scripted(plan: Plan, script: Script) -> HitDone:
    """Run one load whose requests are those of a script; Ctrl-C ends it early.

    Raises:
        ScriptError: The script failed, or did not come back from a call.
        PlanError, EngineError: The engine refuses the plan or cannot carry it.
    """
    try:
        done = run_hit(plan, start=script.start)
    except EngineError:
        if (fault := script.fault()) is None:
            raise
        raise ScriptError(fault) from None
    if (fault := script.fault()) is not None:
        raise ScriptError(fault)
    return done


def finish(script: Script, measured_ns: int, summary: Mapping[str, Any]) -> None:
    """Call the script's `done`.

    Raises:
        ScriptError: It fails.
    """
    _apart(lambda: script.done(measured_ns, summary))


def _apart(work: Callable[[], T]) -> T:
    """Do something on a thread that does not delay the end of the program."""
    values: list[T] = []
    faults: list[BaseException] = []

    def do() -> None:
        try:
            values.append(work())
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=do, name="loadlens-script", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_EVERY_S)
    if faults:
        raise faults[0]
    return values[0]
