"""A planned study on the terminal: cases, streams, order, time, faults of design. Computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import wrap

from loadlens.model.study import Case, PlannedTrial, Probe, Study
from loadlens.model.workload import Closed, Connection, Open
from loadlens.present import load_text, topology_text, words
from loadlens.study.lint import DesignFault
from loadlens.study.plan import Duration
from loadlens.units import duration_text

Row = tuple[str, str]  # prefix, and text that is wrapped to the right of it


def study_lines(
    study: Study,
    trials: Sequence[PlannedTrial],
    duration: Duration,
    faults: Sequence[DesignFault],
    *,
    all_blocks: bool,
    width: int,
) -> tuple[list[str], list[int]]:
    """The lines to print, and which of them are headings."""
    about = duration_text(duration.seconds) + (" (quick)" if study.quick else "")
    shown = [case for case in study.cases if case.purpose != "stacks"]
    size = f"{_many(len(shown), 'case')}, {_many(len(trials), 'trial')}, about {about}"
    sections = [
        (
            f"{study.name}: {study.question}",
            [
                ("", size),
                *(("  time: ", note) for note in duration.notes),
                *(("  thinned: ", difference) for difference in study.quick_differences),
                *(("  note: ", note) for note in study.notes),
            ],
        ),
        *(
            (f"{experiment}: {_many(len(cases), 'case')}", _experiment_rows(cases, study))
            for experiment, cases in _experiments(shown).items()
        ),
        _order(study, trials, all_blocks=all_blocks),
        _design(faults),
    ]
    lines: list[str] = []
    headings: list[int] = []
    for heading, rows in sections:
        lines += [""] if lines else []
        begin = len(lines)
        lines += _wrapped("", heading, width)
        headings += range(begin, len(lines))
        lines += [line for prefix, text in rows for line in _wrapped(prefix, text, width)]
    return lines, headings


def _experiment_rows(cases: Sequence[Case], study: Study) -> list[Row]:
    trials = _each(cases, lambda case: str(case.trials))
    rows = [*_parts(cases), *_factors(cases), *_load(cases), *_probes(cases)]
    rows.append(("trials", f"{trials} of each case, processes fresh for each {_fresh(cases)}"))
    sampled = [
        each for each in study.cases if each.purpose == "stacks" and each.experiment == cases[0].experiment
    ]
    if sampled:
        loads = ", ".join(load_text.size(case.workload) for case in sampled)
        rows.append(("stacks", f"one trial each at {loads}, which gives no figures"))
    return [(f"  {name:<10}", text) for name, text in rows]


def _parts(cases: Sequence[Case]) -> list[Row]:
    """Name the parts that the load meets, unless all are single processes without limits."""
    if all(topology_text.is_plain(service) for case in cases for service in case.services):
        return []
    return [("parts", " | ".join(dict.fromkeys(topology_text.parts(case.services) for case in cases)))]


def _factors(cases: Sequence[Case]) -> list[Row]:
    rows = []
    for held_out in (False, True):
        chosen = [case for case in cases if case.held_out is held_out]
        levels: dict[str, list[str]] = {}
        for level in (level for case in chosen for level in case.levels):
            levels.setdefault(level.factor, []).append(level.name)
        if levels:
            text = " x ".join(
                f"{factor} {', '.join(dict.fromkeys(names))}" for factor, names in levels.items()
            )
            rows.append(("held out" if held_out else "factors", text))
    return rows


def _load(cases: Sequence[Case]) -> list[Row]:
    parts = [
        _each(cases, _workload),
        f"connection {_each(cases, lambda case: _connection(case.connection))}",
        _each(cases, _length),
        f"timeout {_each(cases, lambda case: duration_text(case.timeout_ns / 1e9))}",
    ]
    return [("mix", _each(cases, _mix)), ("load", "; ".join(parts))]


def _workload(case: Case) -> str:
    workload = case.workload
    if isinstance(workload, Open):
        limit = f"{workload.max_in_flight} in flight, then {workload.overflow}"
        return f"{load_text.size(workload)}, {limit}"
    return f"{load_text.size(workload)}, {load_text.pauses(workload) or 'no think time'}"


def _connection(connection: Connection) -> str:
    reuse = f"{connection.requests} requests" if connection.reuse == "requests" else connection.reuse
    return reuse if connection.pool is None else f"{reuse}, pool of {connection.pool}"


def _length(case: Case) -> str:
    ends = [] if case.duration_ns is None else [duration_text(case.duration_ns / 1e9)]
    if isinstance(case.workload, Closed) and case.workload.iterations is not None:
        ends.append(f"{_many(case.workload.iterations, 'iteration')} a user")
    if case.workload.requests is not None:
        ends.append(_many(case.workload.requests, "request"))
    if case.warmup_ns == 0:
        return " or ".join(ends)
    warmup = "automatic" if case.warmup_ns is None else duration_text(case.warmup_ns / 1e9)
    return f"{' or '.join(ends)} after a warm-up ({warmup})"


def _mix(case: Case) -> str:
    if len(case.scenarios) == 1:
        return case.scenarios[0].name
    return " : ".join(f"{scenario.name} {scenario.weight:g}" for scenario in case.scenarios)


def _probes(cases: Sequence[Case]) -> list[Row]:
    probes = {probe.name: probe for case in cases for probe in case.probes}
    return [("probe", _probe(probe)) for probe in probes.values()]


def _probe(probe: Probe) -> str:
    step = probe.scenario.steps[0]
    rate = load_text.size(probe.workload)
    return f"{probe.name}: {step.method} {step.path}, {rate}, connection {_connection(probe.connection)}"


def _fresh(cases: Sequence[Case]) -> str:
    resets = {case.reset.before for case in cases if case.reset is not None}
    return _each(cases, lambda case: case.fresh) + (
        f", reset before each {', '.join(resets)}" if resets else ""
    )


def _order(study: Study, trials: Sequence[PlannedTrial], *, all_blocks: bool) -> tuple[str, list[Row]]:
    law = f"random in each block, seed {study.seed}" if study.order_by == "blocks" else "as listed"
    blocks: dict[tuple[str, int], list[PlannedTrial]] = {}
    for trial in trials:
        kind = "held out, " if trial.case.held_out else "stacks, " if trial.case.purpose == "stacks" else ""
        blocks.setdefault((kind, trial.block), []).append(trial)
    rows = []
    for (kind, block), members in blocks.items():
        if block > 1 and not all_blocks:
            continue
        names = ", ".join(words.unbroken(f"{trial.position} {trial.case.slug}") for trial in members)
        rows.append((f"  {kind}block {block}: ", names))
    hidden = sum(block > 1 for _, block in blocks)
    if hidden and not all_blocks:
        rows.append(("  ", f"and {_many(hidden, 'more block')} in other orders: -v shows them"))
    return f"order: {law}", rows


def _design(faults: Sequence[DesignFault]) -> tuple[str, list[Row]]:
    notes = sum(fault.is_note for fault in faults)
    count = _many(len(faults) - notes, "remark") if len(faults) > notes else "nothing to improve"
    rows = []
    for fault in sorted(faults, key=lambda fault: fault.is_note):
        rows.append(("  · " if fault.is_note else "  △ ", f"{fault.where}: {fault.message}"))
        rows.append(("    try ", fault.advice))
    return f"design: {count}" + (f", {_many(notes, 'note')}" if notes else ""), rows


def _experiments(cases: Iterable[Case]) -> Mapping[str, list[Case]]:
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        by_name.setdefault(case.experiment, []).append(case)
    return by_name


def _each(cases: Iterable[Case], say: Callable[[Case], str]) -> str:
    """Join the texts of cases: each once, and what they share only at the end."""
    texts = list(dict.fromkeys(say(case) for case in cases))
    if len(texts) == 1:
        return texts[0]
    heads, tails = zip(*(text.partition(",")[::2] for text in texts), strict=True)
    if len(set(tails)) == 1 and all(tails):
        return f"{' | '.join(heads)},{tails[0]}"
    return " | ".join(texts)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _wrapped(prefix: str, text: str, width: int) -> list[str]:
    indent = " " * len(prefix)
    wrapped = wrap(text, width, initial_indent=prefix, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace(words.NO_BREAK, " ") for line in wrapped] or [prefix.rstrip()]
