"""Clients of the county's routing service."""

from dataclasses import dataclass

import aiohttp
import requests

from prometheus_client import Histogram

ROUTE_SECONDS = Histogram("routing_request_duration_seconds", "Calls of the routing service")


@dataclass(frozen=True)
class Leg:
    metres: int
    seconds: int


def _params(start: tuple[float, float], end: tuple[float, float]) -> dict[str, str]:
    return {"from": f"{start[0]},{start[1]}", "to": f"{end[0]},{end[1]}"}


class SessionRouting:
    def __init__(self, base: str) -> None:
        self._base = base
        self._session = requests.Session()
        self._session.trust_env = False

    async def leg(self, start: tuple[float, float], end: tuple[float, float]) -> Leg:
        params = _params(start, end)
        with ROUTE_SECONDS.time():
            answer = self._session.get(f"{self._base}/route", params=params, timeout=5)
        answer.raise_for_status()
        return Leg(**answer.json())

    async def close(self) -> None:
        self._session.close()


class StreamRouting:
    def __init__(self, base: str) -> None:
        self._base = base
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=256), timeout=aiohttp.ClientTimeout(total=5)
        )

    async def leg(self, start: tuple[float, float], end: tuple[float, float]) -> Leg:
        params = _params(start, end)
        with ROUTE_SECONDS.time():
            async with self._session.get(f"{self._base}/route", params=params) as answer:
                answer.raise_for_status()
                return Leg(**await answer.json())

    async def close(self) -> None:
        await self._session.close()
