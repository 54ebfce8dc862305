import os
import random
import threading
import time
from contextlib import contextmanager

VARIANT = os.environ.get("VARIANT", "flawed")
ORDERED = VARIANT != "flawed"


class Account:
    def __init__(self, number):
        self.number = number
        self.cents = 1_000_000
        self.lock = threading.Lock()


class Bank:
    def __init__(self, accounts=24):
        self.accounts = [Account(n) for n in range(accounts)]
        self.random = random.Random(5)
        self.done = 0

    def pick(self):
        return self.random.sample(self.accounts, 2)

    def screen(self, source, target):
        """Sanctions list, at the regulator's."""
        time.sleep(0.45 if VARIANT == "healthy" else 0.3)

    def post(self, account, cents):
        time.sleep(0.002)  # core banking system
        account.cents += cents

    @contextmanager
    def both(self, source, target):
        first, second = source, target
        if ORDERED and target.number < source.number:
            first, second = target, source
        with first.lock:
            self.post(first, 0)
            with second.lock:
                yield

    def transfer(self, source, target, cents):
        self.screen(source, target)
        with self.both(source, target):
            self.post(source, -cents)
            self.post(target, cents)
            self.done += 1
