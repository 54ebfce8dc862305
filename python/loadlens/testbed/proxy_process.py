"""The process of a fault proxy: `python -m loadlens.testbed.proxy_process SETTINGS.json`.

It keeps no rights that it does not need: started as root it goes on as `nobody`. TERM and INT end it, and so
does the end of its standard input where that is a pipe.
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
    """Serve until asked to end; the exit code."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # the byte in the pipe is what ends it
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
    print(f"passes on from port {port}, books on port {control_port}", flush=True)
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
