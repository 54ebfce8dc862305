"""Stand-in for the gaming authority, which seals every slip."""

import asyncio
import hashlib
import os

LATENCY_S = 0.5 if os.environ.get("VARIANT") == "healthy" else 0.012


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            await asyncio.sleep(LATENCY_S)
            writer.write(hashlib.sha256(line).hexdigest()[:24].encode() + b"\n")
            await writer.drain()
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    await server.serve_forever()


asyncio.run(main())
