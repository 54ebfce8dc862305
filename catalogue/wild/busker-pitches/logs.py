"""Where the service's log goes: the collector of the city's IT department."""

from __future__ import annotations

import logging
import os
import queue
import threading
from logging.handlers import HTTPHandler, QueueHandler

import urllib3

COLLECTOR = f"127.0.0.1:{int(os.environ['PORT']) + 2}"
VARIANT = os.environ["VARIANT"]
BATCH = 500
EVERY_S = 0.5


class Shipper(threading.Thread):
    """Posts records in batches, in the background."""

    def __init__(self, records: queue.Queue[logging.LogRecord]) -> None:
        super().__init__(name="shipper", daemon=True)
        self.records = records
        self.ended = threading.Event()
        self.pool = urllib3.PoolManager(maxsize=1, retries=False)

    def run(self) -> None:
        while not self.ended.wait(EVERY_S):
            while lines := self.take():
                body = "\n".join(lines).encode()
                self.pool.request("POST", f"http://{COLLECTOR}/records/bulk", body=body, timeout=5.0)

    def take(self) -> list[str]:
        lines: list[str] = []
        while len(lines) < BATCH:
            try:
                lines.append(self.records.get_nowait().getMessage())
            except queue.Empty:
                break
        return lines


shipper: Shipper | None = None


def handler() -> logging.Handler:
    global shipper
    if VARIANT == "flawed":
        return HTTPHandler(COLLECTOR, "/records", method="POST")
    records: queue.Queue[logging.LogRecord] = queue.Queue(maxsize=50_000)
    shipper = Shipper(records)
    shipper.start()
    return QueueHandler(records)


def configure() -> None:
    log = logging.getLogger("busker")
    log.setLevel(logging.INFO)
    log.propagate = False
    log.addHandler(handler())


def stop() -> None:
    if shipper is not None:
        shipper.ended.set()
