"""Similarity of street names."""

import re

HOUSE = re.compile(r"\s+(\d+\s?[a-z]?)$", re.IGNORECASE)
REPLACED = (("straße", "strasse"), ("str.", "strasse"), ("rd.", "road"), ("ln.", "lane"))


def split_house(text: str) -> tuple[str, str | None]:
    found = HOUSE.search(text.strip())
    if found is None:
        return text.strip(), None
    return text[: found.start()].strip(), found.group(1)


def normalise(name: str) -> str:
    name = name.lower()
    for old, new in REPLACED:
        name = name.replace(old, new)
    return re.sub(r"[^a-z ]", "", name)


def distance(left: str, right: str) -> int:
    """Edit distance with transposed neighbours."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        older, before, row = before, row, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
    return row[-1]


def rank(name: str, candidates: list[tuple[int, str]], min_score: float) -> list[tuple[int, float]]:
    wanted = normalise(name)
    scored = []
    for street_id, street in candidates:
        other = normalise(street)
        score = 1.0 - distance(wanted, other) / max(len(wanted), len(other), 1)
        if score >= min_score:
            scored.append((street_id, round(score, 3)))
    scored.sort(key=lambda pair: -pair[1])
    return scored[:5]
