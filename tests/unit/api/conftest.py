"""A load whose engine returns what a test plants, so that no service and no seconds are needed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

# Loaded here, because pytester forgets modules that are first loaded within its tests.
from loadlens.cli import preflight
from loadlens.run import single_load

# The words that load the plugin where this checkout was installed before it had one.
IS_INSTALLED = any(each.name == "loadlens" for each in entry_points(group="pytest11"))
PLUGIN = () if IS_INSTALLED else ("-p", "loadlens.api.pytest_plugin")
URL = "http://127.0.0.1:9/"


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, Any]], None]:
    """Makes every load return a result of the engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(preflight, "connect_once", lambda _: None)

    def planted(result: dict[str, Any]) -> None:
        monkeypatch.setattr(single_load, "run_trial", lambda *_, **__: result)

    return planted
