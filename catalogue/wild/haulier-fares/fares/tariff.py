"""The printed tariff of the season."""

from __future__ import annotations

import zlib

PER_PALLET = ((5, 62.0), (12, 51.5), (24, 44.0), (33, 39.0))


def distance_km(start: str, end: str) -> int:
    return 80 + zlib.crc32(f"{start}>{end}".encode()) % 1100


def printed(start: str, end: str, pallets: int) -> float:
    rate = next((price for limit, price in PER_PALLET if pallets <= limit), PER_PALLET[-1][1])
    return pallets * rate + distance_km(start, end) * 0.83
