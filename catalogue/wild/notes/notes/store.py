"""Notes in PostgreSQL. Two ways to reach it: one plain connection, or a pool for asyncio."""
import os

import psycopg
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

CONNINFO = f"host={os.environ['PGHOST']} user=postgres dbname=postgres"
SEARCH = "SELECT id, title, rank FROM search_notes(%s)"


class Store:
    async def open(self):
        self.connection = psycopg.connect(CONNINFO, autocommit=True, row_factory=dict_row)

    async def search(self, text):
        cursor = self.connection.execute(SEARCH, [text])
        return cursor.fetchall()

    async def close(self):
        self.connection.close()


class PooledStore(Store):
    async def open(self):
        options = {"autocommit": True, "row_factory": dict_row}
        self.pool = AsyncConnectionPool(CONNINFO, min_size=10, max_size=64, kwargs=options, open=False)
        await self.pool.open(wait=True)

    async def search(self, text):
        async with self.pool.connection() as connection:
            cursor = await connection.execute(SEARCH, [text])
            return await cursor.fetchall()

    async def close(self):
        await self.pool.close()
