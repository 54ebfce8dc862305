"""Books berths and tells the port authority."""

import threading
import time
from typing import Any

from prometheus_client import Counter, Histogram

from mooring.plan import Plan
from mooring.turns import Turns

RANKS = {"ferry": 0, "cargo": 1, "tanker": 1, "yacht": 2}
HOURS = {"ferry": 2.0, "cargo": 18.0, "tanker": 24.0, "yacht": 12.0}

BOOKED = Counter("berths_bookings_total", "Bookings made", ["vessel_class"])
AUTHORITY = Histogram("berths_authority_seconds", "Calls to the port authority")


class Authority:
    def __init__(self, takes_ms: float) -> None:
        self._takes_s = takes_ms / 1000

    @AUTHORITY.time()
    def announce(self, vessel: str, berth: int, start: float) -> str:
        time.sleep(self._takes_s)  # the authority's answer
        return f"{berth:02d}-{int(start)}-{vessel[:3].upper()}"


class Desk:
    def __init__(self, config: dict[str, Any]) -> None:
        self.plan = Plan(config["berths"])
        self._authority = Authority(config["authority_ms"])
        self._turns = Turns() if config["turns"] == "ranked" else None
        self._lock = threading.Lock()

    def book(self, vessel: str, kind: str, length: float, draught: float) -> dict[str, Any]:
        hours = HOURS[kind]
        if self._turns is not None:
            with self._turns.turn(RANKS[kind], length):
                berth, start = self.plan.place(length, draught, hours)
                reference = self._authority.announce(vessel, berth, start)
        else:
            with self._lock:
                berth, start = self.plan.place(length, draught, hours)
            reference = self._authority.announce(vessel, berth, start)
        BOOKED.labels(kind).inc()
        return {"vessel": vessel, "berth": berth, "from_hour": start, "hours": hours, "reference": reference}
