import asyncio
import os

import asyncpg


async def main() -> None:
    dsn = f"postgresql://postgres@127.0.0.1:{int(os.environ['PORT']) + 2}/postgres"
    for _ in range(300):
        try:
            db = await asyncpg.connect(dsn)
        except (OSError, asyncpg.PostgresError):
            await asyncio.sleep(0.1)
        else:
            await db.close()
            return
    raise SystemExit("the database did not start")


asyncio.run(main())
