"""Settings of this deployment, from conf/."""

import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    executor: str
    scorers: int
    shortlist: int
    geocoder_ms: float
    min_score: float


def load() -> Settings:
    path = Path(__file__).parent / "conf" / f"{os.environ.get('VARIANT', 'mended')}.json"
    return Settings(**json.loads(path.read_text()))


settings = load()
