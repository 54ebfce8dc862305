"""Loadlens: see what your service does under load, and why.

`loadlens.open(path)` gives the record of a run as Polars frames; the command line does everything else.
"""

from __future__ import annotations

# As in `typing`, whose import would come before Ctrl-C is handled (__main__.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from loadlens.record import RunRecord

__version__ = "0.1.0"
__all__ = ["__version__", "open"]


def open(path: str | Path) -> RunRecord:
    """Open the record of a run.

    Args:
        path: The run's folder.

    Returns:
        The record; `trials[i].samples()`, `.connections()`, `.readings()` are Polars frames.

    Raises:
        RecordError: There is no record, or it was written by a newer version.
    """
    from loadlens.record import open_run

    return open_run(path)
