"""Prices of the funds, from the bank's pricing service."""

import time


class FundPrices:
    def __init__(self, takes_ms: float) -> None:
        self._takes_s = takes_ms / 1000

    def price(self, fund: str) -> float:
        time.sleep(self._takes_s)  # the bank's answer
        return 0.99 + len(fund) / 1000
