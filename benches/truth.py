"""What generators say of a service whose times are known.

Two services: one that takes 10 ms and, exactly every 50th time, 200 ms; and one that answers at once but
freezes for a second in every ten. What is true follows from that by hand; what each generator printed
stands beside it. Closed loops are shown too: they cannot see a freeze as users with a rate of their own do.

    python benches/truth.py [--seconds 10] [--generators loadlens,wrk,ab]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from generators import Scene, Work, ab, loadlens, loadlens_plan, scratch_folder, why_missing, wrk
from measuring import ROOT, Origin, find_origin, origin

FREEZE_S, PERIOD_S = 1.0, 10.0
RATE = 1000.0
UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


@dataclass(frozen=True, slots=True)
class Told:
    """What a generator printed, in seconds."""

    p50_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, slots=True)
class Case:
    """A service of known times and the load that it is given."""

    name: str
    arguments: tuple[str, ...]  # of the origin
    connections: int
    rate: float | None  # none: closed loop
    truth: Told


def cases() -> list[Case]:
    """Expected values by hand.

    Delays: 98 % take 10 ms, 2 % take 200 ms. Freeze under a steady rate: a tenth of the requests wait
    between 0 and 1 s, evenly, so the hundredth part that waits longest waits at least 0.9 s.
    """
    delays = ("--root", "/mix?ms=10:49,200:1")
    freeze = ("--freeze-ms", str(FREEZE_S * 1e3), "--freeze-every-ms", str(PERIOD_S * 1e3))
    first = ("--freeze-first-ms", str(PERIOD_S * 400))
    return [
        Case("delays, closed", delays, 20, None, Told(0.010, 0.200, 0.200)),
        Case("delays, open", delays, 1000, RATE, Told(0.010, 0.200, 0.200)),
        Case("freeze, open", (*freeze, *first), 2000, RATE, Told(0.0, 0.9, FREEZE_S)),
        Case("freeze, closed", (*freeze, *first), 10, None, Told(0.0, 0.9, FREEZE_S)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=int, default=10, help="length of each run (default 10: one freeze)")
    parser.add_argument("--generators", default="", help="such as loadlens,wrk")
    options = parser.parse_args()
    asked = [name for name in options.generators.split(",") if name] or list(READERS)
    program = find_origin()
    rows = []
    with scratch_folder() as folder:
        for name in asked:
            why = why_missing(name) if name in READERS else "unknown"
            if why is not None:
                print(f"skipped {name}: {why}", file=sys.stderr)
                continue
            for case in cases():
                if case.rate is not None and name != "loadlens":
                    continue  # wrk and ab know no rate
                with origin(program, 0, *case.arguments) as server:
                    scene = Scene(server.port, options.seconds, 1, program, Path(folder))
                    rows.append((case, name, tell(name, case, scene, server)))
    print(table(rows))
    path = ROOT / "benches" / "results" / f"truth-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.parent.mkdir(exist_ok=True)
    said = [
        {"case": case.name, "generator": name, "told": asdict(told), "truth": asdict(case.truth)}
        for case, name, told in rows
    ]
    path.write_text(json.dumps({"schema_version": 1, "rows": said}, indent=1) + "\n")
    print(f"\nwritten to {path.relative_to(ROOT)}")
    return 0


def tell(name: str, case: Case, scene: Scene, server: Origin) -> Told:
    """Run one generator on one case and read what it prints."""
    work = Work(case.name.replace(", ", "-"), case.connections)
    if name == "loadlens" and case.rate is not None:
        command = open_loop(work, case.rate, scene)
    else:
        command = RECIPES[name](work, scene) or []
    if name == "wrk":
        command.insert(1, "--latency")
    done = subprocess.run(
        ["taskset", "-c", str(scene.cpu), *command],
        capture_output=True,
        text=True,
        timeout=3 * scene.seconds + 20,
        check=True,
    )
    return READERS[name](done.stdout)


def open_loop(work: Work, rate: float, scene: Scene) -> list[str]:
    """Our engine at a rate, which users keep whatever the server does."""
    plan = loadlens_plan(work, scene)
    streams = plan["streams"]
    assert isinstance(streams, list)
    streams[0]["workload"] = {
        "kind": "open",
        "rate_per_s": rate,
        "arrivals": "constant",
        "max_in_flight": work.connections,
        "overflow": "queue",
    }
    plan["drain_ns"] = 2_000_000_000
    path = scene.folder / f"{work.name}.json"
    path.write_text(json.dumps(plan))
    return [sys.executable, "-S", str(ROOT / "benches" / "drive.py"), str(path)]


def read_loadlens(text: str) -> Told:
    times = json.loads(text)["streams"][0]["response_time_s"]
    return Told(times["p50"]["value"], times["p99"]["value"], times["max"])


def read_wrk(text: str) -> Told:
    def seconds(pattern: str) -> float:
        found = re.search(pattern + r"\s+([\d.]+)(us|ms|s|m)\b", text)
        assert found is not None, text
        return float(found[1]) * UNITS_S[found[2]]

    return Told(seconds(r"50%"), seconds(r"99%"), seconds(r"Latency\s+\S+\s+\S+"))


def read_ab(text: str) -> Told:
    def seconds(percent: int) -> float:
        found = re.search(rf"^\s*{percent}%\s+(\d+)", text, re.MULTILINE)
        assert found is not None, text
        return int(found[1]) / 1e3

    return Told(seconds(50), seconds(99), seconds(100))


RECIPES = {"loadlens": loadlens, "wrk": wrk, "ab": ab}
READERS: dict[str, Callable[[str], Told]] = {"loadlens": read_loadlens, "wrk": read_wrk, "ab": read_ab}


def table(rows: list[tuple[Case, str, Told]]) -> str:
    lines = [f"{'case':<16}{'generator':<12}{'p50 ms':>10}{'true':>8}{'p99 ms':>10}{'true':>8}{'max ms':>10}"]
    for case, name, told in sorted(rows, key=lambda row: row[0].name):
        lines.append(
            f"{case.name:<16}{name:<12}{told.p50_s * 1e3:>10.1f}{case.truth.p50_s * 1e3:>8.0f}"
            f"{told.p99_s * 1e3:>10.1f}{case.truth.p99_s * 1e3:>8.0f}{told.max_s * 1e3:>10.1f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
