"""Our quantiles against the server's log, for service times of four laws.

The server draws a time for each request and writes down how long it took. Ours may be above it by the way
there and back, and is never below it.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benches.generators.base import Scene
from benches.generators.loadlens import drive, plan
from benches.measuring import SERVER_CPU, Host, Origin, origin, taken_s
from benches.results import Limit, Results
from benches.works import Work

LAWS = {
    "exponential": "/delay?law=exponential&mean_ms=2",
    "lognormal": "/delay?law=lognormal&median_ms=2&sigma=0.8",
    "pareto": "/delay?law=pareto&scale_ms=1&shape=2.5",
    "bimodal": "/mix?ms=1:17,20:3",  # 85 and 15 %: no quantile asked for lies between the two
}
QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
RATE, SECONDS = 10_000.0, 100  # a million requests
PLACES = 2000
ALLOWED_S, ALLOWED_SHARE = 50e-6, 0.01  # above the server's own time: whichever is more


def measure_all(results: Results, set_number: int, seconds: int, program: Path) -> None:
    """Drive each law once and add how far above and below the server's log our quantiles are, at worst."""
    for name, target in LAWS.items():
        rows = str(round(2 * RATE * seconds))
        with (
            tempfile.TemporaryDirectory(prefix="loadlens-bench-") as folder,
            origin(program, SERVER_CPU, "--log-rows", rows, "--root", target) as server,
        ):
            host = Host()
            ours, servers = _driven(server, Scene(server.port, seconds, Path(folder), program))
            why_not = host.why_not()
        above, below = worst(ours, servers)
        for what, value in (("above", above), ("below", below)):
            results.limits.append(Limit(f"law_{name}_{what}", set_number, value, why_not))
        results.write()
        summary = f"{above:.3g} of what is allowed above the server's quantiles, {below:.3g} of them below"
        summary += f"; left out: {why_not}" if why_not else ""
        print(f"{name}: {len(servers)} requests, {summary}", file=sys.stderr)


def _driven(server: Origin, scene: Scene) -> tuple[dict[str, float], list[float]]:
    """Our quantiles of response times, and every time that the server wrote down, sorted; seconds."""
    law_plan = plan(Work("law", PLACES, rate=RATE), scene)
    (stream,) = drive(law_plan, scene, 3 * scene.seconds + 60)["streams"]
    times = stream["response_time_s"]
    return {name: times[name]["value"] for name in QUANTILES}, taken_s(server.log())


def worst(ours: Mapping[str, float], servers: Sequence[float]) -> tuple[float, float]:
    """Our quantiles above the server's, in units of what is allowed, and below them, as a share; at worst."""
    above = below = 0.0
    for name, share in QUANTILES.items():
        mine, true = ours[name], servers[math.ceil(share * len(servers)) - 1]
        above = max(above, (mine - true) / max(ALLOWED_S, ALLOWED_SHARE * true))
        below = max(below, (true - mine) / true)
    return above, below
