"""Services as curves: what a closed loop of so many users gets from each, by formula; a search over them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from loadlens.model.search import Bounds
from loadlens.search.ladder import Next, Outcome, Stop, decide, probe_per_s, unsampled

OVERHEAD_S = 1.7  # of a trial, besides its load


@dataclass(frozen=True, slots=True)
class Answer:
    """Throughput and times of so many users."""

    ok_per_s: float
    mean_s: float
    failed_share: float = 0.0
    refused_share: float = 0.0
    body_bytes: float | None = None


Service = Callable[[int, float], Answer]  # users, think time


def one_server(work_s: float, away_s: float) -> Service:
    """M/M/1//N by mean value analysis (Reiser and Lavenberg 1980), with a part of the time outside of it."""

    def answer(users: int, pause_s: float) -> Answer:
        queue, rate = 0.0, 0.0
        for n in range(1, users + 1):
            response = work_s * (1 + queue)
            rate = n / (response + away_s + pause_s)
            queue = rate * response
        return Answer(rate, users / rate - pause_s)

    return answer


def several_servers(work_s: float, away_s: float, servers: int) -> Service:
    """M/M/c//N, the machine repairman: p_n ~ prod (N - j + 1) work / (away min(j, c))."""

    def answer(users: int, pause_s: float) -> Answer:
        outside = away_s + pause_s
        logs = [0.0]
        for n in range(1, users + 1):
            logs.append(logs[-1] + math.log((users - n + 1) * work_s / (outside * min(n, servers))))
        top = max(logs)
        weights = [math.exp(value - top) for value in logs]
        busy = sum(min(n, servers) * weight for n, weight in enumerate(weights)) / sum(weights)
        return Answer(busy / work_s, users / (busy / work_s) - pause_s)

    return answer


def pool(size: int, held_s: float) -> Service:
    """So many at once, each for a fixed time: X = min(N, size) / held."""

    def answer(users: int, pause_s: float) -> Answer:
        rate = min(users / (held_s + pause_s), size / held_s)
        return Answer(rate, users / rate - pause_s)

    return answer


def retrograde(gamma: float, sigma: float, kappa: float) -> Service:
    """Gunther's universal scalability law: X = g N / (1 + s (N - 1) + k N (N - 1))."""

    def answer(users: int, pause_s: float) -> Answer:
        rate = gamma * users / (1 + sigma * (users - 1) + kappa * users * (users - 1))
        return Answer(rate, users / rate)

    return answer


def endless(latency_s: float) -> Service:
    """Any number at once, each after a long time: it never fills."""
    return lambda users, pause_s: Answer(users / (latency_s + pause_s), latency_s)


def failing_from(service: Service, users_from: int, share: float) -> Service:
    """The same, but from some number of users on a share of the requests fails."""

    def answer(users: int, pause_s: float) -> Answer:
        well = service(users, pause_s)
        if users < users_from:
            return well
        return Answer(well.ok_per_s * (1 - share), well.mean_s, failed_share=share)

    return answer


def limited(rate_per_s: float, answer_s: float, refusal_s: float = 0.0001) -> Service:
    """So many a second are served, the rest refused at once: users share their time among both.

    N users, A requests a second of which r are served: r (Z + answer) + (A - r) (Z + refusal) = N.
    """

    def answer(users: int, pause_s: float) -> Answer:
        served = rate_per_s * (pause_s + answer_s)
        if users <= served:
            return Answer(users / (pause_s + answer_s), answer_s)
        asked = rate_per_s + (users - served) / (pause_s + refusal_s)
        return Answer(rate_per_s, answer_s, refused_share=1 - rate_per_s / asked)

    return answer


def shedding(room: int, held_s: float, refusal_s: float = 0.0001) -> Service:
    """So many at once are served, the rest refused at once: a limit of the rate, room / held."""
    return limited(room / held_s, held_s, refusal_s)


@dataclass(frozen=True, slots=True)
class Searched:
    """A whole search."""

    seen: tuple[Outcome, ...]
    stop: Stop
    used_s: float

    @property
    def users(self) -> list[int]:
        """Levels in the order in which they were climbed, repeats included."""
        return [one.users for one in self.seen if one.kind == "climb"]


def _sampled(seen: list[Outcome]) -> set[int]:
    return {trial.users for trial in seen if trial.kind == "stacks"}


def search(
    service: Service,
    bounds: Bounds,
    *,
    noise: float = 0.0,
    seed: int = 1,
    ends: Callable[[int, Next], str] = lambda number, wanted: "complete",
    is_certain: bool = False,
    is_settled: bool = False,
    samples_stacks: bool = False,
) -> Searched:
    """Let `decide` find its way over a service; the clock is simulated.

    Args:
        ends: How each trial ends, by its number and what was wanted.
        noise: Standard deviation of the logarithm of a trial's throughput.
        is_certain: The answer is certain from the first level on.
        is_settled: No rule ever finds anything.
        samples_stacks: Threads can be sampled.
    """
    random_ = random.Random(seed)
    seen: list[Outcome] = []
    used = 0.0
    lengths: dict[tuple[str, int, float], float] = {}
    while True:
        left_s = bounds.budget_s - used
        wanted = decide(
            seen,
            left_s,
            bounds,
            is_certain=is_certain,
            is_settled=is_settled,
            samples_stacks=samples_stacks and bool(unsampled(seen, bounds, _sampled(seen))),
        )
        if isinstance(wanted, Stop):
            return Searched(tuple(seen), wanted, used)
        assert len(seen) < 100, "it never ends"
        key = (wanted.kind, wanted.users, wanted.pause_s)
        load_s = lengths.setdefault(key, wanted.warmup_s + wanted.measured_s)
        got = service(wanted.users, wanted.pause_s)
        rate = got.ok_per_s * math.exp(random_.gauss(0.0, noise)) if noise else got.ok_per_s
        took = load_s + OVERHEAD_S + got.mean_s
        used += took
        total = rate / max(1e-9, 1 - got.failed_share - got.refused_share)
        end = ends(len(seen), wanted)
        probes = probe_per_s(got.mean_s, bounds.rate_cap_per_s, dense=wanted.kind == "dense")
        seen.append(
            Outcome(
                kind=wanted.kind,
                users=wanted.users,
                end=end,  # type: ignore[arg-type]
                ok_per_s=rate,
                asked_per_s=total + probes,
                mean_s=got.mean_s,
                failed_share=got.failed_share,
                refused_share=got.refused_share,
                ended=max(1, round(total * load_s)),
                body_bytes=got.body_bytes,
                pause_s=wanted.pause_s,
                load_s=load_s,
                took_s=took,
                words="" if end == "complete" else f"it {end}",
            )
        )
