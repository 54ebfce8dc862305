"""Stand-in of the roster of arbitrators."""

import asyncio
import os

LATENCY_S = 0.4 if os.environ["VARIANT"] == "healthy" else 0.02
BODY = b'{"chair": "Dr. Almqvist"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(LATENCY_S)
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    await server.serve_forever()


asyncio.run(main())
