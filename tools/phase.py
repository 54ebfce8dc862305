"""Run a command with its output in a log, and show one line: what is done, and how long it took.

    python3 tools/phase.py LOG NAME COMMAND...

On a terminal the time counts up. If the command fails, the end of its output and the log's path follow, and
its exit code is passed on. `make` calls this with the system's Python, before there is an environment.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

SHOWN = 20  # lines of a failed command
WIDTH = 44


def main() -> int:
    """Return the exit code of the command."""
    log, name, command = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    is_terminal = sys.stderr.isatty()
    began = time.monotonic()
    with log.open("a", encoding="utf-8") as written:
        written.write(f"$ {' '.join(command)}\n")
        written.flush()
        start = written.tell()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=written, stderr=written)

    def stop(number: int, _: FrameType | None) -> None:
        """Pass a signal on; one from the keyboard has reached the command already."""
        if number != signal.SIGINT:
            process.send_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    while True:
        seconds = time.monotonic() - began
        if is_terminal:
            print(f"\r{name:<{WIDTH}} {seconds:4.0f} s", end="", file=sys.stderr, flush=True)
        try:
            code = process.wait(timeout=1 if is_terminal else None)
            break
        except subprocess.TimeoutExpired:
            continue
    seconds = time.monotonic() - began
    outcome = f"{seconds:4.0f} s" if code == 0 else f"failed after {seconds:.0f} s"
    print(f"{chr(13) * is_terminal}{name:<{WIDTH}} {outcome}", file=sys.stderr)
    if code:
        with log.open(encoding="utf-8", errors="replace") as read:
            read.seek(start)
            print("".join(read.readlines()[-SHOWN:]).rstrip("\n"), file=sys.stderr)
        print(f"all output is in {log}", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
