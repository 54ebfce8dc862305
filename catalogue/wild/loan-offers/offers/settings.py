"""Settings by environment."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    bureau_ms: tuple[float, float]
    latency_target_ms: float
    initial_limit: int = 20
    min_limit: int = 8
    max_limit: int = 400


PROFILES = {
    "flawed": Settings(
        bureau_ms=(80, 90),
        latency_target_ms=50,
    ),
    "mended": Settings(
        bureau_ms=(80, 90),
        latency_target_ms=600,
        initial_limit=200,
    ),
    "healthy": Settings(
        bureau_ms=(110, 140),
        latency_target_ms=900,
        initial_limit=200,
    ),
}

settings = PROFILES[os.environ.get("VARIANT", "mended")]
