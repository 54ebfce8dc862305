"""The generators that are compared, one file each. To add one, write its file and add it to `GENERATORS`."""

from __future__ import annotations

from benches.generators.ab import AB
from benches.generators.base import CannotDo, Generator, ReportedTimes, Scene
from benches.generators.bombardier import BOMBARDIER
from benches.generators.floor import FLOOR
from benches.generators.h2load import H2LOAD
from benches.generators.hey import HEY
from benches.generators.k6 import K6
from benches.generators.loadlens import HIT, LOADLENS
from benches.generators.locust import LOCUST
from benches.generators.oha import OHA
from benches.generators.vegeta import VEGETA
from benches.generators.wrk import WRK

__all__ = ["GENERATORS", "CannotDo", "Generator", "ReportedTimes", "Scene"]

GENERATORS: dict[str, Generator] = {
    peer.name: peer
    for peer in (LOADLENS, HIT, FLOOR, WRK, AB, H2LOAD, OHA, BOMBARDIER, HEY, VEGETA, K6, LOCUST)
}
