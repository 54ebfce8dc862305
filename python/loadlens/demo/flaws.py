"""The flaws of the demo services: what is wrong, the lines that cause it, and the findings that name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.model.explanation import Explanation

SERVICES: Final = Path(__file__).parent / "services"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a service's source."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Flaw:
    """A service and the answer to what limits it."""

    name: str
    file: str  # below `services`
    path: str  # of the request to explain
    service: str  # purpose, as on a list that gives nothing away
    truth: str
    rule: str  # the finding that names it
    code: tuple[str, ...]  # beginnings of the lines that cause it

    @property
    def source(self) -> Path:
        """The service's program."""
        return SERVICES / self.file

    def source_lines(self) -> tuple[SourceLine, ...]:
        """Return the lines of the source that cause the flaw."""
        lines = self.source.read_text(encoding="utf-8").splitlines()
        return tuple(
            SourceLine(number, line)
            for number, line in enumerate(lines, 1)
            if line.strip().startswith(self.code)
        )

    def is_named_by(self, answer: Explanation) -> bool:
        """True if an answer names this flaw as the limit."""
        return answer.limit == self.rule


_ALL: Final = (
    Flaw(
        name="blocked-loop",
        file="invoices.py",
        path="/invoices",
        service="invoices for callers with an API key",
        truth="Each request checks its API key with 40,000 rounds of PBKDF2 on the event loop. While a key "
        "is checked, the process answers nothing else.",
        rule="eventloop.blocked",
        code=("ROUNDS =", "digest = hashlib.pbkdf2_hmac(", "if not is_valid("),
    ),
    Flaw(
        name="small-pool",
        file="orders.py",
        path="/orders",
        service="open orders from a database",
        truth="The pool has 3 connections, and a query occupies one for 15 ms: at most 200 queries per "
        "second, whatever the load.",
        rule="db.pool",
        code=("POOL_SIZE =", "QUERY_S =", "connection = self._free.get()", "with pool.connection()"),
    ),
    Flaw(
        name="lock",
        file="stock.py",
        path="/stock",
        service="stock and price of an article",
        truth="The lock of the stock is held while the supplier's service answers, which takes 8 ms: one "
        "request at a time, at most 125 per second.",
        rule="db.lock",
        code=("SUPPLIER_S =", "with locked_stock()", "cents = price_of("),
    ),
    Flaw(
        name="slow-path",
        file="featured.py",
        path="/featured",
        service="a featured product",
        truth="The cache holds 900 of 1,000 products, so one request in ten misses it and waits 120 ms for "
        "the catalogue.",
        rule="mixture.slow-path",
        code=("PRODUCTS =", "CACHE_S, CATALOGUE_S", "await asyncio.sleep(CATALOGUE_S)"),
    ),
)
FLAWS: Final[Mapping[str, Flaw]] = {flaw.name: flaw for flaw in _ALL}
