"""One engine a process, and a session for each request.

The driver is asynchronous on purpose: with a synchronous one no two transactions of a worker overlap, and the
"database is locked" of the published report could not happen. Its busy time-out stays at the default of 5 s.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from api.settings import settings

engine = create_async_engine(settings.database_url)
_sessions = async_sessionmaker(engine, expire_on_commit=False)


async def _session() -> AsyncIterator[AsyncSession]:
    async with _sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(_session)]
