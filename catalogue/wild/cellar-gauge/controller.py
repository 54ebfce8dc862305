"""Stand-in of the cellar's controller: a binary protocol over TCP, one frame per question and answer.

A frame is a header (kind, number of bytes) and a JSON body.
"""

import asyncio
import json
import os
import struct

HEADER = struct.Struct(">4sI")
WAIT_S = 0.15 if os.environ["VARIANT"] == "healthy" else 0.0


def reading(tank: int, sensor: str) -> dict:
    base = {"temperature": 16.5, "level": 72.0, "density": 1.042}[sensor]
    return {"tank": tank, "sensor": sensor, "value": round(base + (tank * 37 % 19) / 10, 3)}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            kind, size = HEADER.unpack(await reader.readexactly(HEADER.size))
            question = json.loads(await reader.readexactly(size))
            if WAIT_S:
                await asyncio.sleep(WAIT_S)
            body = json.dumps(reading(**question)).encode()
            writer.write(HEADER.pack(b"VAL ", len(body)) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    async with server:
        await server.serve_forever()


asyncio.run(main())
