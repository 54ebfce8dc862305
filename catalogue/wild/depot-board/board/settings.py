"""Settings from the environment."""

import os
from dataclasses import dataclass
from pathlib import Path

DEPOTS = ("leeds", "hull", "crewe", "truro", "perth")


@dataclass(frozen=True)
class Settings:
    variant: str
    database: Path
    ttl_s: float
    carrier_wait_s: float


def load() -> Settings:
    variant = os.environ.get("VARIANT", "mended")
    return Settings(
        variant=variant,
        database=Path(os.environ.get("TMPDIR", "/tmp")) / "scans.db",
        ttl_s=float(os.environ.get("BOARD_TTL_S", "4")),
        carrier_wait_s=0.120 if variant == "healthy" else 0.100,
    )
