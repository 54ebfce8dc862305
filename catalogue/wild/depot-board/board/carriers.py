"""Client of the carriers' tracking service."""

import random
import time


class Carriers:
    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s

    def next_arrivals(self, depot: str) -> list[str]:
        time.sleep(self.wait_s * random.uniform(0.85, 1.15))
        first = sum(map(ord, depot)) % 50
        return [f"HX{first + n:03d}" for n in range(3)]
