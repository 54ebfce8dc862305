"""The summary of a load that another program made: its own figures, and what it does not report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from loadlens.model.result import ByteCounts, EngineResult, ExternalLoad
from loadlens.model.workload import Closed, Plan
from loadlens.present import load_text, numbers, terminal, words
from loadlens.present.numbers import Scale
from loadlens.report.write.terminal.printing import print_lines

ROWS = {
    "mean": "mean",
    "p50": "p50",
    "p75": "p75",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p999": "p99.9",
    "max": "largest",
}
PER_SECOND = numbers.scale("1/s")


def print_driven(
    result: EngineResult, plan: Plan, *, record: Path | None = None, quiet: bool = False
) -> None:
    """Print the summary on stdout, and where the record is."""
    lines = summary(result, plan, quiet=quiet, width=terminal.width())
    if record is not None:
        lines.append(f"Record: {record}")
    print_lines(lines, headings=[0])


def summary(
    result: EngineResult, plan: Plan, *, quiet: bool = False, width: int = terminal.USUAL_WIDTH
) -> list[str]:
    """Return the lines of the summary."""
    return list(terminal.fitted(_lines(result, plan, quiet=quiet), width))


def _lines(result: EngineResult, plan: Plan, *, quiet: bool) -> list[str]:
    load, driver = result.external, result.driver
    assert load is not None, "called for loads of other programs only"
    assert driver is not None
    lines = [
        _headline(load, driver.name, result.measured_s),
        f"{words.CAUTION} reported by {words.plain(driver.version or driver.name)}, accounting not checked   "
        f"{words.CAUTION} 1 trial"
        + (f"   {words.CAUTION} stopped early" if result.status == "stopped" else ""),
        *(f"  {words.plain(note)}" for note in result.generator.reasons),
    ]
    if quiet:
        return lines
    return [
        *lines,
        "",
        _load_line(plan, result.measured_s),
        "",
        *_times(load, driver.rounding_s),
        *_failures(load),
        *_bytes(load.bytes),
        *_cpu(result.generator.cpu_s, driver.ran_s),
        "",
        f"  command    {words.plain(shlex.join(driver.command))}",
        (
            f"Not reported by {driver.name}: what was due and sent, how late it was itself, intervals, "
            "response time from due."
        ),
    ]


def _headline(load: ExternalLoad, name: str, seconds: float) -> str:
    requests, times = load.requests, load.service_time_s
    parts = [f"{numbers.count(requests.answered)} answers in {seconds:.3g} s by {name}"]
    rate = load.throughput_rps.value
    if rate is not None:
        parts.append(f"{numbers.value(rate, PER_SECOND)} successes/s")
    for key, phrase in (("p50", "half within {}"), ("p99", "99 % within {}")):
        value = None if times is None else times.value(key)
        if value is not None:
            parts.append(phrase.format(numbers.with_unit(value, "s")))
    bad = requests.unexpected_status
    if requests.failed or bad:
        parts.append(f"{numbers.count(requests.failed + (bad or 0))} failed")
    return ", ".join(parts)


def _load_line(plan: Plan, seconds: float) -> str:
    stream = plan.streams[0]
    step, workload = stream.scenarios[0].steps[0], stream.workload
    noun = "connection" if isinstance(workload, Closed) else "request"
    path = words.cut(words.plain(step.path), 40)
    return f"{step.method} {path} · closed loop · {load_text.size(workload, noun=noun)} · {seconds:.1f} s"


def _times(load: ExternalLoad, rounding_s: Mapping[str, float]) -> Iterator[str]:
    times = load.service_time_s
    if times is None:
        yield "  service time: not reported"
        return
    shown = {key: times.value(key) for key in ROWS}
    scale: Scale = numbers.scale("s", shown.values())
    yield "  service time of answers, sent to done"
    for key, name in ROWS.items():
        value = shown[key]
        text = "not reported" if value is None else f"{numbers.value(value, scale)} {scale.name}"
        yield f"    {name:<11}{text:>13}"
    if times.censored:
        yield f"    {numbers.count(times.censored)} answers count as longer than all of these"
    if rounding_s:
        yield f"    rounded by it: {words.rounding(rounding_s)}"


def _failures(load: ExternalLoad) -> Iterator[str]:
    rows = [f"{name} {numbers.count(error.count)}" for name, error in load.errors.items()]
    bad = load.requests.unexpected_status
    if bad:
        rows.append(f"unexpected status {numbers.count(bad)}")
    if rows:
        yield f"  failed     in its words: {', '.join(rows)}"


def _bytes(counts: ByteCounts) -> Iterator[str]:
    counted = ((counts.out, "sent"), (counts.in_wire, "received"), (counts.in_body, "of them bodies"))
    parts = [f"{numbers.count(count)} {name}" for count, name in counted if count is not None]
    if parts:
        yield f"  bytes      {', '.join(parts)}"


def _cpu(cpu_s: float | None, ran_s: float) -> Iterator[str]:
    """Return the CPU time that the system counted, start and end of the program included."""
    if cpu_s is not None and ran_s > 0:
        cores, seconds = numbers.with_unit(cpu_s / ran_s, "cores"), numbers.with_unit(ran_s, "s")
        yield f"  its CPU    {cores} over the {seconds} that it ran"
