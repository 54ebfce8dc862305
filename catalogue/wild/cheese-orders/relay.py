"""Stand-in of the mail relay."""

import asyncio
import os

ACCEPT_S = 0.4 if os.environ.get("VARIANT") == "healthy" else 0.012


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"220 relay.example ESMTP\r\n")
    try:
        while line := await reader.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                await reader.readuntil(b"\r\n.\r\n")
                await asyncio.sleep(ACCEPT_S)
                writer.write(b"250 queued\r\n")
            elif verb == b"QUIT":
                writer.write(b"221 bye\r\n")
                break
            else:
                writer.write(b"250 relay.example\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(talk, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=1024)
    await server.serve_forever()


asyncio.run(main())
