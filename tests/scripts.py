"""Programs outside the package, as modules: the tools of this repository and scripts of studies."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]


def loaded(path: str) -> ModuleType:
    """A script as a module, under a name of its own.

    Args:
        path: Seen from the root of the repository.
    """
    script = ROOT / path
    spec = importlib.util.spec_from_file_location(f"{script.stem}_{script.parent.name}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
