#!/usr/bin/env python3
"""Keeps the receipts of a till, so that none is lost when the power goes: receipts.py PORT."""
import json
import os
import sys
import tempfile
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VARIANT = os.environ.get("VARIANT", "flawed")
SIGNING_SECONDS = 0.4 if VARIANT == "healthy" else 0.25
FOLDER = tempfile.mkdtemp(prefix="receipts-")
PAGE = b"%PDF-1.4 receipt " + bytes(48 * 1024)


class Journal:
    """Append-only file; a receipt counts once it is on the disk."""

    def __init__(self, name):
        self.file = open(os.path.join(FOLDER, name), "ab", buffering=0)
        self.lock = threading.Lock()

    def append(self, entry):
        with self.lock:
            for part in (b"begin %d\n" % len(entry), entry, b"\ncommit\n"):
                self.file.write(part)
                os.fsync(self.file.fileno())  # now it is safe


class GroupJournal(Journal):
    """One write and one fsync for all entries that wait."""

    def __init__(self, name):
        super().__init__(name)
        self.pending = []
        self.more = threading.Condition()
        threading.Thread(target=self.flush, daemon=True).start()

    def append(self, entry):
        done = threading.Event()
        with self.more:
            self.pending.append((entry, done))
            self.more.notify()
        done.wait()

    def flush(self):
        while True:
            with self.more:
                while not self.pending:
                    self.more.wait()
                batch, self.pending = self.pending, []
            self.file.write(b"".join(b"begin %d\n%s\ncommit\n" % (len(entry), entry) for entry, _ in batch))
            os.fsync(self.file.fileno())
            for _, done in batch:
                done.set()


journal = (Journal if VARIANT == "flawed" else GroupJournal)("journal")


class Till(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path.startswith("/receipts/new"):
            time.sleep(SIGNING_SECONDS)  # the tax authority's signature
            journal.append(PAGE)
            self.reply(HTTPStatus.CREATED, {"stored": True, "bytes": len(PAGE)})
        elif self.path == "/":
            self.reply(HTTPStatus.OK, {"journal": os.path.getsize(journal.file.name)})
        else:
            self.reply(HTTPStatus.NOT_FOUND, {})

    def reply(self, status, answer):
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Till).serve_forever()
