"""A process that has loaded the program and forks for every command: `python -m tests.edges.forked SOCKET`.

It ends with its standard input. A client (forking.py) sends words, variables, limits, its folder and what it
has open, then the number of each signal for the command; it gets the code of the command and its CPU time.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import marshal
import os
import pkgutil
import random
import resource
import select
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from tests.edges.forking import FOLDER, is_open, received

SCRIPTS = ("__main__", "keeper_process")  # run by path or name, and never imported
ASIDE = 512  # above the numbers that a shell gives
STREAMS = ("stdin", "stdout", "stderr")


def load() -> None:
    """Import all that any verb may import."""
    for package in ("loadlens", "loadlens_compat"):
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            if not module.name.endswith(SCRIPTS):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def become(words: list[bytes], variables: dict[bytes, bytes], limits: dict[int, tuple[int, int]]) -> None:
    """Make this process what its interpreter would have made it."""
    os.environb.clear()
    os.environb.update(variables)
    for number, pair in limits.items():
        resource.setrlimit(number, pair)
    random.seed()
    for number, name in enumerate(STREAMS):
        mode = "w" if number else "r"
        setattr(
            sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False) if is_open(number) else None
        )
    sys.argv = ["loadlens", *map(os.fsdecode, words)]


def place(descriptors: dict[int, int]) -> None:
    """Give each descriptor its number; close the others of the three streams."""
    aside = {number: fcntl.fcntl(at, fcntl.F_DUPFD_CLOEXEC, ASIDE) for number, at in descriptors.items()}
    for descriptor in {*descriptors.values(), *range(len(STREAMS))}:
        os.close(descriptor)
    for number, at in aside.items():
        os.dup2(at, number)
        os.close(at)


def command(asked: socket.socket, request: tuple[Any, ...], descriptors: dict[int, int]) -> None:
    """Run one command in this process, and end."""
    code = 120
    try:
        os.fchdir(descriptors.pop(FOLDER))
        asked.close()
        place(descriptors)
        become(*request)
        from loadlens.__main__ import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def serve(asked: socket.socket) -> None:
    """Run the command that one connection asks for; send it the end, and the command its signals."""
    request, descriptors = received(asked)
    pid = os.fork()
    if pid == 0:
        command(asked, request, descriptors)
    for descriptor in descriptors.values():
        os.close(descriptor)
    ended = os.pidfd_open(pid)
    watched: list[Any] = [asked, ended]
    while ended not in (ready := select.select(watched, [], [])[0]):
        numbers = asked.recv(16) if asked in ready else b""
        for number in numbers or bytes([signal.SIGKILL]):
            os.kill(pid, number)
        if not numbers:  # who asked is gone
            break
    _, status, used = os.wait4(pid, 0)
    asked.sendall(marshal.dumps((os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime)))


def main() -> None:
    """Load, listen, and fork for each connection."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        load()
        listening.listen(64)
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # says that it listens
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            asked, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                with contextlib.suppress(BrokenPipeError):
                    serve(asked)
                os._exit(0)
            asked.close()


if __name__ == "__main__":
    main()
