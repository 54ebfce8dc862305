"""Edit distance between names."""

import unicodedata
from typing import NamedTuple


class Hit(NamedTuple):
    distance: int
    name: str


def plain(name: str) -> str:
    """Return the name in lower case and without accents."""
    letters = unicodedata.normalize("NFKD", name.lower())
    return "".join(letter for letter in letters if letter.isalpha() or letter == " ")


def distance(one: str, other: str) -> int:
    """Return how many letters have to be changed, added or removed."""
    before = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        now = [row]
        for column, right in enumerate(other, 1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (left != right)))
        before = now
    return before[-1]


def closest(name: str, names: list[str], limit: int = 3) -> list[Hit]:
    """Return the names of the list that are closest."""
    wanted = plain(name)
    return sorted(Hit(distance(wanted, other), other) for other in names)[:limit]
