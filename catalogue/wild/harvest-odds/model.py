"""Season model: how many crates a plot yields, by simulated weeks of growth."""

import random

WEEKS = 22
VARIETIES = {
    "elstar": {"rate": 1.12, "frost_loss": 0.34, "bins": 38.0},
    "conference": {"rate": 1.08, "frost_loss": 0.27, "bins": 44.0},
    "boskoop": {"rate": 1.15, "frost_loss": 0.41, "bins": 31.0},
}


def season(rng: random.Random, variety: dict, trees: int, chill: float) -> float:
    load = variety["bins"] * trees / 100
    for week in range(WEEKS):
        warmth = rng.gauss(0.6 + 0.02 * week - chill, 0.18)
        if week < 6 and warmth < 0.25:
            load *= 1 - variety["frost_loss"] * (0.25 - warmth)
        else:
            load *= 1 + (variety["rate"] - 1) * max(warmth, 0.0) * 0.1
    return load


def odds(variety_name: str, trees: int, chill: float, seasons: int, seed: int) -> dict:
    variety = VARIETIES[variety_name]
    rng = random.Random(seed)
    crates = sorted(season(rng, variety, trees, chill) for _ in range(seasons))
    return {
        "seasons": seasons,
        "low": round(crates[len(crates) // 10], 1),
        "median": round(crates[len(crates) // 2], 1),
        "high": round(crates[len(crates) * 9 // 10], 1),
    }
