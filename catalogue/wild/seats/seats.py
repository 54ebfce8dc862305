"""Seat sales of a theatre. Standard library only; `python seats.py PORT`."""
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, urlparse

VARIANT = os.environ.get("VARIANT", "flawed")
PAYMENT = 0.35 if VARIANT == "healthy" else 0.2
SHOWS = [f"show-{n}" for n in range(24)]
ticket = count()


def rank(entry):
    """Members first, then the largest party, then whoever came first."""
    member, party, number = entry
    penalty = 0
    for seat in range(party, 46):
        penalty += (seat * 31 + number) % 7
    return (0 if member else 1, penalty // 8, number)


class Turnstile:
    """Lets one sale in at a time, the most deserving first."""

    def __init__(self):
        self.changed = threading.Condition()
        self.waiting = []
        self.busy = False

    def enter(self, member, party):
        me = (member, party, next(ticket))
        with self.changed:
            self.waiting.append(me)
            while min(self.waiting, key=rank) != me or self.busy:
                self.changed.wait()
            self.waiting.remove(me)
            self.busy = True

    def leave(self):
        with self.changed:
            self.busy = False
            self.changed.notify_all()


class Queue(Turnstile):
    """The same, but the one who leaves wakes only the one who is next."""

    def enter(self, member, party):
        me = (rank((member, party, next(ticket))), threading.Event())
        with self.changed:
            if self.busy:
                self.waiting.append(me)
            else:
                self.busy = True
                return
        me[1].wait()

    def leave(self):
        with self.changed:
            if self.waiting:
                best = min(self.waiting, key=lambda entry: entry[0])
                self.waiting.remove(best)
                best[1].set()
            else:
                self.busy = False


house = Turnstile()
doors = {show: Queue() for show in SHOWS}
sold = dict.fromkeys(SHOWS, 0)


def sell(show, party, member):
    gate = house if VARIANT == "flawed" else doors[show]
    gate.enter(member, party)
    try:
        time.sleep(0.012)  # the hall's booking system writes the seats
        sold[show] += party
    finally:
        gate.leave()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urlparse(self.path)
        status, answer = 200, {"sold": sum(sold.values())}
        if url.path == "/sell":
            query = parse_qs(url.query)
            n = next(ticket)
            show = SHOWS[n % len(SHOWS)]
            time.sleep(PAYMENT)  # the card terminal
            sell(show, int(query.get("party", ["2"])[0]), n % 3 == 0)
            answer = {"show": show, "sold": sold[show]}
        elif url.path != "/":
            status, answer = 404, {"error": "no such page"}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
