"""Stand-in of the card issuer's switch."""

import asyncio
import os
import struct

HEADER = struct.Struct(">HH")
LATENCY_S = 0.2 if os.environ["VARIANT"] == "healthy" else 0.003


async def serve(reader, writer):
    try:
        while True:
            length, _ = HEADER.unpack(await reader.readexactly(HEADER.size))
            card, cents, trace = (await reader.readexactly(length)).split(b"|")
            await asyncio.sleep(LATENCY_S)
            code = 0 if int(cents) < 250_000 else 51
            answer = b"%02d|A%s%s" % (code, trace, card[-2:])
            writer.write(HEADER.pack(len(answer), 0x0110) + answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=512)
    await server.serve_forever()


asyncio.run(main())
