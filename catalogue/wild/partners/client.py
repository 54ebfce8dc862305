"""HTTP client of the airline's fare API."""
import os

import aiohttp

VARIANT = os.environ.get("VARIANT", "flawed")
CONNECTIONS = 8 if VARIANT == "flawed" else 200


async def make(base_url: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, keepalive_timeout=30)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=20)
    return aiohttp.ClientSession(base_url, connector=connector, timeout=timeout)


async def fares(http: aiohttp.ClientSession, origin: str, target: str) -> list[dict]:
    async with http.get("/fares", params={"from": origin, "to": target}) as answer:
        answer.raise_for_status()
        return (await answer.json())["fares"]
