"""Reasons why a trial must not count, as far as the engine's result shows them."""

from __future__ import annotations

from loadlens.model.result import EngineResult
from loadlens.model.trial import TrialStatus

OWN_LIMITS = {
    "own_descriptors": "the generator ran out of file descriptors",
    "own_ports": "the generator ran out of local ports",
    "own_memory": "the generator ran out of memory",
}


def faults_of(result: EngineResult) -> tuple[str, ...]:
    """List the reasons why a result must not be used.

    A generator that was always busy is a caveat, not a fault: its throughput is a lower bound.
    """
    faults = [
        f"the law of counting is broken in stream {stream.name}: {stream.law}"
        for stream in result.streams
        if not stream.law_holds
    ]
    if result.generator.verdict == "stood_still":
        faults.append(result.generator.reasons[0])
    faults += result.node_faults
    for stream in result.all_loads:
        for kind, words in OWN_LIMITS.items():
            error = stream.errors.get(kind)
            if error is not None and error.count:
                faults.append(f"{words} ({error.count} requests of stream {stream.name})")
    return tuple(faults)


def is_all_failed(result: EngineResult) -> bool:
    """True if requests were due and none succeeded: refused, not answered in time, or not as expected."""
    if result.external is not None:
        external = result.external.requests
        ok = external.answered - (external.unexpected_status or 0) if external.ok is None else external.ok
        return external.ended > 0 and ok == 0
    return all(stream.requests.due > 0 and stream.requests.ok == 0 for stream in result.streams)


def verdict(result: EngineResult) -> tuple[TrialStatus, tuple[str, ...]]:
    """Return the status of a trial with a result, and the reasons if it is not complete."""
    faults = faults_of(result)
    if faults:
        return TrialStatus.INVALID, faults
    if result.load_changes:
        count = len(result.load_changes)
        return TrialStatus.EXPLORATORY, (
            f"the load was changed {'once' if count == 1 else f'{count} times'} while it ran",
            *(change.words for change in result.load_changes),
        )
    if result.status == "stopped":
        return TrialStatus.ABORTED, result.reasons or ("ended early on request",)
    return TrialStatus.COMPLETE, ()
