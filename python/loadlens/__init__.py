"""Loadlens: see what your service does under load, and why.

From Python, `loadlens.hit(url)` loads a URL and `loadlens.open(path)` gives the record of a run as Polars
frames (docs/guide/python.md). Nothing is loaded before it is used.
"""

from __future__ import annotations

# As in `typing`, whose import would come before Ctrl-C is handled (__main__.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from loadlens.api.verbs import hit
    from loadlens.record import RunRecord

__version__ = "0.1.0"
__all__ = ["__version__", "hit", "open"]


def __getattr__(name: str) -> object:
    """Load a verb when it is asked for."""
    if name in __all__:
        from loadlens.api import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module 'loadlens' has no attribute {name!r}")


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
