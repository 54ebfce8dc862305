"""`--ui` of the verbs that make load: the page of a run that lives as long as the command."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from loadlens.cli import lab
from loadlens.errors import TestbedError

UI: Final = (
    "--ui",
    "Also show the run in a browser: print the URL of a page on this machine, which ends with the command.",
)
ENDS_WITHIN_S: Final = 10.0


@contextmanager
def page_of(run: Path, *, is_wanted: bool) -> Iterator[None]:
    """Serve the page of a run, which need not have a record yet, within the block.

    Raises:
        UsageError: Packages are missing.
        TestbedError: The server does not start.
    """
    if not is_wanted:
        yield
        return
    lab.demand("--ui", draws=False)
    command = [sys.executable, "-m", "loadlens.ui", str(run.absolute())]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # closed by the kernel when this process ends
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the run
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        url = server.stdout.readline().decode().strip()
        if not url:
            last = server.stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            raise TestbedError(
                f"the page does not start: {''.join(last)}", hint="the same command without --ui"
            )
        sys.stderr.write(f"page: {url}\n")
        try:
            yield
        finally:
            server.stdin.close()
            try:
                server.wait(ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                server.kill()
