"""Settings of the value desk, one set for each deployment."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    sessions: int = 8
    registry_host: str = "127.0.0.1"
    registry_port: int = int(os.environ.get("PORT", "8080")) + 1
    registry_ms: float = 2.0
    socket_options: tuple[str, ...] = ("SO_KEEPALIVE",)
    comparables: int = 12


DEPLOYMENTS = {
    "flawed": Settings(),
    "mended": Settings(socket_options=("SO_KEEPALIVE", "TCP_NODELAY")),
    "healthy": Settings(socket_options=("SO_KEEPALIVE", "TCP_NODELAY"), sessions=80, registry_ms=55.0),
}


def load() -> Settings:
    return DEPLOYMENTS[os.environ.get("VARIANT", "flawed")]
