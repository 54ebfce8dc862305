"""Client of the map provider. It stays within the contract, as the provider blocks keys that do not."""
import aiohttp
from aiolimiter import AsyncLimiter
from prometheus_client import Counter, Histogram

from . import settings

CALLS = Histogram(
    "provider_request_duration_seconds",
    "Time of calls to the map provider",
    buckets=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5),
)
FAILED = Counter("provider_request_failures", "Calls to the map provider that failed")


class ProviderError(Exception):
    pass


class Provider:
    def __init__(self):
        self._limiter = AsyncLimiter(settings.CALLS_PER_SECOND, 1)
        self._session = aiohttp.ClientSession(
            settings.PROVIDER_URL,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=settings.PROVIDER_TIMEOUT),
        )

    async def close(self):
        await self._session.close()

    async def search(self, text):
        async with self._limiter:
            return await self._call(text)

    async def _call(self, text):
        try:
            with CALLS.time():
                async with self._session.get("/search", params={"text": text}) as response:
                    response.raise_for_status()
                    found = await response.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            FAILED.inc()
            raise ProviderError(str(error)) from error
        return found["features"]
