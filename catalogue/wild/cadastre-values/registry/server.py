"""Stand-in for the land registry."""

from __future__ import annotations

import asyncio
import json
import random
import sys

from valuer import frames, settings

WAIT_S = settings.load().registry_ms / 1000


def answer(kind: int, ask: dict) -> dict:
    if kind == frames.PLOT:
        rng = random.Random(ask["plot"])
        return {"plot": ask["plot"], "area_m2": rng.randint(180, 2400), "zone": f"Z{rng.randint(1, 40)}", "encumbrances": rng.randint(0, 2)}
    rng = random.Random(ask["zone"])
    sales = [{"price": rng.randint(90_000, 900_000), "area_m2": rng.randint(200, 1500)} for _ in range(ask["limit"])]
    return {"zone": ask["zone"], "sales": sales}


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            length, kind = frames.unpack_head(await reader.readexactly(frames.HEAD.size))
            ask = json.loads(await reader.readexactly(length))
            await asyncio.sleep(WAIT_S)
            head, body = frames.pack(kind, answer(kind, ask))
            writer.write(head + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", int(sys.argv[1]), backlog=256)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
