"""Figures of one load behind `hit -v`: every percentile, the parts of a request, counts, the ceiling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from loadlens.machine import calibration
from loadlens.machine.calibration import Calibration
from loadlens.model.result import (
    Distribution,
    EngineResult,
    Generator,
    Quantity,
    RequestCounts,
    StreamResult,
    TlsSessions,
)
from loadlens.present import numbers, words
from loadlens.present.numbers import Scale
from loadlens.report.write.hit_figures import PER_SECOND, figure

QUANTILES = ("p50", "p75", "p90", "p95", "p99", "p999")
NAMES = {"p999": "p99.9"}


def figure_rows(stream: StreamResult, result: EngineResult) -> Iterator[str]:
    """Return a table of throughput, times and the parts of a request; nothing without a success."""
    if not stream.requests.ok:
        return
    is_open = stream.kind == "open"
    response, service = stream.response_time_s, stream.service_time_s
    scale = numbers.scale("s", [response.quantity(key).value for key in QUANTILES])
    yield f"{'':<15}{'value':>13}{'95 % interval':>17}    from"
    rate = numbers.show(figure("throughput", "1/s", stream.throughput_rps, response.count), PER_SECOND)
    yield _row("throughput", rate, f"{numbers.count(response.count)} successes in {result.measured_s:.3g} s")
    what = " of successes" if stream.requests.bad else ""
    yield f"  response time{what}, due to done"
    yield from _quantile_rows(response, scale, stream.requests)
    if response.max is not None:
        yield _plain_row("largest", f"{numbers.value(response.max, scale)} {scale.name}", "one request")
    if is_open:
        yield f"  service time{what}, sent to done"
        yield from _quantile_rows(service, scale, stream.requests)
    phases = stream.phases_s
    timed = {"connect": phases.connect, "tls": phases.tls}
    timed |= {"first_byte": phases.first_byte, "last_byte": phases.last_byte}
    parts = {name: times for name, times in timed.items() if times is not None and times.count}
    if parts:
        yield from _phase_rows(parts)
    if phases.resolve is not None:
        took = numbers.with_unit(phases.resolve, "s")
        yield _plain_row("name lookup", took, "once, before the start")


def _phase_rows(parts: Mapping[str, Distribution]) -> Iterator[str]:
    """Return the parts of a request: means, which add up, and quantiles, which do not."""
    yield f"  {'parts of it':<13}{'mean':>13}{'p50':>13}{'p99':>13}    of"
    for name, times in parts.items():
        cells = [_time_in_words(quantity) for quantity in (times.mean, times.p50, times.p99)]
        noun = "connection" if name in ("connect", "tls") else "request"
        row = f"    {words.PHASES[name]:<13}{cells[0]:>11}{cells[1]:>13}{cells[2]:>13}"
        yield f"{row}    {words.plural(times.count, noun)}"


def _time_in_words(quantity: Quantity) -> str:
    return "undecided" if quantity.value is None else numbers.with_unit(quantity.value, "s")


def _quantile_rows(times: Distribution, scale: Scale, requests: RequestCounts) -> Iterator[str]:
    mean = numbers.show(figure("mean", "s", times.mean, times.count), scale)
    yield _row("  mean", mean, f"{numbers.count(times.independent or 0)} independent")
    for key in QUANTILES:
        quantity = times.quantity(key)
        shown = numbers.show(figure(key, "s", quantity, times.count), scale)
        above = quantity.independent_above
        origin = f"{numbers.count(above)} independent above it" if key in ("p99", "p999") and above else ""
        if shown.state != "measured":
            origin = shown.origin.replace(" independent requests above it", " above it")
        yield _row(f"  {NAMES.get(key, key)}", shown, origin)
    if times.censored:
        censored = numbers.count(times.censored)
        yield f"    {censored} {_how_unanswered(requests)}, counted as at least that long"


def _how_unanswered(requests: RequestCounts) -> str:
    unfinished = requests.in_flight + requests.waiting
    return (
        "timed out or still in flight at the end"
        if requests.failed
        else ("still in flight at the end" if unfinished else "unanswered")
    )


def _row(name: str, shown: numbers.Shown, origin: str) -> str:
    return f"  {name:<13}{shown.short:>13}{shown.interval:>17}    {origin}".rstrip()


def _plain_row(name: str, value: str, origin: str) -> str:
    return f"    {name:<11}{value:>13}{'':>17}    {origin}".rstrip()


def _tls(tls: TlsSessions) -> Iterator[str]:
    """Return how connections were secured, and if the certificate was verified."""
    made = f"{numbers.count(tls.full)} new" + (
        f", {numbers.count(tls.resumed)} resumed" if tls.resumed else ""
    )
    agreed = " and ".join(name.replace("_", " ", 1).replace("v1 ", "v1.") for name in tls.sessions)
    yield f"  TLS        sessions: {made}" + (f" · {agreed}" if agreed else "")
    if not tls.verified:
        yield "  TLS        the certificate was not verified (--insecure): this could be any server"


def count_rows(stream: StreamResult) -> Iterator[str]:
    """Return where every request and connection went."""
    requests, connections = stream.requests, stream.connections
    count = numbers.count
    if stream.kind == "open" or requests.waiting or requests.dropped:
        unsent = f"dropped {count(requests.dropped)} + waiting {count(requests.waiting)}"
        yield f"  due {count(requests.due)} = issued {count(requests.issued)} + {unsent}"
    rest = f"failed {count(requests.failed)} + in flight {count(requests.in_flight)}"
    yield f"  issued {count(requests.issued)} = answered {count(requests.answered)} + {rest}"
    parts = [f"ok {count(requests.ok)}"]
    parts += [
        f"{name} {count(number)}"
        for name, number in (
            ("unexpected status", requests.unexpected_status),
            ("check failed", requests.check_failed),
        )
        if number
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


def generator_rows(stream: StreamResult, result: EngineResult) -> Iterator[str]:
    """Return what speaks for the figures: Little's law, lateness and load of the generator."""
    if not stream.requests.ok:
        return
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
    if generator.verdict == "kept_up":  # otherwise they are shown with the verdict
        yield from (f"             {reason}" for reason in generator.reasons)


def ceiling_rows(generator: Generator, calibrated: Calibration | None) -> Iterator[str]:
    """Return the distance to the generator's ceiling, by its own busy share and by the calibration."""
    if generator.ceiling_rps is not None:
        most = numbers.value(generator.ceiling_rps, PER_SECOND)
        yield f"  ceiling    at this cost per request, these threads could do about {most} /s"
    reached = calibration.reach(generator.requests_per_s, generator.threads, calibrated)
    if reached is None:
        yield "             this machine is not calibrated: loadlens doctor"
        return
    of = numbers.value(reached.ceiling_rps, PER_SECOND)
    day = words.plain(reached.made[:10])
    yield f"             {100 * reached.share:.0f} % of the {of} /s that doctor measured here on {day}"
