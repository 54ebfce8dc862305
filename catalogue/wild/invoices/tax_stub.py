# stands in for the tax office's VAT service: 400 ms for anything, no limit
import asyncio
import json
import sys


async def client(reader, writer):
    try:
        while request := await reader.readuntil(b"\r\n\r\n"):
            country = request.split(b" ")[1].rsplit(b"/", 1)[-1].decode()
            await asyncio.sleep(float(sys.argv[2]))
            body = json.dumps({"country": country, "vat": {"DE": 19, "FR": 20}.get(country, 21)}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(client, "127.0.0.1", int(sys.argv[1]), backlog=512)
    await server.serve_forever()


asyncio.run(main())
