"""An event loop that hashes a password itself, so that nothing else is answered meanwhile."""

from __future__ import annotations

import asyncio
import hashlib
import sys


def register(password: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password, b"salt", 40_000)  # hashes


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            is_known = head.split(b" ", 2)[1] == b"/"
            body = register(b"secret").hex().encode() if is_known else b""
            status = b"200 OK" if is_known else b"404 Not Found"
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", int(sys.argv[1]), backlog=1024)
    await server.serve_forever()


asyncio.run(main())
