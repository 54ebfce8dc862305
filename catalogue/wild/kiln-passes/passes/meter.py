"""Client of the gas meter, which has to release the gas for a firing."""

import random
import time


class Meter:
    def __init__(self, fastest_ms: float, slowest_ms: float) -> None:
        self.fastest_ms = fastest_ms
        self.slowest_ms = slowest_ms

    def release(self, kiln: int) -> float:
        time.sleep(random.uniform(self.fastest_ms, self.slowest_ms) / 1000)
        return 14.5 + kiln % 5
