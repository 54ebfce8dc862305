"""Settings, shared by the front and the fares service."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

PORT = int(os.environ.get("PORT", "8080"))


@dataclass(frozen=True)
class Config:
    front_timeout_s: float
    haulier_timeout_s: float
    haulier_connections: int
    service_url: str = f"http://127.0.0.1:{PORT + 1}"
    haulier_url: str = f"http://127.0.0.1:{PORT + 2}"
    usual_s: float = 0.12
    slow_s: float = 5.0
    slow_share: float = 1 / 12


BASE = Config(
    front_timeout_s=0.4,
    haulier_timeout_s=8.0,
    haulier_connections=48,
)


def load() -> Config:
    variant = os.environ.get("VARIANT", "flawed")
    if variant == "mended":
        return replace(BASE, haulier_timeout_s=0.25)
    if variant == "healthy":
        return replace(BASE, haulier_timeout_s=0.25, haulier_connections=100, slow_share=0.0)
    return BASE
