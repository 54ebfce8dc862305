"""Records of services with cases held out; they are simulated by other code than predictions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.unit.measure import records
from tests.unit.measure.records import Json
from tests.unit.whatif.services import Load, Trace

NAMES = records.Names()
Level = tuple[int, int]  # processes, users


@dataclass(frozen=True)
class Kind:
    """A service as its study declares it."""

    model: Json = field(default_factory=lambda: {"workers": 1, "threads": 0})
    env: Json = field(default_factory=dict)
    more: Json = field(default_factory=dict)  # further keys of the service


def service_of(kind: Kind, workers: int) -> Json:
    return {
        "name": NAMES.service, "use": "process", "start": "run it", "env": kind.env, "replicas": 1,
        "over": [],
        "limits": {"cpu": None, "cpus": None}, "model": {**kind.model, "workers": workers}, "policy": None,
        "ready": {"path": NAMES.probe_path}, "faults": None,
    } | kind.more  # fmt: skip


def whole(case: Json, kind: Kind, workers: int, users: int, seconds: float, trials: int) -> Json:
    """A case with all that a plan says of it."""
    think = {"kind": "fixed", "ns": 150_000_000, "low_ns": None, "high_ns": None, "mean_ns": None}
    closed = {"kind": "closed", "users": users, "think": think, "profile": None, "pace": None}
    step = {"name": NAMES.step, "method": "POST", "path": NAMES.path, "think": {"kind": "none"}}
    probe = {"name": NAMES.probe, "method": "GET", "path": NAMES.probe_path, "think": {"kind": "none"}}
    return case | {
        "entry": {"service": NAMES.service, "port": None, "url": None},
        "connection": {"reuse": "new", "requests": None, "pool": None},
        "services": [service_of(kind, workers)],
        "scenarios": [{"name": NAMES.step, "weight": 1.0, "steps": [step], "groups": []}],
        "workload": closed,
        "probes": [
            {
                "name": NAMES.probe,
                "scenario": {"name": NAMES.probe, "weight": 1.0, "steps": [probe], "groups": []},
                "workload": {"kind": "open", "rate_per_s": 20.0, "arrivals": "poisson"},
            }
        ],
        "warmup_ns": int(seconds / 3 * 1e9),
        "duration_ns": int(seconds * 2 / 3 * 1e9),
        "trials": trials,
    }  # fmt: skip


def record(
    service: Callable[[Load, int], Trace],
    *,
    measured: Sequence[Level] = ((1, 1), (1, 5), (1, 20)),
    held_out: Sequence[Level] = (),
    kind: Kind | None = None,
    held_kind: Kind | None = None,
    trials: int = 2,
    seconds: float = 24.0,
    cores: int = 4,
    first_seed: int = 0,
) -> records.Run:
    """A record of the measured cases, with others held out that were not run."""
    own = kind or Kind()
    run = records.record(
        lambda load, level: service(
            Load(load.users, load.think_s, load.seconds, load.probe_rate, load.seed + first_seed), level
        ),
        users=sorted({users for _, users in measured}),
        processes=sorted({processes for processes, _ in measured}),
        trials=trials,
        seconds=seconds,
        cores=cores,
    )
    cases = [
        whole(
            case,
            own,
            int(case["levels"][NAMES.factor]),
            int(case["levels"][NAMES.load_factor]),
            seconds,
            trials,
        )
        for case in run.study["cases"]
    ]
    for processes, users in held_out:
        case = records._case(NAMES, users, processes) | {"held_out": True}
        case["slug"] += "-held"
        cases.append(whole(case, held_kind or own, processes, users, seconds, trials))
    run.study["cases"] = cases
    run.study["seed"] = 1
    wanted = set(measured)
    levels = {c["slug"]: (int(c["levels"][NAMES.factor]), int(c["levels"][NAMES.load_factor])) for c in cases}
    run.trials = [trial for trial in run.trials if levels[trial.case.slug] in wanted]
    return run


def truth(
    service: Callable[[Load, int], Trace], processes: int, users: int, *, seconds: float = 400.0
) -> dict[str, float]:
    """Throughput, mean time and mean time of the probe of one long trial."""
    trace = service(Load(users, 0.15, seconds, 20.0, seed=99), processes)
    kept = [r for r in trace.requests if seconds / 10 < r.done <= seconds]
    load, probe = ([r.done - r.due for r in kept if r.stream == stream] for stream in (0, 1))
    return {
        "throughput": len(load) / (0.9 * seconds),
        "response_time.mean": sum(load) / len(load),
        "probe": sum(probe) / len(probe),
    }


def figures(content: Json) -> dict[str, Any]:
    """metric, or `probe` for the probe's mean -> figure."""
    assert content["undecided"] is None, content["undecided"]
    by_metric = {f["metric"]: f for f in content["predicted"] if f["step"] is None}
    by_metric["probe"] = next(
        f for f in content["predicted"] if f["step"] == NAMES.probe and f["metric"] == "response_time.mean"
    )
    return by_metric
