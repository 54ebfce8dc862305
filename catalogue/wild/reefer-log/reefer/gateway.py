"""The telematics gateway that holds what a trailer's probes measured."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

LIMITS = {"frozen": -18.0, "chilled": 4.0}


async def fetch(trailer: str, probes: int, wait_ms: float) -> list[dict[str, Any]]:
    await asyncio.sleep(wait_ms / 1000)
    now = int(time.time())
    return [
        {"trailer": trailer, "probe": probe, "at": now, "celsius": round(random.gauss(-19.0, 0.8), 2), "class": "frozen"}
        for probe in range(probes)
    ]


def alarms(readings: list[dict[str, Any]]) -> list[int]:
    return [each["probe"] for each in readings if each["celsius"] > LIMITS[each["class"]] + 2.0]
