"""What a plot is worth."""

from __future__ import annotations

import statistics
from typing import Any

from . import frames
from .session import Sessions

WEIGHTS = {"residential": 1.0, "commercial": 1.35, "farmland": 0.08}


async def value_of(sessions: Sessions, plot: str, use: str, wanted: int) -> dict[str, Any]:
    async with sessions.one() as session:
        sheet = await session.ask(frames.PLOT, {"plot": plot, "fields": ["area_m2", "zone", "encumbrances"]})
        sales = await session.ask(frames.COMPARABLES, {"zone": sheet["zone"], "use": use, "limit": wanted})
    per_m2 = [sale["price"] / sale["area_m2"] for sale in sales["sales"]]
    spread = statistics.pstdev(per_m2)
    middle = statistics.median(per_m2)
    usable = [price for price in per_m2 if abs(price - middle) <= 2 * spread] or per_m2
    worth = statistics.fmean(usable) * sheet["area_m2"] * WEIGHTS.get(use, 1.0)
    return {
        "plot": plot,
        "use": use,
        "zone": sheet["zone"],
        "value": round(worth, -2),
        "comparables": len(usable),
        "encumbrances": sheet["encumbrances"],
    }
