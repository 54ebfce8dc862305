"""Settings of the temperature log."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    store: str = "documents"
    gateway_ms: float = 3.0
    folder: Path = Path(os.environ.get("TMPDIR", "/tmp")) / "reefer"


def load() -> Settings:
    variant = os.environ.get("VARIANT", "flawed")
    if variant == "mended":
        return Settings(store="journal")
    if variant == "healthy":
        return Settings(store="memory", gateway_ms=110.0)
    return Settings()
