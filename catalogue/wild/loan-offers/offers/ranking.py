"""Banks and their terms."""

from typing import Any

BANKS = [(f"bank-{n:02d}", 2.9 + (n * 37 % 23) / 10, 1 + n % 4) for n in range(30)]


def monthly(amount: int, months: int, yearly_percent: float) -> float:
    rate = yearly_percent / 1200
    return amount * rate / (1 - (1 + rate) ** -months)


def rank(amount: int, months: int, grade: str) -> list[dict[str, Any]]:
    surcharge = "ABCD".index(grade) * 0.8
    offers = [
        {"bank": bank, "percent": round(percent + surcharge, 2), "monthly": round(monthly(amount, months, percent + surcharge), 2)}
        for bank, percent, risk in BANKS
        if risk >= "ABCD".index(grade)
    ]
    return sorted(offers, key=lambda offer: offer["monthly"])[:5]
