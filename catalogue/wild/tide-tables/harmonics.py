"""Tide heights from the harmonic constituents of a station."""

import math
from dataclasses import dataclass

# degrees per hour
SPEEDS = {"M2": 28.984104, "S2": 30.0, "N2": 28.439730, "K1": 15.041069, "O1": 13.943036, "M4": 57.968208}


@dataclass(frozen=True)
class Station:
    number: int
    name: str
    mean: float
    parts: tuple[tuple[float, float, float], ...]  # amplitude, speed in radians per hour, phase


def _station(number: int) -> Station:
    parts = tuple(
        (1.9 / (1 + rank) + number % 5 / 10, math.radians(speed), math.radians((number * 37 + rank * 71) % 360))
        for rank, speed in enumerate(SPEEDS.values())
    )
    return Station(number, f"Gauge {number:03d}", 3.1 + number % 7 / 10, parts)


STATIONS = {number: _station(number) for number in range(1, 41)}


def height(station: Station, hour: float) -> float:
    return station.mean + sum(size * math.cos(speed * hour + phase) for size, speed, phase in station.parts)


def table(station: Station, start: float, hours: int) -> list[dict[str, float]]:
    return [{"t": start + step, "m": round(height(station, start + step), 2)} for step in range(hours)]
