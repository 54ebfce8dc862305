"""The server of one run's page as a process of its own: `python -m loadlens.ui RUN`, which prints its URL.

It ends with its standard input, which the process that makes the run holds open: so it ends with that
process, however that ends. It is no thread there, because it reads tables with Polars, which changes what
SIGINT does in its process, and because it runs at a lower priority than the load.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from loadlens.ui.server import Server
from loadlens.ui.shelf import Shelf

NICER: int = 10


def main() -> None:
    """Serve the page of a run until standard input ends."""
    os.nice(NICER)
    server = Server(Shelf(Path(sys.argv[1]), is_run=True))
    server.start()
    sys.stdout.write(f"{server.url}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    server.close()


if __name__ == "__main__":
    main()
