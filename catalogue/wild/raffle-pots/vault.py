"""Stand-ins: the fair's vault, one command after the other, and the steward's desk that draws tickets."""

import asyncio
import os
import secrets
import time

from aiohttp import web

COMMAND_S = 0.00025
DRAW_S = 0.15

values: dict[str, str] = {}


def run(words: list[str]) -> str:
    time.sleep(COMMAND_S)
    match words:
        case ["GET", key]:
            return values.get(key, "")
        case ["SET", key, value]:
            values[key] = value
            return "OK"
        case ["SETNX", key, value]:
            return "1" if values.setdefault(key, value) == value else "0"
        case ["ADD", key, value]:
            values[key] = str(int(values.get(key, "0")) + int(value))
            return values[key]
        case ["DEL", key]:
            return "1" if values.pop(key, None) is not None else "0"
    return "ERR"


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        writer.write((run(line.decode().rstrip("\n").split("\t")) + "\n").encode())
        await writer.drain()


async def draw(_: web.Request) -> web.Response:
    await asyncio.sleep(DRAW_S)
    return web.json_response({"ticket": secrets.token_hex(4)})


async def main() -> None:
    port = int(os.environ["PORT"])
    desk = web.Application()
    desk.router.add_get("/draw/{pot}", draw)
    runner = web.AppRunner(desk, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port + 2).start()
    server = await asyncio.start_server(serve, "127.0.0.1", port + 1)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
