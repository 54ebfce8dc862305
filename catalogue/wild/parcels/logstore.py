"""Stand-in of the log store: 20 ms for any batch; an empty line ends a batch."""
import asyncio
import sys


async def ship(reader, writer):
    while line := await reader.readline():
        if line == b"\n":
            await asyncio.sleep(0.02)
            writer.write(b"ok")


async def main(port):
    async with await asyncio.start_server(ship, "127.0.0.1", port) as server:
        await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
