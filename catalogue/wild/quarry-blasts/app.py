"""Blast planner of a quarry: the charge of each hole and the shaking it causes at the nearest houses."""

import itertools
import math
import os
import threading
from dataclasses import dataclass

import requests
from flask import Flask, abort, jsonify, request

VARIANT = os.environ.get("VARIANT", "mended")
SURVEY = f"http://127.0.0.1:{int(os.environ['PORT']) + 1}"
HOUSES = [(420.0, 35.0), (510.0, -120.0), (388.0, 260.0), (690.0, 14.0)]
ROWS, HOLES = (3, 6) if VARIANT == "healthy" else (7, 12)
LIMIT_MM_S = 5.0

app = Flask(__name__)
local = threading.local()
benches = itertools.count(1)


@dataclass(frozen=True)
class Hole:
    row: int
    x: float
    y: float
    charge: float
    delay_ms: float


def survey() -> requests.Session:
    if not hasattr(local, "session"):
        local.session = requests.Session()
        local.session.trust_env = False
    return local.session


def rock_of(bench: int) -> dict[str, float]:
    answer = survey().get(f"{SURVEY}/rock/{bench}", timeout=10)
    if answer.status_code != 200:
        abort(502)
    return answer.json()


def pattern(density: float, burden: float) -> list[Hole]:
    spacing = burden * 1.15
    return [
        Hole(
            row=row,
            x=row * burden,
            y=(column - HOLES / 2) * spacing,
            charge=density * burden * spacing * 4.1 * (1.0 + 0.05 * math.sin(row + column)),
            delay_ms=row * 42.0 + column * 17.0,
        )
        for row in range(ROWS)
        for column in range(HOLES)
    ]


def velocity(hole: Hole, house: tuple[float, float], damping: float) -> float:
    distance = math.hypot(house[0] - hole.x, house[1] - hole.y)
    scaled = distance / math.sqrt(hole.charge)
    return 1143.0 * math.pow(scaled, -1.6) * damping


def worst(holes: list[Hole], damping: float) -> float:
    """Highest velocity at any house, of the holes that fire within 8 ms of each other."""
    peak = 0.0
    for house in HOUSES:
        waves = sorted((hole.delay_ms, velocity(hole, house, damping)) for hole in holes)
        start = 0
        for end, (when, _) in enumerate(waves):
            while when - waves[start][0] > 8.0:
                start += 1
            together = math.sqrt(sum(speed * speed for _, speed in waves[start : end + 1]))
            peak = max(peak, together)
    return peak


def plan(bench: int) -> dict[str, object]:
    rock = rock_of(bench)
    burden = 4.6
    tries = 0
    while True:
        tries += 1
        holes = pattern(rock["density"], burden)
        shaking = worst(holes, rock["damping"])
        if shaking <= LIMIT_MM_S or tries == 12:
            break
        burden *= 0.94
    kilos = sum(hole.charge for hole in holes)
    return {"bench": bench, "holes": len(holes), "burden": round(burden, 2), "kg": round(kilos), "mm_s": round(shaking, 2)}


@app.get("/plans/next")
def next_plan():
    return jsonify(plan(request.args.get("bench", type=int) or next(benches)))


@app.get("/up")
def up():
    return "up\n"
