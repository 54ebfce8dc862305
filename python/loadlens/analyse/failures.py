"""How requests failed: by step, outcome and status, with the times that they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.analyse.source import StreamPlan, TrialSource
from loadlens.model.trial import Outcome
from loadlens.stats.interval import Floats

NOT_FAILURES = (Outcome.OK, Outcome.IN_FLIGHT, Outcome.WAITING, Outcome.DROPPED)


@dataclass(frozen=True, slots=True, eq=False)
class Failure:
    """Requests of one step that ended in one way in the measured part."""

    stream: str
    step: str
    outcome: str
    status: int  # 0: no answer
    count: int
    seconds: Floats | None  # times from due to the end; none when the sample log was thinned
    first_s: float  # since t0
    last_s: float


def read(source: TrialSource, plans: Sequence[StreamPlan], begin: float, end: float) -> tuple[Failure, ...]:
    """Gather the failures of the measured part from the sample log; counts allow for thinning."""
    import polars as pl

    engine = source.engine or {}
    if not any(_has_failures(stream) for stream in engine.get("streams", ())):
        return ()
    rows = source.samples().filter(
        ~pl.col("outcome").is_in([int(outcome) for outcome in NOT_FAILURES])
        & (pl.col("done_ns") >= int(begin * 1e9))
        & (pl.col("done_ns") <= int(end * 1e9))
    )
    found = []
    for key, part in rows.group_by(["stream", "step", "outcome", "status"], maintain_order=True):
        stream, step, outcome, status = (int(str(field)) for field in key)
        thinned = part["thinned"].to_numpy().astype(np.int64)
        done = part["done_ns"].to_numpy().astype(np.float64)
        due = part["due_ns"].to_numpy().astype(np.float64)
        found.append(
            Failure(
                stream=plans[stream].name,
                step=plans[stream].steps[step].name,
                outcome=Outcome(outcome).name.lower(),
                status=status,
                count=int(np.left_shift(1, thinned).sum()),
                seconds=None if thinned.any() else (done - due) / 1e9,
                first_s=float(done.min()) / 1e9,
                last_s=float(done.max()) / 1e9,
            )
        )
    return tuple(sorted(found, key=lambda f: -f.count))


def _has_failures(stream: dict[str, object]) -> bool:
    counts = stream.get("requests")
    if not isinstance(counts, dict):
        return True
    return any(int(counts.get(name, 0)) for name in ("failed", "unexpected_status", "check_failed"))
