"""A process that has loaded the program and forks for every command: `python -m tests.edges.forked`.

Reads a line of JSON for each command: its words in hexadecimal, its folder. Writes one when it has ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time

MOST_CPU_S = 20
MOST_WALL_S = 20.0
END_WITHIN_S = 10.0


def child(words: list[bytes], folder: str) -> None:
    """Run one command in this process, as its interpreter would have begun it."""
    os.setsid()
    os.chdir(folder)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(f"{folder}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(file, descriptor)
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 26, 1 << 26))
    sys.argv = ["loadlens", *map(os.fsdecode, words)]
    from loadlens.__main__ import main

    main()


def run(words: list[bytes], folder: str) -> dict[str, object]:
    pid = os.fork()
    if pid == 0:
        code = 120
        try:
            child(words, folder)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    began, was_ended = time.monotonic(), False
    while True:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            break
        over_s = time.monotonic() - began - MOST_WALL_S
        if over_s > 0 and not was_ended:
            os.kill(pid, signal.SIGTERM)
            was_ended = True
        if over_s > END_WITHIN_S:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return {
        "code": os.waitstatus_to_exitcode(status),
        "cpu_s": used.ru_utime + used.ru_stime,
        "was_ended": was_ended,
    }


if __name__ == "__main__":
    import loadlens.cli  # noqa: F401  # loaded once for all commands
    from loadlens import engine  # noqa: F401

    for line in sys.stdin:
        given = json.loads(line)
        print(json.dumps(run([bytes.fromhex(word) for word in given["words"]], given["folder"])), flush=True)
