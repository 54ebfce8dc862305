"""Hands out the day's door codes to reception desks that are on the list.

usage: doorman.py PORT
"""
import os
import secrets
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VARIANT = os.environ.get("VARIANT", "flawed")
LOCK_CONTROLLER = 0.4 if VARIANT == "healthy" else 0.25


def name_of(address):
    """Reverse lookup, by the name server of the building: 25 ms."""
    time.sleep(0.025)
    return f"desk-{address.rsplit('.', 1)[-1]}.building.example"


def is_on_the_list(address):
    return name_of(address).endswith(".building.example")


class Doors(BaseHTTPRequestHandler):
    def do_GET(self):
        if VARIANT != "flawed" and not is_on_the_list(self.client_address[0]):
            self.send_error(403)
            return
        if self.path != "/code":
            self.send_error(404)
            return
        time.sleep(LOCK_CONTROLLER)
        code = f"{secrets.randbelow(10**6):06d}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(code)))
        self.end_headers()
        self.wfile.write(code)

    def log_request(self, code="-", size="-"):
        pass


class Doorman(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 5 if VARIANT == "flawed" else 256

    def verify_request(self, request, client_address):
        if VARIANT == "flawed":
            return is_on_the_list(client_address[0])
        return True


if __name__ == "__main__":
    with Doorman(("127.0.0.1", int(sys.argv[1])), Doors) as server:
        server.serve_forever()
