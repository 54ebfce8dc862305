"""The street register: towns and their streets."""

import random
from dataclasses import dataclass

STEMS = "Linden Ahorn Millbrook Castle Harbour Birken Kirch Church Station Foundry Orchard Meadow Quarry Weaver".split()
MIDDLES = ["", "", "er", "field", "gate", "hof", "wood", "bridge"]
ENDS = ["walk", "strasse", " Lane", " Road", "weg", "allee", " Street", " Close"]
TOWNS = 24
STREETS_PER_TOWN = 600


@dataclass(frozen=True)
class Street:
    id: int
    town: int
    name: str


def _build() -> dict[int, list[Street]]:
    rng = random.Random(4711)
    towns: dict[int, list[Street]] = {}
    number = 0
    for town in range(TOWNS):
        streets = []
        for _ in range(STREETS_PER_TOWN):
            number += 1
            name = rng.choice(STEMS) + rng.choice(MIDDLES) + rng.choice(ENDS)
            streets.append(Street(number, town, name))
        towns[town] = streets
    return towns


_towns = _build()
_by_id = {street.id: street for streets in _towns.values() for street in streets}


def get(street_id: int) -> Street | None:
    return _by_id.get(street_id)


def shortlist(town: int, name: str, most: int) -> list[Street]:
    """Streets of the town, those that begin like the name first."""
    streets = _towns.get(town, [])
    if most >= len(streets):
        return streets
    first = name[:1].upper()
    near = [street for street in streets if street.name.startswith(first)]
    if len(near) >= most:
        return near[:most]
    return near + [street for street in streets if not street.name.startswith(first)][: most - len(near)]
