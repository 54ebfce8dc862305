"""The summary of one load: the answer first, then whether it can be trusted, then the figures.

`summary` is a pure function from the engine's result to lines; printing stands apart from it.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from loadlens.machine import calibration
from loadlens.machine.calibration import Calibration
from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided
from loadlens.model.report import State
from loadlens.model.result import (
    Distribution,
    EngineResult,
    Generator,
    Quantity,
    StreamResult,
    TlsSessions,
)
from loadlens.model.workload import Closed, Plan
from loadlens.present import failure_text, load_text, numbers, words
from loadlens.present.numbers import Scale
from loadlens.report.write.terminal.printing import print_lines

QUANTILES = ("p50", "p90", "p99", "p999")
ALL_QUANTILES = ("p50", "p75", "p90", "p95", "p99", "p999")
NAMES = {"p999": "p99.9"}
PER_SECOND = numbers.scale("1/s")
STRIP_WIDTH = 32
WIDTH = 80
SAMPLES = 5  # of each failing check; the JSON holds them all
OWN_LIMITS = {
    "own_descriptors": "file descriptors",
    "own_ports": "local ports",
    "own_memory": "memory",
}
# The parts of a request in their order; one that did not occur is not shown.
PHASES_IN_WORDS = {
    "connect": "connecting",
    "tls": "TLS handshake, after connecting",
    "first_byte": "first byte, from when the request could leave",
    "last_byte": "last byte, from the first",
}
REASONS = 3  # of each class of failures; -v shows the samples


@dataclass(frozen=True, slots=True)
class Verdict:
    """One badge: word and glyph, never colour alone."""

    state: State
    text: str

    def __str__(self) -> str:
        return f"{words.GLYPHS[self.state]} {self.text}"


def print_hit(
    result: EngineResult,
    plan: Plan,
    *,
    calibrated: Calibration | None = None,
    record: Path | None = None,
    quiet: bool = False,
    verbose: bool = False,
) -> None:
    """Print the summary on stdout."""
    lines = summary(result, plan, calibrated=calibrated, record=record, quiet=quiet, verbose=verbose)
    print_lines(lines, headings=[0])


def summary(
    result: EngineResult,
    plan: Plan,
    *,
    calibrated: Calibration | None = None,
    record: Path | None = None,
    quiet: bool = False,
    verbose: bool = False,
) -> list[str]:
    """Return the lines of the summary of a plan with one load; `calibrated`: what doctor found here."""
    stream = result.streams[0]
    lines = [headline(stream, result), "   ".join(map(str, verdicts(stream, result)))]
    lines += [f"  {reason}" for reason in (*_reasons(stream, result), *_changes(plan, result))]
    if quiet:
        return lines
    lines += ["", _load_line(plan, result), ""]
    if stream.law_holds:
        lines += _figures(stream, result, verbose=verbose)
        lines += _failures(stream, verbose=verbose)
        lines += check_rows(stream, verbose=verbose)
        strip = _strip(stream.response_time_s)
        lines += ["", *strip] if strip else []
    lines += ["", *_books(stream, result, plan), *_ceiling(result.generator, calibrated)]
    lines += ["", *_ending(plan, record)]
    return lines


def headline(stream: StreamResult, result: EngineResult) -> str:
    """One sentence: what came back; failures first when there are any."""
    requests = stream.requests
    if not stream.law_holds:
        gap = abs(requests.due - requests.issued - requests.dropped - requests.waiting)
        gap += abs(requests.issued - requests.answered - requests.failed - requests.in_flight)
        return f"■ invalid: {words.plural(gap, 'request')} unaccounted for"
    bad, judged = requests.bad, requests.ended
    rate = numbers.value(stream.throughput_rps.value or 0.0, PER_SECOND)
    limited = result.generator.verdict == "limit"
    speed = f"{rate} /s is a lower bound: the generator was the limit" if limited else f"{rate} requests/s"
    if requests.due == 0:
        return "no request was due"
    if judged == 0:
        waiting = requests.in_flight + requests.waiting
        return f"no answers: {numbers.count(waiting)} requests still unanswered at the end"
    if bad == judged:
        return f"every request failed: {_failure_words(stream)}"
    times = stream.response_time_s
    parts = []
    if bad:
        parts.append(f"{_percent(bad / judged)} % failed ({_failure_words(stream)})")
    parts.append(speed)
    for time, phrase in ((times.p50, "half within {}"), (times.p99, "99 % within {}")):
        if time.value is not None:
            parts.append(phrase.format(numbers.with_unit(time.value, "s")))
    if not bad:
        parts.append(f"no failures{_missed(stream)}")
    return "; ".join(parts[:2] if bad else parts[:1]) + "; " + ", ".join(parts[2:] if bad else parts[1:])


def verdicts(stream: StreamResult, result: EngineResult) -> list[Verdict]:
    """Whether the result can be trusted, in badges; the reasons stand on lines of their own."""
    generator = result.generator
    verdict_of: dict[str | None, Verdict] = {
        "kept_up": Verdict("ok", "generator kept up"),
        "late": Verdict("caution", "generator late"),
        "starved": Verdict("caution", "generator starved of CPU"),
        "limit": Verdict("bad", "generator was the limit"),
    }
    kept_up = verdict_of[generator.verdict]
    little = stream.little
    books = (
        Verdict("bad", "books do not balance")
        if not stream.law_holds
        else Verdict("caution", "Little's law does not hold")
        if little.verdict == "broken"
        else Verdict("ok", "books balance")
    )
    trusted = stream.law_holds and generator.verdict == "kept_up" and little.verdict != "broken"
    if not stream.law_holds or _own_limits(stream):
        valid = Verdict("bad", "invalid")
    elif result.status == "stopped":
        valid = Verdict("caution", "stopped early")
    elif trusted:
        valid = Verdict("ok", "valid")
    else:
        valid = Verdict("caution", "valid with a caveat")
    return [valid, books, kept_up, Verdict("caution", "1 trial")]


def _reasons(stream: StreamResult, result: EngineResult) -> list[str]:
    found = [*result.generator.reasons, *result.reasons]
    little = stream.little
    if little.verdict == "broken" and little.ratio is not None:
        found.append(
            f"throughput × time is {little.ratio:.3g} of what was in flight: "
            "the load was not steady, or something was slow to be counted"
        )
    if not stream.law_holds:
        found.append(stream.law)
    found += [
        f"the generator ran out of {what}: {numbers.count(count)} requests never reached the service"
        for what, count in _own_limits(stream)
    ]
    return found


def _own_limits(stream: StreamResult) -> list[tuple[str, int]]:
    """What the generator ran out of, and how many requests failed by it."""
    return [
        (words_of, stream.errors[kind].count)
        for kind, words_of in OWN_LIMITS.items()
        if kind in stream.errors
    ]


def _changes(plan: Plan, result: EngineResult) -> list[str]:
    """That the figures are of several levels of load, where they are."""
    workload, begin_ns = plan.streams[0].workload, plan.warmup_ns
    end_ns = begin_ns + max(1, round(1e9 * result.measured_s))
    levels = workload.profile
    if not workload.is_shaped or (levels is not None and levels.is_level(begin_ns, end_ns)):
        return []
    return ["the load changed by plan: figures are of all its levels together, throughput has no interval"]


def figure(metric: str, unit: str, quantity: Quantity, samples: int) -> Figure:
    """A quantity of the engine's result as a figure."""
    if quantity.value is None:
        if quantity.undecided:
            return Undecided(metric, unit, quantity.undecided)
        return NotMeasured(metric, "no request was answered")
    return Estimate(
        metric,
        unit,
        quantity.value,
        quantity.low,
        quantity.high,
        trials=1,
        samples=samples,
        method="long-run variance, within one trial",
    )


def _figures(stream: StreamResult, result: EngineResult, *, verbose: bool) -> Iterator[str]:
    is_open = stream.kind == "open"
    response, service = stream.response_time_s, stream.service_time_s
    keys = ALL_QUANTILES if verbose else QUANTILES
    scale = numbers.scale("s", [response.quantity(key).value for key in keys])
    yield f"{'':<15}{'value':>13}{'95 % interval':>17}    from"
    rate = numbers.show(figure("throughput", "1/s", stream.throughput_rps, response.count), PER_SECOND)
    yield _row("throughput", rate, f"{numbers.count(response.count)} successes in {result.measured_s:.3g} s")
    what = " of successes" if stream.requests.bad else ""
    yield f"  response time{what}, {'due' if is_open else 'sent'} to done"
    yield from _quantile_rows(response, scale, keys)
    if response.max is not None:
        yield _plain_row("largest", f"{numbers.value(response.max, scale)} {scale.name}", "one request")
    if is_open:
        yield f"  service time{what}, sent to done"
        yield from _quantile_rows(service, scale, keys)
    phases = stream.phases_s
    timed = {"connect": phases.connect, "tls": phases.tls}
    timed |= {"first_byte": phases.first_byte, "last_byte": phases.last_byte}
    parts = {name: times for name, times in timed.items() if times is not None and times.count}
    if verbose:
        for name, times in parts.items():
            yield f"  {PHASES_IN_WORDS[name]}"
            shown = numbers.scale("s", [times.p99.value, times.mean.value])
            yield from _quantile_rows(times, shown, ("p50", "p99"))
    elif parts:
        yield from _phase_rows(parts)
    if phases.resolve is not None:
        took = numbers.with_unit(phases.resolve, "s")
        yield _plain_row("name lookup", took, "once, before the start")


def _phase_rows(parts: Mapping[str, Distribution]) -> Iterator[str]:
    """The parts of a request: means, which add up, and quantiles, which do not."""
    yield f"  {'parts of it':<13}{'mean':>13}{'p50':>13}{'p99':>13}    of"
    for name, times in parts.items():
        cells = [_time_in_words(quantity) for quantity in (times.mean, times.p50, times.p99)]
        noun = "connection" if name in ("connect", "tls") else "request"
        row = f"    {words.PHASES[name]:<13}{cells[0]:>11}{cells[1]:>13}{cells[2]:>13}"
        yield f"{row}    {words.plural(times.count, noun)}"


def _time_in_words(quantity: Quantity) -> str:
    return "undecided" if quantity.value is None else numbers.with_unit(quantity.value, "s")


def _quantile_rows(times: Distribution, scale: Scale, keys: tuple[str, ...]) -> Iterator[str]:
    mean = numbers.show(figure("mean", "s", times.mean, times.count), scale)
    yield _row("  mean", mean, f"{numbers.count(times.independent or 0)} independent")
    for key in keys:
        quantity = times.quantity(key)
        shown = numbers.show(figure(key, "s", quantity, times.count), scale)
        above = quantity.independent_above
        origin = f"{numbers.count(above)} independent above it" if key in ("p99", "p999") and above else ""
        if shown.state != "measured":
            origin = shown.origin.replace(" independent requests above it", " above it")
        yield _row(f"  {NAMES.get(key, key)}", shown, origin)
    if times.censored:
        unanswered = numbers.count(times.censored)
        yield f"    {unanswered} unanswered in time count as longer than they had lasted"


def _row(name: str, shown: numbers.Shown, origin: str) -> str:
    return f"  {name:<13}{shown.short:>13}{shown.interval:>17}    {origin}".rstrip()


def _plain_row(name: str, value: str, origin: str) -> str:
    return f"    {name:<11}{value:>13}{'':>17}    {origin}".rstrip()


def _failures(stream: StreamResult, *, verbose: bool) -> Iterator[str]:
    requests = stream.requests
    rows = []
    for name, error in stream.errors.items():
        rows.append(
            f"{name.replace('_', ' ')} {numbers.count(error.count)}"
            f" (first at {error.first_s:.1f} s, last {error.last_s:.1f} s)"
        )
        rows += _reason_rows(name, error.samples)
        if verbose:
            rows += [f"    {words.plain(sample)}" for sample in error.samples]
    if requests.unexpected_status:
        codes = ", ".join(f"{code}: {numbers.count(n)}" for code, n in sorted(stream.status.items()))
        rows.append(f"unexpected status {numbers.count(requests.unexpected_status)} (all answers: {codes})")
    if requests.check_failed:
        rows.append(f"check failed {numbers.count(requests.check_failed)}")
    for index, row in enumerate(rows):
        yield f"  {'failed' if index == 0 else '':<10}{row}"


def _reason_rows(name: str, samples: Sequence[str]) -> list[str]:
    """Why requests of a class failed, where its name does not say it, and one thing to try for each."""
    rows = []
    for reason in failure_text.reasons(name, samples)[:REASONS]:
        rows += textwrap.wrap(
            words.plain(reason.words), WIDTH - 14, initial_indent="  ", subsequent_indent="  "
        )
        if reason.for_hit:
            rows += textwrap.wrap(
                f"try {reason.for_hit}", WIDTH - 14, initial_indent="  ", subsequent_indent="      "
            )
    return rows


def check_rows(stream: StreamResult, *, verbose: bool) -> Iterator[str]:
    """A table of the checks of the load's steps; under one that failed, the first answer that did."""
    checks = [(step, check) for step in stream.steps for check in step.checks]
    is_one_step = len(stream.steps) == 1
    for index, (step, check) in enumerate(checks):
        if index == 0:
            yield f"  {'checks':<38}{'passed':>10}{'failed':>10}{'share':>9}"
        name = words.plain(check.name if is_one_step else f"{step.name}: {check.name}")
        share = f"{_percent(check.failed / check.judged)} %" if check.judged else "none"
        row = f"    {words.cut(name, 34):<36}{numbers.count(check.passed):>10}"
        row += f"{numbers.count(check.failed):>10}{share:>9}"
        apart = f"  {numbers.count(check.not_judged)} not judged" if check.not_judged else ""
        yield row + apart
        for sample in check.samples[: SAMPLES if verbose else 1]:
            yield from textwrap.wrap(
                words.plain(sample), WIDTH - 1, initial_indent=f"{'':<6}", subsequent_indent=f"{'':<8}"
            )
        if check.failed > 1:
            yield f"{'':<6}from {check.first_s:.1f} s to {check.last_s:.1f} s"


def _missed(stream: StreamResult) -> str:
    """The check that most answers missed although each was as expected: they were late."""
    checks = [check for step in stream.steps for check in step.checks if check.failed]
    if not checks:
        return ""
    worst = max(checks, key=lambda check: check.failed / check.judged)
    return f", but {_percent(worst.failed / worst.judged)} % missed {words.cut(words.plain(worst.name), 40)}"


def _percent(share: float) -> str:
    """Two digits, more where they would say that all is lost: 1.3, 56, 99.6, 100."""
    percent = 100 * share
    return f"{percent:.2g}" if percent < 99.5 else f"{percent:.4g}"


def _failure_words(stream: StreamResult) -> str:
    requests = stream.requests
    parts = [(block.count, name.replace("_", " ")) for name, block in stream.errors.items()]
    if requests.unexpected_status:
        codes = "/".join(code for code in sorted(stream.status) if not 200 <= int(code) < 400)
        parts.append((requests.unexpected_status, f"status {codes}" if codes else "unexpected status"))
    if requests.check_failed:
        parts.append((requests.check_failed, "check failed"))
    return ", ".join(f"{name} {numbers.count(n)}" for n, name in sorted(parts, reverse=True)[:3])


def _strip(times: Distribution) -> list[str]:
    """The shape of all response times on one log axis."""
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
    return [f"  {first} {drawn} {last} (log)"]


def _tls(tls: TlsSessions) -> Iterator[str]:
    """How connections were secured, and whether anybody looked at the certificate."""
    made = f"{numbers.count(tls.full)} new" + (
        f", {numbers.count(tls.resumed)} resumed" if tls.resumed else ""
    )
    agreed = " and ".join(name.replace("_", " ", 1).replace("v1 ", "v1.") for name in tls.sessions)
    yield f"  TLS        sessions: {made}" + (f" · {agreed}" if agreed else "")
    if not tls.verified:
        yield "  TLS        the certificate was not verified (--insecure): this could be any server"


def _books(stream: StreamResult, result: EngineResult, plan: Plan) -> Iterator[str]:
    requests, connections = stream.requests, stream.connections
    n = {key: numbers.count(value) for key, value in asdict(requests).items()}
    if stream.kind == "open" or requests.waiting or requests.dropped:
        yield f"  due {n['due']} = issued {n['issued']} + dropped {n['dropped']} + waiting {n['waiting']}"
    ends = f"answered {n['answered']} + failed {n['failed']} + in flight {n['in_flight']}"
    yield f"  issued {n['issued']} = {ends}"
    parts = [f"ok {n['ok']}"]
    parts += [
        f"{name.replace('_', ' ')} {n[name]}"
        for name in ("unexpected_status", "check_failed")
        if getattr(requests, name)
    ]
    warm = stream.in_warmup.answered
    late = stream.after_end.answered
    apart = [f"{numbers.count(n)} {when}" for n, when in ((warm, "in warm-up"), (late, "after the end")) if n]
    yield f"  answered = {' + '.join(parts)}" + (f" ({', '.join(apart)})" if apart else "")
    if connections is not None:
        closed = ((connections.closed_by_server, "the server"), (connections.closed_by_error, "errors"))
        ended = [f"{numbers.count(count)} closed by {side}" for count, side in closed if count]
        reopened = "" if connections.opened > connections.wanted else ", none reopened"
        yield "  " + ", ".join([f"{numbers.count(connections.opened)} connections{reopened}", *ended])
    if stream.tls is not None:
        yield from _tls(stream.tls)
    little = stream.little
    if little.ratio is not None:
        holds = {"holds": "holds", "broken": "does not hold"}.get(little.verdict, "cannot be judged")
        yield f"  check      throughput × time / in flight = {little.ratio:.3f}: Little's law {holds}"
    generator = result.generator
    lag = "not measured" if generator.lag_p99_s is None else numbers.with_unit(generator.lag_p99_s, "s")
    limit = generator.lag_limit_s
    allowed = f" (limit {numbers.with_unit(limit, 's')})" if limit is not None else ""
    threads = generator.threads
    of = f"{threads} thread{'s' if threads != 1 else ''}"
    busy = "not measured" if generator.busy is None else f"{100 * generator.busy:.0f} %"
    yield f"  generator  late {lag} at p99{allowed}, busy {busy} of {of}"


def _ceiling(generator: Generator, calibrated: Calibration | None) -> Iterator[str]:
    """How far the generator was from the most it can do, by its own busy share and by the calibration."""
    if generator.ceiling_rps is not None:
        most = numbers.value(generator.ceiling_rps, PER_SECOND)
        yield f"  ceiling    at this cost a request, these threads could do about {most} /s"
    reached = calibration.reach(generator.requests_per_s, generator.threads, calibrated)
    if reached is None:
        yield "             this machine is not calibrated: loadlens doctor"
        return
    of = numbers.value(reached.ceiling_rps, PER_SECOND)
    day = words.plain(reached.made[:10])
    yield f"             {100 * reached.share:.0f} % of the {of} /s that doctor measured here on {day}"


def _load_line(plan: Plan, result: EngineResult) -> str:
    stream = plan.streams[0]
    step, workload = stream.scenarios[0].steps[0], stream.workload
    if isinstance(workload, Closed):
        noun = "connection" if workload.profile is None else "user"
        size = " · ".join(
            part for part in (load_text.size(workload, noun=noun), load_text.pauses(workload)) if part
        )
        size = f"closed loop · {size}"
    else:
        size = f"open loop · {load_text.size(workload)} · at most {workload.max_in_flight} at once"
    warm = f" after {numbers.duration(result.warmup_s)} warm-up" if result.warmup_s else ""
    path = words.cut(words.plain(step.path), 40)
    return f"{step.method} {path} · {size} · {result.measured_s:.1f} s{warm}"


def _ending(plan: Plan, record: Path | None) -> Iterator[str]:
    yield "Not measured: variation between runs (1 trial), the server inside, capacity."
    if record is None:
        yield "Record   none (-o DIR keeps one)"
    else:
        yield f"Record   {record}"
