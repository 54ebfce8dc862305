"""HTTP client of the airline's fare API."""
import os

import httpx

VARIANT = os.environ.get("VARIANT", "flawed")
CONNECTIONS = 8 if VARIANT == "flawed" else 200


def make(base_url: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
    timeout = httpx.Timeout(20, pool=None)
    return httpx.AsyncClient(base_url=base_url, limits=limits, timeout=timeout, trust_env=False)


async def fares(http: httpx.AsyncClient, origin: str, target: str) -> list[dict]:
    answer = await http.get("/fares", params={"from": origin, "to": target})
    answer.raise_for_status()
    return answer.json()["fares"]
