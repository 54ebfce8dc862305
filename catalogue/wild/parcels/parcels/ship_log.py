"""Logs go to the log store of the company, one line each, and it confirms each batch of lines it has stored."""
import logging
import queue
import socket
import threading


class LogStoreHandler(logging.Handler):
    """Sends each record and waits until the store has it."""

    def __init__(self, address):
        super().__init__()
        self.address = address
        self.link = None

    def emit(self, record):
        self.send([self.format(record)])

    def send(self, lines):
        if self.link is None:
            self.link = socket.create_connection(self.address, timeout=10)
            self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.link.sendall("".join(line + "\n" for line in lines).encode() + b"\n")
        assert self.link.recv(2) == b"ok"


class BatchingHandler(LogStoreHandler):
    """Hands records to a thread that sends what has piled up."""

    def __init__(self, address):
        super().__init__(address)
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.run, daemon=True).start()

    def emit(self, record):
        self.lines.put(self.format(record))

    def run(self):
        while True:
            lines = [self.lines.get()]
            while not self.lines.empty() and len(lines) < 1000:
                lines.append(self.lines.get())
            self.send(lines)


def configure(app):
    kind = LogStoreHandler if app.config["VARIANT"] == "flawed" else BatchingHandler
    handler = kind(app.config["LOGSTORE"])
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logger = logging.getLogger("parcels")
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
