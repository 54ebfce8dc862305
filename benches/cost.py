"""CPU per request, compared with other generators in the same round.

For each piece of work and each round every generator runs twice, briefly and longer, against one origin;
what the long run used beyond the short one is the cost without start-up. A round gives ratios to the peer;
the result is the median of the rounds' ratios with a rank interval. Only ratios of one round are compared,
because CPU per request moves by a fifth between one second and the next.
"""

from __future__ import annotations

import contextlib
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benches.estimates import Middle, middle
from benches.generators import CannotDo, Generator, Scene
from benches.measuring import GENERATOR_CPU, ROOT, SERVER_CPU, Origin, Used, measure, origin
from benches.results import Cost, Results
from benches.works import Work

ALLOWANCE_S = 60  # for start-up and the end, before a generator counts as hung


@dataclass(frozen=True, slots=True)
class Series:
    """Rounds and durations for one set of works."""

    rounds: int  # that count; up to as many again make up for those that do not
    short_s: int
    long_s: int
    busy: float = 0.85  # least share of its core that the busier side must have used


@dataclass(frozen=True, slots=True)
class Row:
    """One generator on one piece of work, over all rounds that count."""

    work: str
    generator: str
    cpu_us: Middle  # per request
    requests_per_s: Middle
    busy_generator: float
    busy_server: float
    to_peer: Middle | None  # CPU per request over the peer's of the same round
    to_floor: Middle | None
    left_out: int  # measurements that do not count


def measure_all(
    results: Results,
    set_number: int,
    works: Sequence[Work],
    peers: Sequence[Generator],
    series: Series,
    program: Path,
) -> None:
    """Measure every generator on every piece of work, round by round, and add it to the results."""
    with contextlib.ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="loadlens-bench-"))
        plain = held.enter_context(origin(program, SERVER_CPU))
        is_secured = any(work.is_tls for work in works)
        secured = held.enter_context(origin(program, SERVER_CPU, "--tls")) if is_secured else None
        stage = Stage(results, set_number, plain, secured, program, Path(folder), series)
        able = _able(works, peers, stage)
        count = sum(len(peers_able) for peers_able in able.values()) * series.rounds
        pace = Pace(count, series.short_s + series.long_s + 1.0)
        whole = dict.fromkeys(able, 0)  # rounds in which everything counted
        for number in range(2 * series.rounds):
            for work in works:
                if whole[work.name] >= series.rounds:
                    continue
                costs = _round(work, number, able[work.name], stage)
                whole[work.name] += all(cost.left_out is None for cost in costs)
                results.cost += costs
                results.write()  # what was measured so far survives Ctrl-C
                _tell(work, number, series.rounds, costs, pace)


class Pace:
    """Estimate of the time left, from the time that the measurements so far took."""

    def __init__(self, count: int, guess_s: float) -> None:
        self.count, self.done, self.guess_s = count, 0, guess_s
        self.began = time.monotonic()
        print(f"{count} measurements, about {count * guess_s / 60:.0f} min", file=sys.stderr)

    def step(self, done: int) -> str:
        """Count measurements; gives what is left, as text."""
        self.done += done
        each = (time.monotonic() - self.began) / self.done if self.done else self.guess_s
        left = max(0, self.count - self.done)
        return f"{left * each / 60:.1f} min left" if left else "making up for what was left out"


@dataclass(frozen=True, slots=True)
class Stage:
    """The running origins, how long generators drive them, and where the results go."""

    results: Results
    set_number: int
    plain: Origin
    secured: Origin | None  # with TLS, when some of the work is
    program: Path
    folder: Path
    series: Series

    def scene(self, seconds: int) -> Scene:
        """The port, duration and folder that a generator gets."""
        tls_port = self.secured.port if self.secured else None
        return Scene(self.plain.port, seconds, self.folder, self.program, GENERATOR_CPU, tls_port)

    def server(self, work: Work) -> Origin:
        """The origin that serves a piece of work."""
        return self.secured if work.is_tls and self.secured else self.plain


def _able(works: Sequence[Work], peers: Sequence[Generator], stage: Stage) -> dict[str, list[Generator]]:
    """Return the generators able to do each work; keep their commands, print refusals."""
    able: dict[str, list[Generator]] = {work.name: [] for work in works}
    refusals: dict[tuple[str, str], list[str]] = {}
    for work in works:
        for peer in peers:
            scene = stage.scene(stage.series.long_s)
            try:
                command = peer.command(work, scene)
            except CannotDo as refusal:
                refusals.setdefault((peer.name, str(refusal)), []).append(work.name)
                continue
            able[work.name].append(peer)
            stage.results.command(work.name, peer.name, shown(command, scene), shown_files(scene))
    for (name, why), names in refusals.items():
        print(f"skipped {name} for {', '.join(names)}: {why}", file=sys.stderr)
    return able


def shown(command: Sequence[str], scene: Scene) -> str:
    """A command as it can be typed: ports and folders by name."""
    text = f"taskset -c {scene.cpu} {shlex.join(command)}"
    return _neutral(text, scene)


def shown_files(scene: Scene) -> dict[str, str]:
    """The files that a generator reads, likewise."""
    return {name: _neutral(content, scene) for name, content in scene.files.items()}


def _neutral(text: str, scene: Scene) -> str:
    named = {
        str(scene.folder): "DIR",
        str(scene.origin): "loadlens-origin",
        f"{ROOT}/": "",
        sys.executable: "python",
        f":{scene.port}": ":PORT",
        f"--port {scene.port}": "--port PORT",
        f'"port": {scene.port}': '"port": PORT',
    }
    if scene.tls_port is not None:
        named |= {f":{scene.tls_port}": ":TLS_PORT", f'"port": {scene.tls_port}': '"port": TLS_PORT'}
    for value, name in named.items():
        text = text.replace(value, name)
    return text


def _round(work: Work, number: int, peers: Sequence[Generator], stage: Stage) -> list[Cost]:
    """One round: every generator once, in random order, so that none always follows the same other."""
    costs = []
    for peer in random.Random(f"{work.name} {number}").sample(peers, len(peers)):
        runs: list[Used] = []
        for seconds in (stage.series.short_s, stage.series.long_s):
            command = peer.command(work, stage.scene(seconds))
            limit_s = 3 * seconds + ALLOWANCE_S
            used = measure(command, stage.server(work), GENERATOR_CPU, limit_s, peer.counted)
            if isinstance(used, str):
                failed = f"{work.name} round {number + 1}: {peer.name} {used}"
                print(failed, file=sys.stderr)
                stage.results.sets[stage.set_number].setdefault("failed", []).append(failed)
                break
            runs.append(used)
        if len(runs) == 2:
            short, long = runs
            why = fault(work, long.minus(short), stage.series.busy)
            costs.append(Cost(work.name, peer.name, stage.set_number, number, short, long, why))
    return costs


def fault(work: Work, used: Used, busy: float) -> str | None:
    """Return the reason to leave a measurement out, or None if it counts."""
    if used.unexplained:
        return (
            f"{used.unexplained} requests of its own counts are not in the server's books, or the other way"
        )
    if used.violations:
        return f"broke the rules of HTTP {used.violations} times, by the server's books"
    if used.requests <= 0 or used.wall_s <= 0:
        return "the longer run did not get further than the short one"
    most_kept = max(0.05 * used.requests, work.connections)  # a short run may have ended while it connected
    if used.connections < 0.95 * used.requests if work.is_fresh else used.connections > most_kept:
        return (
            f"{used.connections} connections for {used.requests} requests is not the work that was asked for"
        )
    if used.busy < busy and not work.is_latency_bound:
        others = f"the host gave {used.stolen:.0%} to others" if used.stolen > 0.02 else "others were working"
        return f"the busier side used only {used.busy:.2f} of its core, so {others}"
    return None


def _tell(work: Work, number: int, rounds: int, costs: Sequence[Cost], pace: Pace) -> None:
    """A line of progress, and what was left out and why."""
    kept = [f"{cost.generator} {cost.marginal.cpu_us_per_request:.2f}" for cost in costs if not cost.left_out]
    rest = pace.step(len(costs))
    print(f"round {number + 1}/{rounds} {work.name}: us/request {', '.join(kept)}; {rest}", file=sys.stderr)
    for cost in costs:
        if cost.left_out:
            print(f"  left out {cost.generator}: {cost.left_out}", file=sys.stderr)


def summary(results: Results, works: Sequence[Work], names: Iterable[str]) -> list[Row]:
    """Medians over the rounds that count, of all sets; ratios only within a round."""
    rows = []
    for work in works:
        mine = [cost for cost in results.cost if cost.work == work.name]
        kept = [cost for cost in mine if cost.left_out is None]
        by_round = {(cost.set, cost.round, cost.generator): cost.marginal.cpu_us_per_request for cost in kept}
        for name in names:
            costs = [cost.marginal for cost in kept if cost.generator == name]
            cpu = middle([used.cpu_us_per_request for used in costs])
            rate = middle([used.requests_per_s for used in costs])
            if cpu is None or rate is None:
                continue
            rows.append(
                Row(
                    work=work.name,
                    generator=name,
                    cpu_us=cpu,
                    requests_per_s=rate,
                    busy_generator=_median(used.generator_cpu_s / used.wall_s for used in costs),
                    busy_server=_median(used.server_cpu_s / used.wall_s for used in costs),
                    to_peer=_ratio(by_round, name, work.peer),
                    to_floor=_ratio(by_round, name, "floor"),
                    left_out=sum(cost.generator == name and cost.left_out is not None for cost in mine),
                )
            )
    return rows


def _ratio(by_round: dict[tuple[int, int, str], float], name: str, to: str) -> Middle | None:
    pairs = [
        (cost, by_round[(set_number, number, to)])
        for (set_number, number, generator), cost in by_round.items()
        if generator == name and (set_number, number, to) in by_round
    ]
    return middle([cost / base for cost, base in pairs])


def _median(values: Iterable[float]) -> float:
    median = middle(list(values))
    return median.value if median else float("nan")


def table(rows: Sequence[Row]) -> str:
    """The rows for a terminal."""
    head = f"{'work':<11}{'generator':<13}{'rounds':>6}{'us/req':>8}{'x peer':>8}{'95 % interval':>16}"
    lines = [f"{head}{'x floor':>9}{'req/s':>9}{'busy gen/srv':>14}{'left out':>10}"]
    for row in rows:
        lines.append(
            f"{row.work:<11}{row.generator:<13}{row.cpu_us.rounds:>6}{row.cpu_us.value:>8.2f}"
            f"{_value(row.to_peer):>8}{_interval(row.to_peer):>16}{_value(row.to_floor):>9}"
            f"{row.requests_per_s.value:>9.0f}{f'{row.busy_generator:.2f}/{row.busy_server:.2f}':>14}"
            f"{row.left_out:>10}"
        )
    return "\n".join(lines)


def _value(ratio: Middle | None) -> str:
    return "-" if ratio is None else f"{ratio.value:.2f}"


def _interval(ratio: Middle | None) -> str:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "-"
    return f"{ratio.low:.2f} to {ratio.high:.2f}"
