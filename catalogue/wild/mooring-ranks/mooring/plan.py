"""The plan: which berth is free from when."""

from dataclasses import dataclass


@dataclass
class Berth:
    number: int
    length: float
    depth: float
    free_from: float = 0.0
    bookings: int = 0


class NoBerth(Exception):
    pass


class Plan:
    def __init__(self, berths: int) -> None:
        self._berths = [Berth(n + 1, 40 + n * 37 % 260, 4 + n * 13 % 11) for n in range(berths)]

    def place(self, length: float, draught: float, hours: float) -> tuple[int, float]:
        """Book the berth that is free first, the shortest of these; return its number and the time."""
        fitting = [each for each in self._berths if each.length >= length and each.depth >= draught + 0.5]
        if not fitting:
            raise NoBerth(f"no berth for {length} m and a draught of {draught} m")
        berth = min(fitting, key=lambda each: (each.free_from, each.length))
        start = berth.free_from
        berth.free_from += hours
        berth.bookings += 1
        return berth.number, start

    def overview(self) -> list[dict[str, float]]:
        return [
            {"berth": each.number, "length": each.length, "depth": each.depth, "free_from": each.free_from}
            for each in self._berths
        ]
