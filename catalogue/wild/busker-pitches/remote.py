"""Stand-ins: the city's diary and its log collector."""

import asyncio
import json
import os

PORT = int(os.environ["PORT"])
DIARY_S = 0.4 if os.environ["VARIANT"] == "healthy" else 0.03
COLLECTOR_S = 0.02
EVENTS = json.dumps({"events": [{"name": "market", "visitors": 900}, {"name": "parade", "visitors": 2600}]}).encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait_s: float, body: bytes) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            if "content-length:" in head:
                await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
            await asyncio.sleep(wait_s)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    diary = await asyncio.start_server(lambda r, w: serve(r, w, DIARY_S, EVENTS), "127.0.0.1", PORT + 1, backlog=512)
    logs = await asyncio.start_server(lambda r, w: serve(r, w, COLLECTOR_S, b"{}"), "127.0.0.1", PORT + 2, backlog=512)
    await asyncio.gather(diary.serve_forever(), logs.serve_forever())


asyncio.run(main())
