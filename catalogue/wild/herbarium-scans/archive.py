"""Stand-in of the museum's image archive: answers a scan after the time that its tape cache takes."""

import asyncio
import os
import random

LATENCY_S = 0.24 if os.environ["VARIANT"] == "healthy" else 0.15
SCAN = random.Random(7).randbytes(24_000)


async def serve(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(LATENCY_S)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/tiff\r\nContent-Length: %d\r\n\r\n" % len(SCAN))
            writer.write(SCAN)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    await server.serve_forever()


asyncio.run(main())
