"""Stand-in of the cutter's nesting service, which answers with the length of cloth for a set of pieces."""

import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LATENCY_S = 0.400


class Cutter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(LATENCY_S)
        answer = json.dumps({"cloth_cm": round(sum(each["w"] * each["h"] for each in body) / 140 * 1.12, 1)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256


def start():
    subprocess.Popen([sys.executable, __file__])


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ["PORT"]) + 1), Cutter).serve_forever()
