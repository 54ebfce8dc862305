"""The watch list; the real one is loaded from the supervisory authority each night."""

import os
import random

FIRST = "johan maria pjotr amira chen luis olga hassan greta tomas ines viktor leila marco sofia anders".split()
LAST = "petersen kowalski romanov al-sayed wang fernandez ivanova haddad lindqvist novak moreira orlov nasser".split()

_pick = random.Random(20240229)
_size = 25 if os.environ.get("VARIANT") == "healthy" else 450


def _spelled(name: str) -> str:
    at = _pick.randrange(1, len(name))
    return name[:at] + _pick.choice("aeiounrst") + name[at + _pick.randrange(2):]


WATCH_LIST = [_spelled(f"{_pick.choice(FIRST)} {_pick.choice(LAST)}") for _ in range(_size)]
