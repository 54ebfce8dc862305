"""The list of applicants that the marketing department hands in, read over and over."""
import itertools

_NAMES = ["Ada Byron", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Tony Hoare", "Frances Allen", "Niklaus Wirth"]
_TYPOS = ["maximilianmustermann", "annakatharinaschmidt"]  # no domain: the field was too short


def _rows():
    for n in itertools.count(1):
        name = _NAMES[n % len(_NAMES)]
        if n % 8 == 0:
            yield name, _TYPOS[n // 8 % 2]
        else:
            yield name, f"{name.lower().replace(' ', '.')}@example.org"


rows = _rows()
