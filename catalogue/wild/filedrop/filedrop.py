"""Drop box for partners' files: a download joins the parts of a file as they were uploaded.

    python filedrop.py PORT
"""
import contextlib
import os
import sys
import tempfile
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

healthy = os.environ.get("VARIANT") == "healthy"
root = Path(tempfile.mkdtemp(prefix="drop-"))
PARTS = 4

for name in ("prices", "stock", "orders"):
    for part in range(PARTS):
        (root / f"{name}.{part}").write_bytes(f"{name};{part};".encode() * 900)


def virus_scan(handles):
    """The scanner is on another host and reads the parts from there."""
    time.sleep(0.45 if healthy else 0.3)
    return all(not handle.closed for handle in handles)


class Drop(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.strip("/")
        if not name:
            return self.reply(200, "\n".join(sorted({path.stem for path in root.iterdir()})).encode())
        if not (root / f"{name}.0").exists():
            return self.reply(404, b"no such file\n")
        try:
            with contextlib.ExitStack() as stack:
                parts = [stack.enter_context((root / f"{name}.{n}").open("rb")) for n in range(PARTS)]
                if virus_scan(parts):
                    return self.reply(200, b"".join(part.read() for part in parts))
                return self.reply(451, b"infected\n")
        except OSError as error:
            return self.reply(500, f"{error.strerror}\n".encode())

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):
        sys.stderr.write(f"{self.log_date_time_string()} {format % args}\n")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[1])), Drop).serve_forever()
