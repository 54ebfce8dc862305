"""What a request costs, beside other load generators in the same round.

For each piece of work and each round every generator runs twice, briefly and longer, against one origin;
what the long run used beyond the short one is the cost without start-up. A round gives ratios to wrk; the
result is the median of the rounds' ratios with a rank interval. Only ratios of one round are compared,
because CPU per request moves by a fifth between one second and the next.

    python benches/peers.py [--quick] [--rounds 8] [--only get-100,post] [--generators loadlens,wrk]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from generators import GENERATORS, Scene, Work, scratch_folder, why_missing
from measuring import ROOT, Origin, Used, find_origin, measure, origin, pressure

WORKS = [
    Work("get-1", 1),
    Work("get-12", 12),
    Work("get-100", 100),
    Work("get-1000", 1000),
    Work("post-100", 100, method="POST"),
    Work("fresh-50", 50, is_fresh=True),
]
QUICK = ["get-12", "get-100", "post-100", "fresh-50"]
PEER = "wrk"
BUSY_ENOUGH = 0.85
SERVER_CPU, GENERATOR_CPU = 0, 1


@dataclass
class Round:
    """What each generator used in one round of one piece of work, start-up taken off."""

    work: str
    number: int
    used: dict[str, Used] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    work: str
    generator: str
    rounds: int
    cpu_us_per_request: float
    requests_per_s: float
    busy_generator: float
    busy_server: float
    ratio: float | None  # CPU per request to the peer's, median over rounds
    low: float | None
    high: float | None


def main() -> int:
    options = read_options()
    program = find_origin()
    taking_part = participants(options.generators)
    works = [work for work in WORKS if not options.only or work.name in options.only]
    if not works:
        print(f"no such work; there is {', '.join(work.name for work in WORKS)}", file=sys.stderr)
        return 2
    if len(os.sched_getaffinity(0)) < 2:
        print("needs two processors: one for the server, one for the generator", file=sys.stderr)
        return 2
    if options.priority:
        raise_priority()
    rounds: list[Round] = []
    with origin(program, SERVER_CPU) as server, scratch_folder() as folder:
        for number in range(options.rounds):
            for work in works:
                scenes = [
                    Scene(server.port, seconds, GENERATOR_CPU, program, Path(folder))
                    for seconds in (options.short, options.long)
                ]
                rounds.append(play(work, number, taking_part, scenes, server))
    rows = [row for work in works for row in summarise(work, rounds, taking_part)]
    print(table(rows))
    path = write(rows, rounds, options)
    print(f"\nwritten to {path.relative_to(ROOT)}")
    return 0


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--quick", action="store_true", help="one round of four pieces of work, about a minute"
    )
    parser.add_argument("--rounds", type=int, help="rounds; a rank interval needs at least 6 (default 8)")
    parser.add_argument("--short", type=int, default=1, help="seconds of the short run (default 1)")
    parser.add_argument("--long", type=int, help="seconds of the long run (default 3)")
    parser.add_argument("--only", type=names, default=[], help="pieces of work, such as get-100,post-100")
    parser.add_argument("--generators", type=names, default=[], help="such as loadlens,wrk,floor")
    parser.add_argument(
        "--priority", action="store_true", help="put this session before all others on the machine (root)"
    )
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 8)
    options.long = options.long or (2 if options.quick else 3)
    if options.quick and not options.only:
        options.only = QUICK
    return options


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def raise_priority() -> None:
    """Raise the weight of our session: with automatic groups, niceness counts inside a session only."""
    try:
        Path("/proc/self/autogroup").write_text("-15")
    except OSError as error:
        print(f"priority not raised: {error}", file=sys.stderr)


def participants(asked: list[str]) -> list[str]:
    """Generators that are here; the others are skipped aloud."""
    taking_part = []
    for name in asked or GENERATORS:
        why = why_missing(name) if name in GENERATORS else "unknown"
        if why is None:
            taking_part.append(name)
        else:
            print(f"skipped {name}: {why}", file=sys.stderr)
    return taking_part


def play(work: Work, number: int, generators: list[str], scenes: list[Scene], server: Origin) -> Round:
    """One round: every generator once, in random order, so that no one always follows the same one."""
    played = Round(work.name, number)
    for name in random.Random(f"{work.name} {number}").sample(generators, len(generators)):
        runs = []
        for scene in scenes:
            command = GENERATORS[name](work, scene)
            if command is None:
                break
            used = measure(command, server, GENERATOR_CPU, limit_s=3 * scene.seconds + 20)
            if isinstance(used, str):
                played.notes.append(f"{name} {used}")
                break
            runs.append(used)
        if len(runs) == len(scenes):
            judge(name, work, runs[1].minus(runs[0]), played)
    for note in played.notes:
        print(f"{work.name} round {number + 1}: {note}", file=sys.stderr)
    return played


def judge(name: str, work: Work, used: Used, played: Round) -> None:
    """Keep a measurement, or say why not."""
    if used.requests <= 0 or used.wall_s <= 0:
        played.notes.append(f"{name} left out: the longer run did not get further than the short one")
    elif used.busy < BUSY_ENOUGH and not work.is_latency_bound:
        played.notes.append(
            f"{name} left out: the busier side used only {used.busy:.2f} of its core, so others were working"
            f" ({used.cpu_us_per_request:.2f} us a request)"
        )
    else:
        played.used[name] = used
    if used.violations:
        played.notes.append(f"{name} broke the rules of HTTP {used.violations} times, by the server's books")


def summarise(work: Work, rounds: Iterable[Round], generators: list[str]) -> list[Row]:
    """Medians over the rounds that count."""
    played = [one for one in rounds if one.work == work.name]
    rows = []
    for name in generators:
        kept = [one.used[name] for one in played if name in one.used]
        if not kept:
            continue
        ratios = [
            one.used[name].cpu_us_per_request / one.used[PEER].cpu_us_per_request
            for one in played
            if name in one.used and PEER in one.used
        ]
        low, high = rank_interval(ratios)
        rows.append(
            Row(
                work=work.name,
                generator=name,
                rounds=len(kept),
                cpu_us_per_request=statistics.median(used.cpu_us_per_request for used in kept),
                requests_per_s=statistics.median(used.requests / used.wall_s for used in kept),
                busy_generator=statistics.median(used.generator_cpu_s / used.wall_s for used in kept),
                busy_server=statistics.median(used.server_cpu_s / used.wall_s for used in kept),
                ratio=statistics.median(ratios) if ratios else None,
                low=low,
                high=high,
            )
        )
    return rows


def rank_interval(values: list[float], confidence: float = 0.95) -> tuple[float | None, float | None]:
    """Interval of the median between two order statistics, exact for any law; none below six values.

    The k-th smallest and k-th largest of n values enclose the median with probability 1 - 2 P(B < k),
    B binomial with n and one half.
    """
    ordered, count = sorted(values), len(values)
    best: tuple[float | None, float | None] = (None, None)
    for k in range(1, count // 2 + 1):
        outside = 2 * sum(math.comb(count, j) for j in range(k)) / 2**count
        if outside > 1 - confidence:
            break
        best = (ordered[k - 1], ordered[count - k])
    return best


def table(rows: list[Row]) -> str:
    head = f"{'work':<10}{'generator':<14}{'rounds':>6}{'CPU us/req':>12}{'x wrk':>8}{'95 % interval':>18}"
    lines = [head + f"{'req/s':>10}{'busy gen/srv':>15}"]
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
        interval = "-" if row.low is None or row.high is None else f"{row.low:.2f} to {row.high:.2f}"
        lines.append(
            f"{row.work:<10}{row.generator:<14}{row.rounds:>6}{row.cpu_us_per_request:>12.2f}{ratio:>8}"
            f"{interval:>18}{row.requests_per_s:>10.0f}"
            f"{f'{row.busy_generator:.2f}/{row.busy_server:.2f}':>15}"
        )
    return "\n".join(lines)


def write(rows: list[Row], rounds: list[Round], options: argparse.Namespace) -> Path:
    folder = ROOT / "benches" / "results"
    folder.mkdir(exist_ok=True)
    path = folder / f"peers-{time.strftime('%Y%m%d-%H%M%S')}.json"
    said = {
        "schema_version": 1,
        "machine": {
            "kernel": platform.release(),
            "processor": platform.machine(),
            "processors": os.cpu_count(),
            "pressure_at_the_end": pressure(),
        },
        "options": {"rounds": options.rounds, "short_s": options.short, "long_s": options.long},
        "rows": [asdict(row) for row in rows],
        "rounds": [asdict(one) for one in rounds],
    }
    path.write_text(json.dumps(said, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
