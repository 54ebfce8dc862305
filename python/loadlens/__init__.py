"""Loadlens: see what your service does under load, and why.

From Python, the verbs are functions (docs/guide/python.md): `loadlens.hit(url)` loads a URL, and
`loadlens.open(path)` gives the record of a run as Polars frames. Nothing is loaded before it is used.
"""

from __future__ import annotations

# As in `typing`, whose import would come before Ctrl-C is handled (__main__.py).
TYPE_CHECKING = False
if TYPE_CHECKING:
    from loadlens.api.verbs import capacity, compare, explain, hit, open, run

__version__ = "0.1.0"
__all__ = ["__version__", "capacity", "compare", "explain", "hit", "open", "run"]


def __getattr__(name: str) -> object:
    """Load a verb when it is asked for; a package of its name stands for it (_callable.py)."""
    if name in ("compare", "run"):
        from importlib import import_module

        return import_module(f"loadlens.{name}")
    if name in __all__:
        from loadlens.api import verbs

        return getattr(verbs, name)
    raise AttributeError(f"module 'loadlens' has no attribute {name!r}")
