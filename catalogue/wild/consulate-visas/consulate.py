"""Visa appointments of a consulate: the most urgent applicant who waits is booked next."""

import hashlib
import itertools
import json
import os
import threading
import time
from contextlib import contextmanager
from datetime import date, timedelta

VARIANT = os.environ["VARIANT"]
COUNTERS = 4
MINUTES = range(8 * 60, 16 * 60, 5)


class Desk:
    """One applicant at a time, in the order of urgency, then of arrival."""

    def __init__(self):
        self._changed = threading.Condition()
        self._waiting = []
        self._busy = False
        self._arrivals = itertools.count()

    def _is_next(self, applicant):
        return not self._busy and min(self._waiting) == applicant

    @contextmanager
    def turn(self, urgency):
        applicant = (-urgency, next(self._arrivals))
        with self._changed:
            self._waiting.append(applicant)
            while not self._is_next(applicant):
                self._changed.wait()
            self._waiting.remove(applicant)
            self._busy = True
        try:
            yield
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()


class Diary:
    """Slots of the counters, handed out in order; each booking is sealed for the letter."""

    def __init__(self):
        self._next = 0
        self._lock = threading.Lock()

    def take(self):
        with self._lock:
            number = self._next
            self._next += 1
        day, rest = divmod(number, COUNTERS * len(MINUTES))
        minute, counter = divmod(rest, COUNTERS)
        return date(2027, 1, 4) + timedelta(days=day % 360), MINUTES[minute], counter + 1


def register(_):
    """The ministry's register of bookings, over the network."""
    time.sleep(0.002)


def passport(number):
    """Look the passport up in the register of the ministry, over the network."""
    time.sleep(0.150 if VARIANT == "healthy" else 0.010)
    return {"number": number, "urgency": int(hashlib.sha1(number.encode()).hexdigest(), 16) % 3}


desk = Desk()
diary = Diary()


def booked(number):
    applicant = passport(number)
    if VARIANT == "flawed":
        with desk.turn(applicant["urgency"]):
            slot = diary.take()
            register(slot)
    else:
        slot = diary.take()
        register(slot)
    day, minute, counter = slot
    seal = hashlib.sha256(f"{number}{day}{minute}{counter}".encode()).hexdigest()[:10]
    return {
        "passport": number,
        "day": day.isoformat(),
        "time": f"{minute // 60:02d}:{minute % 60:02d}",
        "counter": counter,
        "seal": seal,
    }


def application(environ, start_response):
    parts = environ["PATH_INFO"].strip("/").split("/")
    if len(parts) == 2 and parts[0] == "appointments" and parts[1].isalnum():
        status, body = "200 OK", booked(parts[1])
    else:
        status, body = "404 Not Found", {"error": "no such page"}
    data = json.dumps(body).encode()
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]
