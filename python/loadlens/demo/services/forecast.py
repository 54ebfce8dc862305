"""A weather forecast, fetched from a provider that takes its time."""

from __future__ import annotations

import asyncio
import json

from loadlens.demo.services.web import serve_async

PROVIDER_S = 0.080


async def forecast() -> str:
    # stands for a call of the provider, which serves many at once
    await asyncio.sleep(PROVIDER_S)
    return json.dumps({"place": "Bern", "celsius": 7, "sky": "cloudy"})


async def healthz() -> str:
    return "ok\n"


if __name__ == "__main__":
    serve_async({"/forecast": forecast, "/healthz": healthz})
