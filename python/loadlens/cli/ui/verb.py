"""`loadlens ui`: a page in the browser that shows records until Ctrl-C."""

from __future__ import annotations

import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.cli.completion import records
from loadlens.cli.options import Example, argument, option, verb
from loadlens.cli.report import RUNS, opened
from loadlens.errors import UsageError
from loadlens.present import streams

_ORIGIN: Final = re.compile(r"https?://[\w.:\[\]-]+")


@dataclass(frozen=True, slots=True)
class UiOptions:
    """Options of `ui`."""

    place: Path = argument(
        "DIR|RUN",
        "A folder with records, or a record, also of a run that goes on. Default: runs.",
        default=RUNS,
        shell_complete=records,
    )
    port: int = option("--port N", "Listen on port N of 127.0.0.1. Default: any free one.", default=0)
    origins: tuple[str, ...] = option(
        "--origin URL",
        "Also answer under the name of a proxy in front, which must keep strangers out; repeatable. "
        "Example: --origin https://load.example.com",
        default=(),
    )


@verb(
    UiOptions,
    Example("loadlens ui", "the runs below runs/"),
    Example("loadlens ui runs/register-2c90", "one run, also while it goes on"),
)
def ui(given: UiOptions) -> None:
    """Show runs in a browser, while they go on and afterwards.

    Prints a URL and serves the page on 127.0.0.1 until Ctrl-C or SIGTERM, which end it with exit code 0. It
    ends at once where its output is lost, because the page opens with that URL alone. It reads records and
    nothing else; a run that another command has begun shows as it goes.
    """
    for origin in given.origins:
        if not _ORIGIN.fullmatch(origin):
            raise UsageError(f"not an origin: {origin!r}", where="--origin", hint="https://load.example.com")
    if not 0 <= given.port <= 65_535:
        raise UsageError(f"no port {given.port}", where="--port", hint="--port 0, any free port")
    from loadlens import record

    is_run = record.is_record(given.place)
    if not is_run and not given.place.is_dir():
        opened(given.place)  # says what is there instead
    from loadlens.cli.ui import again
    from loadlens.ui.server import Server
    from loadlens.ui.shelf import Shelf

    shelf = Shelf(given.place.absolute(), is_run=is_run, begin=again.begin)
    server = Server(shelf, given.port, given.origins)
    asked = {
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    signal.pthread_sigmask(signal.SIG_BLOCK, asked)  # also of the threads that begin now
    server.start()
    print(server.url, flush=True)
    if not streams.is_lost(sys.stdout):  # without its URL no page can be opened
        signal.sigwait(asked)
    server.close()
