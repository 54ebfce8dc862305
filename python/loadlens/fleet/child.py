"""The load engine on a node, in a process of its own: `python -m loadlens.fleet.child`.

JSON lines come in on standard input and go out on standard output; `messages.py` has their names. Whatever
happens to the controller or to the Dask worker, the load ends: the engine is stopped without a beat for
`STOP_AFTER_S`, the process ends without one for `EXIT_AFTER_S`, and at once when standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from loadlens import engine
from loadlens.errors import LoadlensError
from loadlens.fleet.growth import Growth
from loadlens.fleet.messages import RESULT, Do, Is
from loadlens.fleet.progress import BAD
from loadlens.model.workload import Plan

STOP_AFTER_S: Final = 2.0
EXIT_AFTER_S: Final = 4.0
TICK_S: Final = 0.05
SILENT: Final = 3  # exit status: no beat came

Say = Callable[[Mapping[str, Any]], None]


class Child:
    """One life: prepare, start, run, write the result."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._run: engine.Run | None = None
        self._folder = Path()
        self._growth: Growth | None = None  # none: not started
        self._starts_ns = 0
        self._heard_s = time.monotonic()
        self._is_ended = False
        self._reasons: list[str] = []

    def obey(self, message: Mapping[str, Any]) -> None:
        """Take a message from the controller; every message is a beat."""
        self._heard_s = time.monotonic()
        match message["do"]:
            case Do.PREPARE:
                # Names are resolved and feeds are read: beats are answered meanwhile.
                threading.Thread(target=self._prepare, args=(message["plan"],), daemon=True).start()
            case Do.START:
                self._start(message["at_ns"])
            case Do.BEAT:
                self._report()
            case Do.STOP:
                self._stop(message["why"])

    def turn(self) -> None:
        """Look after the run once: stop it where no beat comes, and write the result when it has ended."""
        silent_s = time.monotonic() - self._heard_s
        if silent_s > EXIT_AFTER_S:
            os._exit(SILENT)
        if silent_s > STOP_AFTER_S:
            self._stop(f"the controller was silent for {STOP_AFTER_S:g} s")
        is_running = self._growth is not None and not self._is_ended
        if self._run is not None and is_running and self._run.wait(0.0):
            self._is_ended = True
            self._end(self._run)

    def _prepare(self, plan_json: str) -> None:
        try:
            plan = Plan.from_json(json.loads(plan_json))
            assert plan.record is not None
            self._folder = Path(plan.record.dir)
            self._run = engine.Run(plan)
            self._say({"is": Is.PREPARED, "notes": self._run.notes()})
        except LoadlensError as fault:
            self._say(refusal(fault))
        except Exception as fault:  # the controller names the node; a traceback would stay here
            self._say({"is": Is.FAILED, "what": f"{type(fault).__name__}: {fault}"})

    def _start(self, at_ns: int) -> None:
        if self._run is None:
            self._say({"is": Is.FAILED, "what": "the start came before the load was prepared"})
            return
        try:
            self._run.start(at_ns)
        except LoadlensError as fault:
            self._say(refusal(fault))
            return
        self._starts_ns = at_ns
        self._growth = Growth(self._folder)
        self._say({"is": Is.ARMED})

    def _report(self) -> None:
        if self._run is not None and self._growth is not None:
            # Before the start another process may still take this one's place, and its files would differ.
            progress, has_begun = self._run.progress(), time.monotonic_ns() >= self._starts_ns
            has_failures = any(stream["so_far"][bad] for stream in progress["streams"] for bad in BAD)
            grown = self._growth.next(has_failures=has_failures) if has_begun else []
            self._say(
                {"is": Is.PROGRESS, "progress": progress, "grown": [piece.to_json() for piece in grown]}
            )
        else:
            self._say({"is": Is.ALIVE})

    def _stop(self, why: str) -> None:
        if self._run is None or self._growth is None or self._is_ended or self._reasons:
            return
        self._reasons.append(why)
        self._run.stop()

    def _end(self, run: engine.Run) -> None:
        try:
            result = run.result()
            (self._folder / RESULT).write_text(json.dumps(result))
            self._say({"is": Is.ENDED, "progress": run.progress(), "reasons": self._reasons})
        except (LoadlensError, OSError) as fault:
            self._say({"is": Is.FAILED, "what": str(fault).splitlines()[0]})


def refusal(fault: LoadlensError) -> dict[str, Any]:
    """Return an error of the engine as a message."""
    faults = getattr(fault, "faults", ())
    return {
        "is": Is.REFUSED,
        "kind": type(fault).__name__,
        "what": fault.message,
        "hint": fault.hint,
        "faults": [list(each) for each in faults],
    }


def serve(commands: int, say: Say) -> None:
    """Obey until the descriptor `commands` is closed or falls silent; does not return."""
    child, rest = Child(say), b""
    while True:
        if select.select([commands], [], [], TICK_S)[0]:
            received = os.read(commands, 1 << 16)
            if not received:
                os._exit(0)  # the Dask worker is gone, or it ends us
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                child.obey(json.loads(line))
        child.turn()


def main() -> None:
    """Keep standard output for messages alone, and serve."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    lock = threading.Lock()

    def say(message: Mapping[str, Any]) -> None:
        with lock:
            try:
                answers.write(json.dumps(message) + "\n")
            except BrokenPipeError:
                os._exit(0)

    serve(0, say)


if __name__ == "__main__":
    main()
