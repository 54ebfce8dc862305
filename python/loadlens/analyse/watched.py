"""What was watched beside the requests: the services' processes, the machine, the generator."""

from __future__ import annotations

import math

from loadlens.analyse.case import CaseMeasures
from loadlens.analyse.resources import Process
from loadlens.analyse.source import Json
from loadlens.analyse.trial import TrialMeasures
from loadlens.model.facts import GeneratorWatch, ProcessWatch
from loadlens.model.finding import Figure, NotMeasured
from loadlens.stats.interval import Insufficient, Interval

WORST_FIRST = ("limit", "starved", "late", "unknown", "kept_up")


def generator_of(case: CaseMeasures) -> GeneratorWatch:
    """The generator's health: the worst of the trials."""
    health = [trial.generator for trial in case.usable if trial.generator]

    def worst(name: str) -> float | None:
        return max((float(h[name]) for h in health if h.get(name) is not None), default=None)

    verdicts = [str(h.get("verdict") or "unknown") for h in health] or ["unknown"]
    seconds = [_ran_s(t.source.engine) for t in case.usable if t.source.engine]
    cpu = [float(h["cpu_s"]) / s for h, s in zip(health, seconds, strict=False) if h.get("cpu_s") and s]
    return GeneratorWatch(
        verdict=min(verdicts, key=lambda v: WORST_FIRST.index(v) if v in WORST_FIRST else 0),
        busy=worst("busy"),
        lag_p99_s=worst("lag_p99_s"),
        lag_limit_s=worst("lag_limit_s"),
        cpu_cores=max(cpu, default=None),
    )


def _ran_s(engine: Json) -> float:
    """How long the generator's CPU time was counted: of another program its whole life."""
    driver = engine.get("driver")
    return float(engine["elapsed_s"] if driver is None else driver["ran_s"])


def processes_of(case: CaseMeasures) -> tuple[ProcessWatch, ...]:
    """Processes of the services, matched over trials by service, replica and rank of CPU use."""
    ranked = [_ranked(trial) for trial in case.usable]
    if not ranked or not any(ranked):
        return ()
    found = []
    for key in ranked[0]:
        members = [trial[key] for trial in ranked if key in trial]
        threads = [p.peaks["threads"] for p in members if "threads" in p.peaks]
        memory = [p.peaks["rss_bytes"] for p in members if "rss_bytes" in p.peaks]
        hot = [p.hot_threads for p in members]
        found.append(
            ProcessWatch(
                label=members[0].label if len(members) == 1 else f"{key[0]} {members[0].name} #{key[2] + 1}",
                cpu=case.level_figure("cpu", "cores", [p.cpu for p in members]),
                waiting=case.level_figure("runq_wait", "cores", [p.waiting for p in members]),
                occupied=case.level_figure("occupied", "cores", [_occupied(p) for p in members]),
                hot_threads=None if None in hot else max(h for h in hot if h is not None),
                threads=max(threads, default=None),
                memory_bytes=max(memory, default=None),
            )
        )
    return tuple(found)


def _occupied(process: Process) -> Interval | Insufficient:
    """Computing and waiting for a core; without the waiting a lower bound."""
    cpu, waiting = process.cpu, process.waiting
    if not isinstance(cpu, Interval) or not isinstance(waiting, Interval):
        return cpu
    return Interval(
        cpu.point + waiting.point,
        None if cpu.low is None else cpu.low + waiting.point,
        None if cpu.high is None else cpu.high + waiting.point,
        cpu.independent,
        cpu.method,
    )


def _ranked(trial: TrialMeasures) -> dict[tuple[str, str, int], Process]:
    """Processes of one trial by (service, replica, rank of CPU use)."""
    by_replica: dict[tuple[str, str], list[Process]] = {}
    for process in trial.resources.services:
        by_replica.setdefault((process.service, process.replica), []).append(process)
    ranked: dict[tuple[str, str, int], Process] = {}
    for (service, replica), members in by_replica.items():
        ordered = sorted(members, key=lambda p: -(p.cpu.point if isinstance(p.cpu, Interval) else 0.0))
        for rank, process in enumerate(ordered):
            ranked[(service, replica, rank)] = process
    return ranked


def server_cores(trial: TrialMeasures) -> Interval | None:
    """Cores used by all processes of the services in one trial."""
    known = [p.cpu for p in trial.resources.services if isinstance(p.cpu, Interval)]
    if not known:
        return None
    point = sum(p.point for p in known)
    down = math.sqrt(sum((p.point - p.low) ** 2 for p in known if p.low is not None))
    up = math.sqrt(sum((p.high - p.point) ** 2 for p in known if p.high is not None))
    is_open = any(p.low is None or p.high is None for p in known)
    low, high = (None, None) if is_open else (max(0.0, point - down), point + up)
    return Interval(point, low, high, known[0].independent, "sum over processes")


def own_cores(trial: TrialMeasures) -> float | None:
    """Cores that another program used which made the load, over its whole life; none: not read."""
    cpu_s, driver = trial.generator.get("cpu_s"), (trial.source.engine or {}).get("driver") or {}
    ran_s = float(driver.get("ran_s") or 0.0)
    return None if cpu_s is None or ran_s <= 0 else float(cpu_s) / ran_s


def host_cpu(case: CaseMeasures) -> Figure:
    """Cores busy on the whole machine."""
    found = [t.resources.host_busy for t in case.usable if t.resources.host_busy is not None]
    if not found:
        return NotMeasured("cpu", "the machine was not watched")
    return case.level_figure("cpu", "cores", found)
