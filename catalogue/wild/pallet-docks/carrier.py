"""Stand-in of the carrier, which says which lorry comes to a dock."""

import asyncio
import json
import os

LATENCY_S = 0.26


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            dock = head.split(b" ", 2)[1].rsplit(b"/", 1)[-1].decode()
            await asyncio.sleep(LATENCY_S)
            body = json.dumps({"dock": dock, "lorry": "KX-" + dock[1:] + "-40", "bay": int(dock[1:]) % 6}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    async with server:
        await server.serve_forever()


asyncio.run(main())
