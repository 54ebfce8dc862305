"""A service of one event loop that computes for 10 ms of CPU time for `/`, and does nothing for `/health`."""

from __future__ import annotations

import asyncio
import sys
import time

WORK_S = 0.010
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if head.split(b" ", 2)[1] == b"/":
                until = time.process_time() + WORK_S
                while time.process_time() < until:
                    pass
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
