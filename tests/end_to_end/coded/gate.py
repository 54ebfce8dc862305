"""A few requests at a time call something slow, in tasks of one event loop."""

from __future__ import annotations

import asyncio
import sys

few = asyncio.Semaphore(3)


async def calls() -> None:
    await asyncio.sleep(0.03)  # holds


async def passes() -> None:
    async with few:  # waits
        await calls()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await passes()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


asyncio.run(main())
