"""A service with a known time for each request: timed_service.py PORT MILLISECONDS [queue].

Any number of requests wait for that time at once; as a queue, an M/M/1, one at a time for an exponential time
of that mean: each is answered at the end of its turn on the clock, so a machine that is busy delays answers
but takes nothing from the throughput. /ping does not wait.
"""

from __future__ import annotations

import asyncio
import random
import sys

MEAN_S = int(sys.argv[2]) / 1000
IS_QUEUE = sys.argv[3:] == ["queue"]
draws = random.Random(3)
free_at = 0.0  # on the loop's clock


def turn_s() -> float:
    """Take the next turn of the queue; return the time from now until it ends."""
    global free_at
    now = asyncio.get_running_loop().time()
    free_at = max(now, free_at) + draws.expovariate(1 / MEAN_S)
    return free_at - now


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if b" /ping " in head:
                pass
            else:
                await asyncio.sleep(turn_s() if IS_QUEUE else MEAN_S)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main() -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=1024) as server:
        await server.serve_forever()


asyncio.run(main())
