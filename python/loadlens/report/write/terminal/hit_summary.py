"""The screen of one load: some four lines that answer it, and what is worth a look; `-v` adds every figure.

`summary` is a pure function from the engine's result to lines; `hit_details` has the figures behind `-v`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from loadlens.machine.calibration import Calibration
from loadlens.model.report import ObjectiveRow
from loadlens.model.result import Distribution, EngineResult, StreamResult
from loadlens.model.workload import Closed, Plan
from loadlens.present import failure_text, load_text, numbers, objective_text, quotes, terminal, words
from loadlens.report.write.hit_figures import PER_SECOND, figure
from loadlens.report.write.terminal import hit_details
from loadlens.report.write.terminal.node_rows import node_rows
from loadlens.report.write.terminal.printing import print_lines

HEADLINE_QUANTILES = ("p50", "p95", "p99")
GAP = "   "  # between cells of a line
STRIP_WIDTH = 32
SAMPLES = 5  # of each failing check; the JSON holds them all
REASONS = 3  # of each class of failures; -v shows the samples
QUOTES = 3  # of failing answers, each of another status; -v shows all
OWN_LIMITS = {
    "own_descriptors": "file descriptors",
    "own_ports": "local ports",
    "own_memory": "memory",
}
GENERATOR_WORDS = {
    "late": "generator late",
    "starved": "generator starved of CPU",
    "limit": "lower bound: the generator was the limit",
}


@dataclass(frozen=True, slots=True)
class Screen:
    """Content of the summary besides the result of the load.

    Args:
        objectives: The load's objectives, judged.
        redirect: Where every answer pointed to; empty: none was a redirect, or its target is not known.
        calibrated: What `doctor` measured on this machine.
        record: Folder of the record, if one is kept.
        has_hint: Ends with a line that names flags of `hit`.
        quiet: Only the first line and what is worth a look.
        verbose: Every figure.
        width: Columns of the terminal.
    """

    objectives: Sequence[ObjectiveRow] = ()
    redirect: str = ""
    calibrated: Calibration | None = None
    record: Path | None = None
    has_hint: bool = True
    quiet: bool = False
    verbose: bool = False
    width: int = terminal.USUAL_WIDTH


def print_hit(result: EngineResult, plan: Plan, screen: Screen) -> None:
    """Print the summary on stdout."""
    print_lines(summary(result, plan, screen), headings=[0])


def print_unsealed(result: EngineResult) -> None:
    """Print the headline of each load of a trial that the record could not take."""
    for stream in result.streams:
        if stream.role == "load":
            first, *rest = headline(stream, result)
            cells = [f"Last trial, not in the record: {first}", *rest]
            print_lines(list(_folded(cells, terminal.width())))


def summary(result: EngineResult, plan: Plan, screen: Screen = Screen()) -> list[str]:
    """Return the lines of the summary of a plan with one load."""
    return list(terminal.fitted(_lines(result, plan, screen), screen.width))


def _lines(result: EngineResult, plan: Plan, screen: Screen) -> list[str]:
    stream = result.streams[0]
    if result.load_changes and stream.law_holds:
        return _exploratory_lines(stream, result, plan, screen)
    cells = [*headline(stream, result)]
    if stream.law_holds and not screen.quiet:
        cells += _facts(stream, result)
    lines = list(_folded(cells, screen.width))
    lines += cautions(stream, result, plan, screen.redirect)
    lines += map(objective_text.line, screen.objectives)
    if screen.quiet:
        return lines
    if stream.law_holds:
        lines += step_rows(stream, width=screen.width)
        lines += node_rows(result, width=screen.width)
        lines += _failures(stream, verbose=screen.verbose, width=screen.width)
        lines += check_rows(stream, verbose=screen.verbose, width=screen.width)
        lines += _strip(stream.response_time_s)
    lines.append(_load_line(plan, result))
    if screen.verbose or not stream.law_holds:
        lines += ["", *hit_details.figure_rows(stream, result)] if stream.law_holds else [""]
        lines += hit_details.count_rows(stream)
        lines += hit_details.generator_rows(stream, result)
    if screen.verbose and stream.requests.ok:
        lines += hit_details.ceiling_rows(result.generator, screen.calibrated)
        lines.append("Not measured: variation between runs (1 trial), the server inside, capacity.")
    return [*lines, *_ending(stream, screen)]


def _exploratory_lines(stream: StreamResult, result: EngineResult, plan: Plan, screen: Screen) -> list[str]:
    """Return the summary of a load that was changed while it ran: no figure mixes its levels."""
    lines = ["▲ exploratory: the load was changed while it ran, so no figure stands for the whole"]
    lines += [f"  {change.words}" for change in result.load_changes]
    lines += hit_details.count_rows(stream)
    lines += map(objective_text.line, screen.objectives)
    if screen.quiet:
        return lines
    lines += _failures(stream, verbose=screen.verbose, width=screen.width)
    record = [] if screen.record is None else [f"Record   {screen.record}: every second of it"]
    return [*lines, _load_line(plan, result), *record]


def headline(stream: StreamResult, result: EngineResult) -> list[str]:
    """Return the cells of the answer: rate, percentiles, errors, and how far to trust them."""
    requests = stream.requests
    if not stream.law_holds:
        gap = abs(requests.due - requests.issued - requests.dropped - requests.waiting)
        gap += abs(requests.issued - requests.answered - requests.failed - requests.in_flight)
        return [f"■ invalid: {words.plural(gap, 'request')} unaccounted for"]
    if requests.due == 0:
        return ["no request was due"]
    if requests.ok == 0:
        return [_why_none_succeeded(stream), *_trust(stream, result)]
    rate = numbers.show(
        figure("throughput", "1/s", stream.throughput_rps, stream.response_time_s.count), PER_SECOND
    )
    cells = [f"{rate.value} requests/s", *_quantile_cells(stream.response_time_s)]
    share = f" ({_percent(requests.bad / requests.ended)} %)" if requests.bad else ""
    cells.append(f"errors {numbers.count(requests.bad)}{share}")
    return [*cells, *_trust(stream, result)]


def _quantile_cells(times: Distribution) -> Iterator[str]:
    """Return the percentiles that are measured; the largest time stands for those that are not."""
    measured = [key for key in HEADLINE_QUANTILES if times.quantity(key).value is not None]
    if "p95" not in measured and times.p90.value is not None:
        measured.append("p90")
    scale = numbers.scale("s", [times.quantity(key).value for key in measured] or [times.max])
    for key in sorted(measured):
        shown = numbers.show(figure(key, "s", times.quantity(key), times.count), scale)
        interval = f" ({shown.interval})" if key == "p99" and shown.interval else ""
        yield f"{key} {shown.short}{interval}"
    if "p99" not in measured and times.max is not None:
        yield f"max {numbers.with_unit(times.max, 's', on=scale)}"


def _trust(stream: StreamResult, result: EngineResult) -> list[str]:
    """Return how far the figures can be trusted, as one cell; none where only failures speak."""
    if _own_limits(stream) or result.generator.verdict == "stood_still" or result.node_faults:
        return ["■ invalid"]
    if result.status == "stopped":
        return ["▲ stopped early"]
    if not stream.requests.ok:
        return []
    verdict = result.generator.verdict
    if verdict != "kept_up":
        return [f"▲ {GENERATOR_WORDS.get(verdict or '', 'generator not judged')}"]
    return ["▲ not steady"] if stream.little.verdict == "broken" else ["● trustworthy"]


def _why_none_succeeded(stream: StreamResult) -> str:
    """`all 50 requests failed: connection refused`, `all 2 answers had status 404 Not Found`."""
    requests = stream.requests
    if not requests.ended:
        waiting = requests.in_flight + requests.waiting
        return f"no answers: {words.plural(waiting, 'request')} still unanswered at the end"
    parts = _failure_parts(stream)
    if len(parts) == 1:
        count, what = parts[0]
        every = "all " if count > 1 else ""
        if requests.unexpected_status:
            return f"{every}{words.plural(count, 'answer')} had {what}"
        if requests.check_failed:
            return f"{every}{words.plural(count, 'answer')} failed a check"
        return f"{every}{words.plural(count, 'request')} failed: {what}"
    return "no request succeeded: " + ", ".join(f"{what} {numbers.count(n)}" for n, what in parts[:3])


def _failure_parts(stream: StreamResult) -> list[tuple[int, str]]:
    """List what went wrong, most frequent first: classes of errors, unexpected statuses, failed checks."""
    requests = stream.requests
    parts = [(block.count, words.outcome(name)) for name, block in stream.errors.items()]
    if requests.unexpected_status and requests.unexpected_status == requests.answered:
        parts += [(count, f"status {_with_phrase(code)}") for code, count in stream.status.items()]
    elif requests.unexpected_status:
        parts.append((requests.unexpected_status, "unexpected status"))
    if requests.check_failed:
        parts.append((requests.check_failed, "check failed"))
    return sorted(parts, reverse=True)


def _with_phrase(code: str) -> str:
    try:
        return f"{code} {HTTPStatus(int(code)).phrase}"
    except ValueError:
        return code


def cautions(stream: StreamResult, result: EngineResult, plan: Plan, redirect: str = "") -> Iterator[str]:
    """List what is worth a look, each with its glyph."""
    requests = stream.requests
    if is_all_redirects(stream):
        where = f" to {words.plain(redirect)}" if redirect else ""
        yield f"▲ every answer was a redirect{where}: you measured the redirect"
    reasons = result.generator.reasons
    if result.generator.verdict == "stood_still":
        yield f"■ {reasons[0]}: run it again"
        reasons = reasons[1:]
    if requests.ok and result.generator.verdict != "kept_up":
        yield from (f"▲ {reason}" for reason in reasons)
    faults = result.node_faults
    yield from (f"■ {fault}" for fault in faults)
    yield from (f"▲ {reason}" for reason in result.reasons if reason not in faults)
    little = stream.little
    if requests.ok and little.verdict == "broken" and little.ratio is not None:
        yield (
            f"▲ throughput × time is {little.ratio:.3g} of what was in flight: "
            "the load was not steady, or something was slow to be counted"
        )
    if not stream.law_holds:
        yield f"■ {stream.law}"
    for what, count in _own_limits(stream):
        yield f"■ the generator ran out of {what}: {numbers.count(count)} requests never reached the service"
    unsent = ((requests.dropped, "dropped"), (requests.waiting, "still waiting for a connection at the end"))
    parts = [f"{numbers.count(count)} {what}" for count, what in unsent if count]
    if parts:
        yield f"▲ of {words.plural(requests.due, 'request')} due, {words.listed(parts)}"
    yield from _late_checks(stream)
    if stream.tls is not None and not stream.tls.verified:
        yield "▲ the certificate was not verified (--insecure): this could be any server"
    yield from _changes(plan, result)


def is_all_redirects(stream: StreamResult) -> bool:
    """True if there were answers and each was a redirect to another address; 304 is none."""
    codes = [code for code, count in stream.status.items() if count]
    return bool(codes) and all(code.startswith("3") and code not in ("300", "304") for code in codes)


def _late_checks(stream: StreamResult) -> Iterator[str]:
    """Name the check that most answers missed although they count as successes: they were late."""
    checks = [check for step in stream.steps for check in step.checks if check.failed]
    if checks and not stream.requests.bad:
        worst = max(checks, key=lambda check: check.failed / check.judged)
        yield f"▲ {_percent(worst.failed / worst.judged)} % missed {words.cut(words.plain(worst.name), 40)}"


def _facts(stream: StreamResult, result: EngineResult) -> Iterator[str]:
    """Return statuses, connections and bytes per second."""
    if stream.status:
        codes = sorted(stream.status.items())
        yield "status " + " · ".join(f"{code}: {numbers.count(count)}" for code, count in codes)
    connections = stream.connections
    if connections is not None:
        closed = ((connections.closed_by_server, "the server"), (connections.closed_by_error, "errors"))
        ended = [f"{numbers.count(count)} closed by {side}" for count, side in closed if count]
        apart = f" ({', '.join(ended)})" if ended else ""
        yield f"connections {numbers.count(connections.opened)}{apart}"
    if stream.bytes.in_wire and result.elapsed_s > 0:
        yield numbers.with_unit(stream.bytes.in_wire / result.elapsed_s, "bytes/s")


def _folded(cells: Iterable[str], width: int) -> Iterator[str]:
    """Return cells on as few lines as they fit on."""
    line = ""
    for cell in cells:
        if line and len(line) + len(GAP) + len(cell) > width:
            yield line
            line = ""
        line = f"{line}{GAP}{cell}" if line else cell
    if line:
        yield line


def _own_limits(stream: StreamResult) -> list[tuple[str, int]]:
    """List what the generator ran out of, with the number of requests that failed by it."""
    return [
        (words_of, stream.errors[kind].count)
        for kind, words_of in OWN_LIMITS.items()
        if kind in stream.errors
    ]


def _changes(plan: Plan, result: EngineResult) -> list[str]:
    """Say that the figures are of several levels of load, where they are."""
    workload, begin_ns = plan.streams[0].workload, plan.warmup_ns
    end_ns = begin_ns + max(1, round(1e9 * result.measured_s))
    levels = workload.profile
    if not workload.is_shaped or (levels is not None and levels.is_level(begin_ns, end_ns)):
        return []
    return ["the load changed by plan: figures are of all its levels together, throughput has no interval"]


def _failures(stream: StreamResult, *, verbose: bool, width: int) -> Iterator[str]:
    requests = stream.requests
    rows = []
    for name, error in stream.errors.items():
        rows.append(
            f"{words.outcome(name)} {numbers.count(error.count)}"
            f" (first at {error.first_s:.1f} s, last {error.last_s:.1f} s)"
        )
        rows += _reason_rows(name, error.samples, width)
        if verbose:
            rows += [f"    {words.plain(sample)}" for sample in error.samples]
    if requests.unexpected_status and requests.ok:
        rows.append(f"unexpected status {numbers.count(requests.unexpected_status)}")
    if requests.check_failed and requests.ok:
        rows.append(f"check failed {numbers.count(requests.check_failed)}")
    for line in quotes.by_status(stream.failing_answers, stream.status)[: None if verbose else QUOTES]:
        rows += textwrap.wrap(line, width - 12, subsequent_indent="  ")
    for index, row in enumerate(rows):
        yield f"  {'failed' if index == 0 else '':<10}{row}"


def _reason_rows(name: str, samples: Sequence[str], width: int) -> list[str]:
    """Return why requests of a class failed where its name does not show it, with one thing to try."""
    rows = []
    for reason in failure_text.reasons(name, samples)[:REASONS]:
        rows += textwrap.wrap(
            words.plain(reason.words), width - 14, initial_indent="  ", subsequent_indent="  "
        )
        if reason.for_hit:
            rows += textwrap.wrap(
                f"try {reason.for_hit}", width - 14, initial_indent="  ", subsequent_indent="      "
            )
    return rows


def step_rows(stream: StreamResult, *, width: int) -> Iterator[str]:
    """Return a table of the requests of a load of several: how many, errors, rate and times of each."""
    if len(stream.steps) < 2:
        return
    room = width - 50
    yield f"  {'':<{room}}{'requests':>10}{'errors':>8}{'ok/s':>9}{'p50':>10}{'p95':>10}"
    times = [step.response_time_s.quantity(key).value for step in stream.steps for key in ("p50", "p95")]
    scale = numbers.scale("s", times)
    for step in stream.steps:
        done = step.response_time_s
        rate = figure("throughput", "1/s", step.throughput_rps, done.count)
        shown = [
            numbers.show(figure(key, "s", done.quantity(key), done.count), scale) for key in ("p50", "p95")
        ]
        name = words.cut(words.plain(step.name), room - 2)
        cells = [each.short if each.state != "not measured" else "none" for each in shown]
        row = f"  {name:<{room}}{numbers.count(step.requests.ended):>10}{numbers.count(step.requests.bad):>8}"
        yield f"{row}{numbers.show(rate, PER_SECOND).value:>9}{cells[0]:>10}{cells[1]:>10}"


def check_rows(stream: StreamResult, *, verbose: bool, width: int) -> Iterator[str]:
    """Return a table of the checks of the load's steps; under one that failed, the first answer that did."""
    checks = [(step, check) for step in stream.steps for check in step.checks]
    is_one_step = len(stream.steps) == 1
    apart = [f"  {numbers.count(n)} not judged" if (n := check.not_judged) else "" for _, check in checks]
    room = width - 33 - max(11, *map(len, apart), 0)  # columns of the name
    for index, (step, check) in enumerate(checks):
        if index == 0:
            yield f"  {'checks':<{room + 2}}{'passed':>10}{'failed':>10}{'share':>9}"
        name = words.plain(check.name if is_one_step else f"{step.name}: {check.name}")
        share = f"{_percent(check.failed / check.judged)} %" if check.judged else "none"
        row = f"    {words.cut(name, room - 2):<{room}}{numbers.count(check.passed):>10}"
        row += f"{numbers.count(check.failed):>10}{share:>9}"
        yield row + apart[index]
        for sample in check.samples[: SAMPLES if verbose else 1]:
            yield from textwrap.wrap(
                words.plain(sample), width, initial_indent=f"{'':<6}", subsequent_indent=f"{'':<8}"
            )
        if check.failed > 1:
            yield f"{'':<6}from {check.first_s:.1f} s to {check.last_s:.1f} s"


def _percent(share: float) -> str:
    """Two digits, more where they would say that all is lost: 1.3, 56, 99.6, 100."""
    percent = 100 * share
    return f"{percent:.2g}" if percent < 99.5 else f"{percent:.4g}"


def _strip(times: Distribution) -> list[str]:
    """Return the shape of all response times on one log axis."""
    bins = [(upper, count) for upper, count in times.histogram or () if count and upper > 0]
    if len(bins) < 2:
        return []
    low, high = math.log10(bins[0][0]), math.log10(bins[-1][0])
    columns = [0] * STRIP_WIDTH
    for upper, count in bins:
        columns[min(STRIP_WIDTH - 1, int((math.log10(upper) - low) / (high - low) * STRIP_WIDTH))] += count
    top = max(columns)
    drawn = "".join(" " if not n else words.BLOCKS[math.ceil(7 * n / top)] for n in columns)
    first, last = (numbers.with_unit(value, "s") for value in (bins[0][0], bins[-1][0]))
    return [f"{first} {drawn} {last} (log)"]


def _load_line(plan: Plan, result: EngineResult) -> str:
    stream = plan.streams[0]
    workload = stream.workload
    if isinstance(workload, Closed):
        noun = "connection" if workload.profile is None else "user"
        size = " · ".join(
            part for part in (load_text.size(workload, noun=noun), load_text.pauses(workload)) if part
        )
        size = f"closed loop · {size}"
    else:
        size = f"open loop · {load_text.size(workload)} · at most {workload.max_in_flight} at once"
    warm = f" after {numbers.duration(result.warmup_s)} warm-up" if result.warmup_s else ""
    return f"{load_text.requests(stream.scenarios)} · {size} · {result.measured_s:.1f} s{warm}"


def _ending(stream: StreamResult, screen: Screen) -> Iterator[str]:
    """Return where the record is, and one hint."""
    if screen.record is not None:
        yield f"Record   {screen.record}"
    if not screen.has_hint:
        return
    p99 = stream.response_time_s.p99
    if stream.requests.ok and p99.value is None and p99.undecided:
        yield f"p99 is undecided: {p99.undecided}"
    rest = [] if screen.verbose else ["-v: all figures"]
    rest += [] if screen.record is not None else ["-o DIR: keep the record"]
    if rest:
        yield GAP.join(rest)
