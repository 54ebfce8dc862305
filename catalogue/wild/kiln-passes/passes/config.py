"""Configuration of the passes service."""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Config:
    works: str = "brook-street"
    secret: bytes = b"works secret, from the safe"
    key_rounds: int = 45_000
    meter_ms: tuple[float, float] = (25, 35)
    variant: str = field(default_factory=lambda: os.environ.get("VARIANT", "mended"))


def load() -> Config:
    config = Config()
    if config.variant == "healthy":
        return Config(meter_ms=(85, 115), key_rounds=2_000)
    return config
