"""Puts an evening together: an escape room, then dinner."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
import requests

VENUES_URL = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
PART_TIMEOUT_S = 2.0

DISTRICTS: dict[str, dict[str, list[str]]] = {
    "harbour": {"room": ["vault-nine", "the-lighthouse"], "dinner": ["pier-kitchen"]},
    "oldtown": {"room": ["alchemist"], "dinner": ["cellar-table", "brewer"]},
}
PRICES = {"room": 28, "dinner": 34}


class PlanTimedOut(Exception):
    pass


def _plan(district: str, guests: int, found: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    room = min(found["room"], key=lambda each: each["slots"][0])
    start = room["slots"][0]
    dinner = next((each for each in found["dinner"] if each["slots"][-1] > start), found["dinner"][0])
    return {
        "district": district,
        "room": {"venue": room["venue"], "at": start},
        "dinner": {"venue": dinner["venue"], "at": dinner["slots"][-1]},
        "price": guests * sum(PRICES.values()),
    }


class PooledPlanner:
    """Plans on threads, for the venues' client is a blocking one."""

    def __init__(self, threads: int = 8) -> None:
        self._plans = ThreadPoolExecutor(threads, "plans")
        self._parts = self._plans
        self._local = threading.local()

    def _slots(self, venue: str) -> dict[str, Any]:
        if not hasattr(self._local, "session"):
            self._local.session = requests.Session()
            self._local.session.trust_env = False
        answer = self._local.session.get(f"{VENUES_URL}/venues/{venue}/slots", timeout=PART_TIMEOUT_S)
        answer.raise_for_status()
        return answer.json()

    def _assemble(self, district: str, guests: int) -> dict[str, Any]:
        asked = {
            part: [self._parts.submit(self._slots, venue) for venue in venues]
            for part, venues in DISTRICTS[district].items()
        }
        try:
            found = {part: [each.result(PART_TIMEOUT_S) for each in answers] for part, answers in asked.items()}
        except TimeoutError as error:
            for answers in asked.values():
                for each in answers:
                    each.cancel()
            raise PlanTimedOut(district) from error
        return _plan(district, guests, found)

    async def plan(self, district: str, guests: int) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(self._plans, self._assemble, district, guests)

    async def close(self) -> None:
        self._plans.shutdown(wait=False, cancel_futures=True)


class TwoPoolPlanner(PooledPlanner):
    def __init__(self, threads: int = 8) -> None:
        super().__init__(threads)
        self._parts = ThreadPoolExecutor(3 * threads, "parts")

    async def close(self) -> None:
        await super().close()
        self._parts.shutdown(wait=False, cancel_futures=True)


class StreamPlanner:
    def __init__(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=PART_TIMEOUT_S)
        )

    async def _slots(self, venue: str) -> dict[str, Any]:
        async with self._session.get(f"{VENUES_URL}/venues/{venue}/slots") as answer:
            return await answer.json()

    async def plan(self, district: str, guests: int) -> dict[str, Any]:
        found: dict[str, list[dict[str, Any]]] = {}
        try:
            for part, venues in DISTRICTS[district].items():
                found[part] = await asyncio.gather(*[self._slots(venue) for venue in venues])
        except TimeoutError as error:
            raise PlanTimedOut(district) from error
        return _plan(district, guests, found)

    async def close(self) -> None:
        await self._session.close()


PLANNERS: dict[str, Callable[[], Any]] = {
    "flawed": PooledPlanner,
    "mended": TwoPoolPlanner,
    "healthy": StreamPlanner,
}
