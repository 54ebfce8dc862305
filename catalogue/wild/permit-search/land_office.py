"""Stand-in of the land office, which knows who owns a parcel."""

import asyncio
import json

import settings


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            parcel = head.split(b" ", 2)[1].rsplit(b"/", 1)[-1].decode()
            await asyncio.sleep(settings.LAND_OFFICE_SECONDS)
            body = json.dumps({"parcel": parcel, "ward": "Northgate", "zone": "R2", "area_m2": 641}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", settings.LAND_OFFICE_PORT, backlog=512)
    async with server:
        await server.serve_forever()


asyncio.run(main())
