"""A load whose engine returns what a test plants, so that no service and no seconds are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

URL = "http://127.0.0.1:9/"


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[dict[str, Any]], None]:
    """Makes every load return a result of the engine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("loadlens.cli.preflight.connect_once", lambda _: None)

    def planted(result: dict[str, Any]) -> None:
        monkeypatch.setattr("loadlens.run.single_load.run_trial", lambda *_, **__: result)

    return planted
