"""Runs a command in a process that has loaded the program: `python -I -S forking.py SOCKET WORDS`.

This costs a tenth of the program's own start: nothing that takes time is imported here. The command has the
open files, folder, variables and limits of this process, and gets its signals (forked.py). It does not show
the start of an interpreter, nor what variables of Python such as PYTHONUTF8 do.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes time to import
import _socket
import marshal
import os
import resource
import sys

TYPE_CHECKING = False  # `typing` takes time to import
if TYPE_CHECKING:
    from typing import Any

FOLDER = -1  # among the numbers of what is open
MOST_OPEN = 64
LENGTH_BYTES = 8
FORWARDED = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
LIMITS = 16  # kinds of resource that the kernel limits


def asking(path: str) -> _socket.socket:
    """Connect to the process that forks."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(path)
    return connection


def request(
    connection: _socket.socket,
    words: list[bytes],
    descriptors: dict[int, int],
    variables: dict[bytes, bytes],
    limits: dict[int, tuple[int, int]],
) -> None:
    """Send a command, with the descriptors of its streams and FOLDER."""
    content = marshal.dumps(((words, variables, limits), list(descriptors)))
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors.values())
    rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)]
    connection.sendmsg([len(content).to_bytes(LENGTH_BYTES, "big")], rights)
    connection.sendall(content)


def received(connection: _socket.socket) -> tuple[tuple[Any, ...], dict[int, int]]:
    """Receive what `request` sends."""
    head, rights, _, _ = connection.recvmsg(LENGTH_BYTES, _socket.CMSG_SPACE(4 * MOST_OPEN))
    ((_, _, numbers),) = rights
    content = b""
    while len(content) < int.from_bytes(head, "big"):
        content += connection.recv(1 << 16)
    given, names = marshal.loads(content)
    made = [int.from_bytes(numbers[at : at + 4], sys.byteorder) for at in range(0, 4 * len(names), 4)]
    return given, dict(zip(names, made, strict=True))


def end(connection: _socket.socket) -> tuple[int, float]:
    """Wait for the end of the command; return its code, below 0 for a signal, and its seconds of CPU."""
    code, cpu_s = marshal.loads(connection.recv(1 << 10))
    return code, cpu_s


def is_open(descriptor: int) -> bool:
    """True for the number of something open."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def main() -> None:
    """Run the command that is typed, and end as it does."""
    numbers = map(int, os.listdir("/proc/self/fd"))
    descriptors = {number: number for number in numbers if is_open(number)}  # not that of the listing
    descriptors[FOLDER] = os.open(".", os.O_RDONLY)
    connection = asking(sys.argv[1])
    limits = {number: resource.getrlimit(number) for number in range(LIMITS)}
    request(connection, list(map(os.fsencode, sys.argv[2:])), descriptors, dict(os.environb), limits)

    def forward(number: int, _: object) -> None:
        try:  # noqa: SIM105  # `contextlib` takes time to import
            connection.send(bytes([number]))
        except BrokenPipeError:
            pass  # the command has ended, and its end waits to be read

    for number in FORWARDED:
        _signal.signal(number, forward)
    code, _ = end(connection)
    if code < 0:
        _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
