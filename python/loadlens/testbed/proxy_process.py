"""The process of a fault proxy: `python -m loadlens.testbed.proxy_process SETTINGS.json`.

Started as root, it switches to an unprivileged account once its ports are bound. TERM and INT end it, and so
does the end of its standard input if that is a pipe.
"""

from __future__ import annotations

import os
import pwd
import signal
import stat
import sys
from pathlib import Path

from loadlens import engine
from loadlens.errors import LoadlensError


def main(file: str) -> int:
    """Serve until signalled to end, and return the exit code."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the byte in the pipe ends the proxy
    ends = [woken]
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        ends.append(0)
    try:
        engine.serve_proxy(Path(file).read_text(), ends, _listening)
    except LoadlensError as error:
        print(error.message, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"the fault proxy {error}", file=sys.stderr)
        return 3
    return 0


def _listening(port: int, control_port: int) -> None:
    print(f"listens on port {port}, control on port {control_port}", flush=True)
    if os.geteuid() == 0:
        account = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
