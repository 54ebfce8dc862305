"""The ERP, as far as this service sees it (run as a program: a stand-in that is slow and has no limit)."""
import http.client
import json
import threading
from urllib.parse import urlsplit

from .conf import Conf

_connection = threading.local()


def stock_of(article: str) -> dict:
    connection = getattr(_connection, "open", None)
    if connection is None:
        connection = _connection.open = http.client.HTTPConnection(urlsplit(Conf.erp_url).netloc, timeout=30)
    connection.request("GET", f"/stock/{article}")
    return json.loads(connection.getresponse().read())


if __name__ == "__main__":
    import asyncio

    async def answer(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                article = head.split()[1].rpartition(b"/")[2]
                await asyncio.sleep(Conf.erp_seconds)
                text = b'{"article": "%s", "bins": {"A-01": 12, "C-17": 3}, "on_order": 40}' % article
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run():
        server = await asyncio.start_server(answer, "127.0.0.1", urlsplit(Conf.erp_url).port, backlog=300)
        await server.serve_forever()

    asyncio.run(run())
