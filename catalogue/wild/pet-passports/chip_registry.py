"""Stand-in of the national chip registry, which speaks HTTPS only."""

import asyncio
import json
import os
import ssl
import zlib

LATENCY_S = 0.4 if os.environ["VARIANT"] == "healthy" else 0.04
SPECIES = ("dog", "cat", "ferret")


def record(chip: str) -> bytes:
    """Return the registry's record of a chip."""
    seed = zlib.crc32(chip.encode())
    return json.dumps(
        {
            "chip": chip,
            "species": SPECIES[seed % 3],
            "born": f"20{18 + seed % 8}-0{1 + seed % 9}-1{seed % 10}",
            "rabies_until": f"2027-0{1 + seed % 8}-2{seed % 9}",
            "keeper": f"K{seed % 90000:05d}",
        }
    ).encode()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            close = b"connection: close" in head.lower()
            await asyncio.sleep(LATENCY_S)
            body = record(path.rsplit("/", 1)[-1])
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                + (b"Connection: close\r\n" if close else b"")
                + b"Content-Length: %d\r\n\r\n" % len(body)
                + body
            )
            await writer.drain()
            if close:
                break
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def main() -> None:
    """Listen on the port after the service's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = os.environ["TMPDIR"]
    context.load_cert_chain(f"{folder}/registry.pem", f"{folder}/registry.key")
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]) + 1, ssl=context, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
