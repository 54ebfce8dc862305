"""Table of the evidence that claims each number, so that the number can be compared with the truth.

The capacity is a field of its own in the answer of `explain`. Every other number is evidence of a finding and
is identified by its signal; a rule that starts to report one of these uses the signal named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# number of a family -> (rule, signal)
CLAIMS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "work": (("eventloop.blocked", "work.cpu"), ("cpu.saturated", "work.cpu")),
    "passes": (("loop.multipass", "loop.passes"),),
    "hold": (("db.lock", "lock.hold"), ("db.pool", "pool.hold")),
    "size": (("threads.pool-limit", "pool.size"), ("db.pool", "pool.size")),
    "knee": (("saturation.plateau", "load.knee"),),
    "rate": (("ratelimit.active", "limiter.rate"),),
    "burst": (("ratelimit.active", "limiter.burst"),),
    "limit": (("http.keepalive-limit", "connection.requests"),),
    "weight": (("mixture.slow-path", "component.weight"),),
    "shift": (("mixture.slow-path", "component.shift"), ("tcp.timer-mode", "component.shift")),
    "period": (("pause.periodic", "pause.period"),),
    "length": (("pause.periodic", "pause.length"), ("pause.aperiodic", "pause.length")),
    "patience": (("db.lock-timeouts", "errors.time"), ("timeouts.cliff", "errors.time")),
    "imbalance": (("lb.imbalance", "backends.max-over-mean"),),
    "slower": (("backend.slow-one", "backends.slowest-ratio"), ("fairness.starvation", "connections.ratio")),
    "quota": (("cgroup.throttled", "quota.cores"),),
    "faults": (("memory.pressure", "faults.request"),),
    "visits": (("accounting.explained", "excess.rate"), ("accounting.excess", "excess.rate")),
    "ports": (("ports.exhausted", "ports.taken"),),
    "excess": (("retry.amplification", "excess.share"),),
}
