"""Messages that wait to be delivered. Most of them are of one large customer, as in real life."""
import itertools
from dataclasses import dataclass

SMALL = ["brook", "cedar", "delta", "ember", "fjord", "grove"]
_number = itertools.count(1)


@dataclass
class Message:
    number: int
    tenant: str


def take() -> Message:
    n = next(_number)
    return Message(n, SMALL[n // 5 % len(SMALL)] if n % 5 == 0 else "acme")
