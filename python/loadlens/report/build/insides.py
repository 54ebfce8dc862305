"""A case from inside: a table over its trials, the backends of its balancers, a chart of one trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadlens.estimate.interval import Insufficient
from loadlens.measure.case import CaseMeasures
from loadlens.measure.figures import exact
from loadlens.measure.trial import TrialMeasures
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import Cell, Chart, Column, Table
from loadlens.present import numbers, words
from loadlens.signals.read.runtime_metrics import Backend, Line, RuntimeMetrics

MOST_PARTS = 6  # lines of a panel
MOST_TELLING = 2  # sentences of a headline
Row = dict[str, object]


def table(case: CaseMeasures) -> Table | None:
    """Return every line: its mean over the trials and the highest reading of them all."""
    trials = [trial.runtime for trial in case.usable]
    by_key: dict[tuple[str, str], list[Line]] = {}
    for trial in trials:
        for line in trial.lines:
            by_key.setdefault(line.key, []).append(line)
    if not by_key:
        return None
    rows: list[tuple[Cell, ...]] = []
    for (part, what), lines in sorted(by_key.items(), key=lambda item: _place(item[0], trials)):
        rows.append((part, what, _mean(case, lines), _highest(lines)))
    columns = (
        Column("part", align="left"),
        Column("what", align="left"),
        Column("mean", is_mixed=True),
        Column("highest reading", is_mixed=True),
    )
    return Table(columns, tuple(rows), _note(trials))


def _place(key: tuple[str, str], trials: Sequence[RuntimeMetrics]) -> tuple[int, int]:
    """Return the place of a line in the first trial that has it."""
    for number, trial in enumerate(trials):
        for place, line in enumerate(trial.lines):
            if line.key == key:
                return number, place
    return len(trials), 0


def _mean(case: CaseMeasures, lines: Sequence[Line]) -> Figure:
    what, unit = lines[0].what, lines[0].unit
    means = [line.mean for line in lines if line.mean is not None]
    if not means:
        return NotMeasured(what, "only the worst is known")
    return case.level_figure(what, unit, means)


def _highest(lines: Sequence[Line]) -> Figure:
    what, unit = lines[0].what, lines[0].unit
    peaks = [line.highest for line in lines if line.highest is not None]
    if peaks:
        most = max(peaks)
        return Estimate(what, unit, most, most, most, len(peaks), 0, "exact reading")
    reasons = [line.mean.reason for line in lines if isinstance(line.mean, Insufficient)]
    return NotMeasured(what, reasons[0] if reasons else "it is of the whole part")


def _note(trials: Sequence[RuntimeMetrics]) -> str:
    costs = [trial.cost for trial in trials if trial.cost is not None]
    took = f"; the monitors took {numbers.with_unit(max(costs), 'cores')}" if costs else ""
    return f"measured part of {words.plural(len(trials), 'trial')}, read once a second{took}"


def backends(case: CaseMeasures) -> Table | None:
    """Return the requests of each replica and their mean times."""
    by_name: dict[tuple[str, str], list[Backend]] = {}
    trials = [trial.runtime.backends for trial in case.usable if trial.runtime.backends]
    for own_backends in trials:
        for backend in own_backends:
            by_name.setdefault((backend.balancer, backend.name), []).append(backend)
    if not by_name:
        return None
    totals: dict[str, int] = {}
    for (balancer, _), own in by_name.items():
        totals[balancer] = totals.get(balancer, 0) + sum(backend.requests for backend in own)
    rows: list[tuple[Cell, ...]] = []
    for (balancer, name), own in sorted(by_name.items()):
        requests = sum(backend.requests for backend in own)
        rows.append(
            (
                balancer,
                name,
                requests,
                exact("share", "share", requests / totals[balancer], requests),
                exact("backend_time.mean", "s", sum(b.seconds for b in own) / requests, requests),
                exact("connect_time.mean", "s", sum(b.connect_seconds for b in own) / requests, requests),
                sum(backend.refused for backend in own),
            )
        )
    columns = (
        Column("balancer", align="left"),
        Column("replica", align="left"),
        Column("requests"),
        Column("share", "share"),
        Column("its mean time", "s"),
        Column("mean time to connect", "s"),
        Column("answered from 500 on"),
    )
    whole = words.plural(len(trials), "whole trial")
    note = f"the balancer's log of {whole}, warm-up, probes and readiness included"
    return Table(columns, tuple(rows), note)


def chart(case: CaseMeasures) -> Chart | None:
    """The most telling lines over the time of one trial; what was zero all the time is left out."""
    trial = case.usable[0]
    drawn = [line for line in trial.runtime.lines if line.panel and any(value for _, value in line.course)]
    rows: list[Row] = []
    panels, parts = dict[str, None](), dict[str, None]()
    for panel in dict.fromkeys(line.panel for line in drawn):
        own = sorted((line for line in drawn if line.panel == panel), key=_size, reverse=True)
        for line in own[:MOST_PARTS]:
            course = [(t, value) for t, value in line.course if t >= 0]
            if course:
                panels[panel] = parts[line.part] = None
            rows += [{"t": t, "resource": panel, "process": line.part, "value": v} for t, v in course]
    if not rows:
        return None
    return Chart(
        kind="resources",
        anchor=f"chart-inside-{case.slug}",
        headline=_headline(drawn),
        datasets={"readings": tuple(rows), **warm_up(trial)},
        options={"trials": 1, "resources": list(panels)},
        caption=f"{trial.source.name}, as reported by runtimes, servers and the kernel",
        entities={part: slot for slot, part in enumerate(sorted(parts)[:MOST_PARTS], start=1)},
    )


def warm_up(trial: TrialMeasures) -> Mapping[str, tuple[Row, ...]]:
    """Return the dataset that shades the warm-up in a chart over the time of a trial."""
    seconds = 0.0 if trial.source.result is None else trial.source.result.warmup_s
    return {"shade": ({"t": 0.0, "t2": seconds, "label": "warm-up, cut"},)} if seconds else {}


def _size(line: Line) -> float:
    return max((value for _, value in line.course), default=0.0)


def _headline(drawn: Sequence[Line]) -> str:
    """Of the first line of each monitor the part that has most of it."""
    parts = []
    firsts: dict[str, str] = {}
    for line in drawn:
        firsts.setdefault(line.source, line.what)
    for source, what in firsts.items():
        means = [
            (line.mean.point, line)
            for line in drawn
            if (line.source, line.what) == (source, what)
            and line.mean is not None
            and not isinstance(line.mean, Insufficient)
        ]
        if means:
            point, line = max(means, key=lambda pair: pair[0])
            parts.append(f"{line.part}: {what} {numbers.with_unit(point, line.unit)}")
    return "; ".join(parts[:MOST_TELLING]) or "Only the worst readings are known"
