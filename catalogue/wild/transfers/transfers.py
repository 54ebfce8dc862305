import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bank import Bank

bank = Bank()


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/standing-orders/next":
            source, target = bank.pick()
            bank.transfer(source, target, 250)
            self.answer(200, {"from": source.number, "to": target.number, "cents": 250})
        elif self.path == "/":
            self.answer(200, {"done": bank.done, "total": sum(a.cents for a in bank.accounts)})
        else:
            self.answer(404, {})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    log_message = lambda self, *args: None  # noqa: E731


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 200


Server(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
