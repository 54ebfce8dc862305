"""Gates: conditions for trusting figures, checked over the whole record."""

from __future__ import annotations

from collections.abc import Sequence

from loadlens.measure.case import CaseMeasures
from loadlens.measure.curve import generator_in_time, stood_still
from loadlens.measure.external_report import does_not, driver_of
from loadlens.measure.thresholds import FULL_CORES, OTHERS_MATTER
from loadlens.measure.trial import TrialMeasures
from loadlens.model.facts import Curve, Gate, Step
from loadlens.model.report import AccountingRow
from loadlens.model.result import EngineResult
from loadlens.present.numbers import percent, with_unit
from loadlens.present.words import plural

MOST_NAMED = 3


def gates_of(
    cases: Sequence[CaseMeasures], curves: Sequence[Curve], rows: Sequence[AccountingRow], cores: int
) -> tuple[Gate, ...]:
    """Return all gates, in the order in which a reader should look at them."""
    steps = [step for curve in curves for step in curve.steps]
    return (
        _counting(cases),
        _generator(steps),
        *_nodes(cases),
        _little(steps),
        _steady(steps),
        _accounting(rows),
        _colocation(curves, cores),
        _interference(steps, cores),
    )


def _counting(cases: Sequence[CaseMeasures]) -> Gate:
    ended = [trial for case in cases for trial in case.trials if trial.source.result]
    if not ended:
        return Gate("counting", None, "no trial came to an end")
    trials = [trial for trial in ended if driver_of(trial.source.result) is None]
    if not trials:
        names = (driver_of(trial.source.result) or "" for trial in ended)
        return Gate("counting", None, f"{does_not(names)} say what was due, so nothing has to add up")
    broken = [
        trial
        for trial in trials
        if trial.source.result and not all(stream.law_holds for stream in trial.source.result.streams)
    ]
    if broken:
        return Gate(
            "counting", False, f"the law of counting is broken in {len(broken)} of {len(trials)} trials"
        )
    return Gate("counting", True, f"every request is accounted for in {len(trials)} of {len(trials)} trials")


def _generator(steps: Sequence[Step]) -> Gate:
    recorded = [step for step in steps if step.generator.verdict != "unknown"]
    others = does_not(step.driver for step in steps if step.driver)
    if not recorded and others:
        return Gate("generator", None, f"{others} say how late or busy it was")
    if not recorded:
        return Gate("generator", None, "the generator's health was not recorded")
    still = [step for step in recorded if stood_still(step.generator)]
    if still:
        worst = max(step.generator.stood_still or 0.0 for step in still)
        is_lost = any(step.generator.verdict == "stood_still" for step in still)
        text = f"the generator stood still for up to {percent(worst)} of the time"
        return Gate("generator", False if is_lost else None, f"{text} in {_named(still, len(recorded))}")
    late = [step for step in recorded if generator_in_time(step.generator) is False]
    if late:
        return Gate("generator", False, f"the generator was late in {_named(late, len(recorded))}")
    waited = [step for step in recorded if step.generator.verdict == "starved"]
    if waited:
        return Gate("generator", None, f"the generator waited for a core in {_named(waited, len(recorded))}")
    busiest = max((step.generator.busy or 0.0) for step in recorded)
    rest = f"; {others} say" if others else ""
    return Gate("generator", True, f"the generator kept up, busy {percent(busiest)} at most{rest}")


def _nodes(cases: Sequence[CaseMeasures]) -> list[Gate]:
    """Judge the machines of a fleet: there to the end, together at the start, on clocks that are known."""
    fleets = _fleets([trial for case in cases for trial in case.usable])
    fleets = fleets or _fleets([trial for case in cases for trial in case.trials])  # all are invalid
    if not fleets:
        return []
    faults = [fault for result in fleets for fault in result.node_faults]
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        return [Gate("nodes", False, f"{faults[0]}{more}")]
    nodes = [node for result in fleets for node in result.nodes]
    late_s = max(node.start_late_ns or 0 for node in nodes) / 1e9
    error_s = max(node.clock_error_ns for node in nodes) / 1e9
    count = plural(max(len(result.nodes) for result in fleets), "node")
    text = f"{count} began within {with_unit(late_s, 's')}, on clocks known to {with_unit(error_s, 's')}"
    return [Gate("nodes", True, text)]


def _fleets(trials: Sequence[TrialMeasures]) -> list[EngineResult]:
    results = [trial.source.result for trial in trials]
    return [result for result in results if result is not None and result.nodes]


def _little(steps: Sequence[Step]) -> Gate:
    broken = [step for step in steps if step.little == "broken"]
    if broken:
        return Gate("little", False, f"Little's law is broken in {_named(broken, len(steps))}")
    own = [step for step in steps if not step.driver]
    others = does_not(step.driver for step in steps if step.driver)
    if not own and others:
        return Gate("little", None, f"{others} say how many were in flight, as Little's law asks")
    held = sum(step.little == "holds" for step in own)
    if not held:
        return Gate("little", None, "trials are too short to check Little's law")
    rest = "" if held == len(own) else ", the rest are too short to check"
    rest += f"; {others} say what it needs" if others else ""
    return Gate("little", True, f"Little's law holds in {held} of {len(own)} cases{rest}")


def _steady(steps: Sequence[Step]) -> Gate:
    decided = [step for step in steps if step.steady != "unknown"]
    unknown = [step for step in steps if step.steady == "unknown"]
    others = does_not(step.driver for step in unknown if step.driver)
    few = sum(not step.driver for step in unknown)
    if not decided and others and not few:
        return Gate("steady", None, f"{others} say how times varied")
    if not decided:
        return Gate("steady", None, "too few requests to distinguish a drift from noise")
    drifting = [step for step in decided if step.steady == "no_steady"]
    if drifting:
        return Gate("steady", False, f"no steady state in {_named(drifting, len(decided))}")
    rest = f", {few} have too few requests to decide" if few else ""
    rest += f"; {others} say how times varied" if others else ""
    return Gate("steady", True, f"{len(decided)} of {len(steps)} cases are steady{rest}")


def _accounting(rows: Sequence[AccountingRow]) -> Gate:
    counted = [row for row in rows if row.observed is not None]
    if not counted:
        return Gate("accounting", None, "the service does not count its requests")
    off = [row for row in counted if row.state == "bad"]
    if off:
        return Gate(
            "accounting", False, f"{off[0].source}: {off[0].difference:+d} requests are not explained"
        )
    return Gate("accounting", True, f"{len(counted)} counts agree")


def _colocation(curves: Sequence[Curve], cores: int) -> Gate:
    shared = [curve for curve in curves if curve.shares_cores is not False]
    if not shared:
        return Gate("colocation", True, "generator and service ran on cores of their own")
    read = [
        step
        for curve in shared
        for step in curve.steps
        if step.generator.cpu_cores is not None and step.processes
    ]
    if not read:
        return Gate("colocation", None, "the CPU of generator or service was not read")
    full = [s for s in read if (s.generator.cpu_cores or 0.0) + s.server_cores >= FULL_CORES * cores]
    if full:
        return Gate(
            "colocation",
            False,
            f"generator and service fill the {cores} cores that they share in {_named(full, len(read))}",
        )
    return Gate("colocation", True, f"generator and service never fill the {cores} cores that they share")


def _interference(steps: Sequence[Step], cores: int) -> Gate:
    watched = [step for step in steps if step.other_cores is not None]
    if not watched:
        return Gate("interference", None, "the machine as a whole was not watched")
    worst = max(watched, key=lambda step: step.other_cores or 0.0)
    text = f"other programs use up to {worst.other_cores:.2f} of {cores} cores"
    return Gate("interference", (worst.other_cores or 0.0) < OTHERS_MATTER * cores, text)


def _named(steps: Sequence[Step], of: int) -> str:
    names = ", ".join(step.label for step in steps[:MOST_NAMED])
    more = f" and {len(steps) - MOST_NAMED} more" if len(steps) > MOST_NAMED else ""
    return f"{len(steps)} of {of} cases ({names}{more})"
