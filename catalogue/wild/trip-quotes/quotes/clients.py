import aiohttp

from . import settings
from .retry import Unavailable, retrying


class Client:
    """JSON over HTTP."""

    def __init__(self, base, timeout, tries=1):
        self._tries = tries
        self._session = aiohttp.ClientSession(
            base, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=timeout)
        )

    async def close(self):
        await self._session.close()

    async def get(self, path, **params):
        return await retrying(lambda: self._get(path, params), times=self._tries)

    async def _get(self, path, params):
        try:
            async with self._session.get(path, params=params) as response:
                if response.status >= 500:
                    raise Unavailable(f"{path}: {response.status}")
                return await response.json()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"{path}: {error!r}") from error


class Timetable(Client):
    def __init__(self):
        super().__init__(settings.TIMETABLE_URL, timeout=5.0)

    async def departure(self, route, date):
        return await self.get(f"/departures/{route}", date=date)


class FerryLine(Client):
    def __init__(self):
        super().__init__(settings.LINE_URL, timeout=settings.LINE_TIMEOUT, tries=settings.LINE_TRIES)

    async def fare(self, route):
        return (await self.get(f"/fares/{route}"))["fare"]

    async def discount(self, member):
        return (await self.get(f"/members/{member}/discount"))["percent"]
