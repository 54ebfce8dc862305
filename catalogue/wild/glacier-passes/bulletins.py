"""Stand-in of the regional avalanche service."""

import asyncio
import json
import os

HEALTHY = os.environ["VARIANT"] == "healthy"
LATENCY_S = 0.2 if HEALTHY else 0.04
seats = asyncio.Semaphore(1000 if HEALTHY else 5)


async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            zone = int(head.split(b"/")[2])
            async with seats:
                await asyncio.sleep(LATENCY_S)
            body = json.dumps({"danger": 1 + zone * 7 % 5, "issued": "2026-02-11T17:00:00+01:00"}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    await server.serve_forever()


asyncio.run(main())
