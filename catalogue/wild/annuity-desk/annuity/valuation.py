"""Present value of one unit a month for life, some years of it guaranteed."""

from functools import lru_cache

from annuity.mortality import LAST_AGE, monthly_death


def payments(sex: str, age: int, rate: float, guaranteed_years: int) -> list[float]:
    """Expected discounted payments, month by month."""
    discount = (1 + rate) ** (-1 / 12)
    alive, worth = 1.0, 1.0
    values = []
    for month in range((LAST_AGE - age) * 12):
        certain = month < guaranteed_years * 12
        values.append(worth if certain else worth * alive)
        alive *= 1 - monthly_death(sex, age + month / 12)
        worth *= discount
    return values


class DirectValuation:
    """Sums the payments, with the rate moved by a basis point either way for the margin."""

    def __init__(self, bumps: int = 7) -> None:
        self._bumps = [(step - bumps // 2) / 10000 for step in range(bumps)]

    def factor(self, sex: str, age: int, rate: float, guaranteed_years: int) -> float:
        return max(sum(payments(sex, age, rate + bump, guaranteed_years)) for bump in self._bumps)


class ColumnValuation(DirectValuation):
    """Keeps what it has worked out, by age, rate and guarantee."""

    def __init__(self, bumps: int = 7) -> None:
        super().__init__(bumps)
        self.factor = lru_cache(maxsize=50_000)(super().factor)


def make_valuation(kind: str) -> DirectValuation:
    return ColumnValuation() if kind == "columns" else DirectValuation()
