"""Stand-in of the airline: takes its time, any number at once."""
import asyncio
import json
import os

SECONDS = 0.6 if os.environ.get("VARIANT") == "healthy" else 0.4
FARES = json.dumps({"fares": [{"class": c, "cents": 9900 + 2500 * n} for n, c in enumerate("XVQMBY")]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(FARES), FARES)


class Airline(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.buffer = b""

    def data_received(self, data):
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            _, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            asyncio.get_running_loop().call_later(SECONDS, self.transport.write, ANSWER)


async def main():
    server = await asyncio.get_running_loop().create_server(
        Airline, "127.0.0.1", int(os.environ["PORT"]) + 1, backlog=400
    )
    await server.serve_forever()


asyncio.run(main())
