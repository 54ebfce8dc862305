"""A small HTTP service with chosen bad manners: odd_service.py PORT [MANNER=VALUE ...].

Standard library only, and little of it, so that it is up in milliseconds.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time


def main() -> None:
    """Serve with the odd behaviour of the arguments."""
    port = int(sys.argv[1])
    manners = dict(argument.split("=", 1) for argument in sys.argv[2:])
    if "say" in manners:
        print(manners["say"], flush=True)
    if "exit" in manners:
        sys.exit(int(manners["exit"]))
    if "ignore" in manners:
        signal.signal(signal.Signals[f"SIG{manners['ignore']}"], signal.SIG_IGN)
    for kind in filter(None, manners.get("descendants", "").split(",")):
        leave_descendant(kind)
    if "flood" in manners:
        flood(int(manners["flood"]))
    if manners.get("listen", "yes") == "yes":
        serve(port, int(manners.get("status", "200")))
    time.sleep(600)


def leave_descendant(kind: str) -> None:
    """A grandchild that lives on: in its own session, double-forked, or with nothing of its origin left."""
    executed, unexecuted = os.pipe()  # the second end is closed when the last of them executes `sleep`
    if os.fork() != 0:
        os.close(unexecuted)
        os.read(executed, 1)
        os.close(executed)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if kind in ("session", "cleared"):
        os.setsid()
    if kind in ("orphan", "cleared") and os.fork() != 0:
        os._exit(0)
    environment = {} if kind == "cleared" else dict(os.environ)
    os.execve("/bin/sleep", ["sleep", "600"], environment)


def flood(size: int) -> None:
    """Say a lot without ever ending the line."""
    piece = b"x" * (1 << 16)
    os.write(1, b"[first]")
    while size > 0:
        size -= os.write(1, piece[:size])
    os.write(1, b"[last]")


def serve(port: int, status: int) -> None:
    """Answer every request with the status; end with 7 when asked for /die."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen()
    while True:
        connection, _ = listener.accept()
        if connection.recv(65536).startswith(b"GET /die "):
            print("now I die", flush=True)
            sys.exit(7)
        head = b"HTTP/1.1 %d Odd\r\nContent-Length: 2\r\nX-Port: %d\r\nConnection: close\r\n\r\n"
        connection.sendall(head % (status, port) + b"ok")
        connection.close()


if __name__ == "__main__":
    main()
