"""A service that waits for the milliseconds of its second argument, however many requests do."""

from __future__ import annotations

import asyncio
import sys

WAIT_S = int(sys.argv[2]) / 1000


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(WAIT_S)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1024) as server:
        await server.serve_forever()


asyncio.run(main())
