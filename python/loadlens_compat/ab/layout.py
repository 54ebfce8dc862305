"""ab's text, line by line as ab 2.4 prints it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from loadlens_compat.ab.figures import AbFigures, Spread, milliseconds

PERCENTS = (50, 66, 75, 80, 90, 95, 98, 99)


@dataclass(frozen=True, slots=True)
class Shown:
    """Texts of the lines in addition to the figures, and the choice of lines."""

    host: str
    port: int
    path: str
    concurrency: int
    is_kept: bool = False  # -k
    has_body: bool = False  # -p, -u
    any_length: bool = False  # -l
    percentiles: bool = True  # no -d
    confidence: bool = True  # no -S
    tls: str | None = None  # protocol and cipher suite
    server_name: str | None = None  # asked for in TLS


def text(figures: AbFigures, shown: Shown) -> list[str]:
    """The lines of ab's results, from `Server Software` to the percentiles."""
    lines = [*_of_server(shown), "", *_document(figures, shown), "", *_counts(figures, shown)]
    if figures.total is None:
        return lines
    lines += ["", "Connection Times (ms)", *_times(figures, confidence=shown.confidence)]
    if shown.percentiles and figures.complete > 1:
        lines += ["", "Percentage of the requests served within a certain time (ms)", *_percentiles(figures)]
    return lines


def _of_server(shown: Shown) -> Iterator[str]:
    yield "Server Software:        "
    yield f"Server Hostname:        {shown.host}"
    yield f"Server Port:            {shown.port}"
    if shown.tls is not None:
        yield f"SSL/TLS Protocol:       {shown.tls}"
        if shown.server_name is not None:
            yield f"TLS Server Name:        {shown.server_name}"


def _document(figures: AbFigures, shown: Shown) -> Iterator[str]:
    yield f"Document Path:          {shown.path}"
    length = "Variable" if shown.any_length else f"{figures.document_length} bytes"
    yield f"Document Length:        {length}"


def _counts(figures: AbFigures, shown: Shown) -> Iterator[str]:
    seconds, complete = figures.seconds, figures.complete
    yield f"Concurrency Level:      {shown.concurrency}"
    yield f"Time taken for tests:   {seconds:.3f} seconds"
    yield f"Complete requests:      {complete}"
    yield f"Failed requests:        {figures.failed}"
    if figures.failed:
        yield (
            f"   (Connect: {figures.connect_failed}, Receive: {figures.receive_failed}, "
            f"Length: {figures.length_failed}, Exceptions: {figures.exceptions})"
        )
    if figures.not_2xx:
        yield f"Non-2xx responses:      {figures.not_2xx}"
    if shown.is_kept:
        yield f"Keep-Alive requests:    {figures.kept}"
    yield f"Total transferred:      {figures.received} bytes"
    if shown.has_body:
        yield f"Total body sent:        {figures.sent}"
    yield f"HTML transferred:       {figures.body} bytes"
    if not seconds or not complete:
        return
    yield f"Requests per second:    {complete / seconds:.2f} [#/sec] (mean)"
    yield f"Time per request:       {shown.concurrency * seconds * 1000 / complete:.3f} [ms] (mean)"
    yield (
        f"Time per request:       {seconds * 1000 / complete:.3f} [ms] (mean, across all concurrent requests)"
    )
    yield f"Transfer rate:          {figures.received / 1024 / seconds:.2f} [Kbytes/sec] received"
    if shown.has_body:
        yield f"                        {figures.sent / 1024 / seconds:.2f} kb/s sent"
        yield f"                        {(figures.received + figures.sent) / 1024 / seconds:.2f} kb/s total"


def _times(figures: AbFigures, *, confidence: bool) -> Iterator[str]:
    rows = [
        ("Connect:", "the initial connection time", figures.connect),
        ("Processing:", "the processing time", figures.processing),
        ("Waiting:", "the waiting time", figures.waiting),
        ("Total:", "the total time", figures.total),
    ]
    yield "              min  mean[+/-sd] median   max" if confidence else "              min   avg   max"
    for name, _, times in rows:
        if times is not None:
            yield f"{name:<12}{_row(times, confidence=confidence)}"
    if confidence:
        for _, what, times in rows:
            if times is not None:
                yield from _doubt(what, times)


def _row(times: Spread, *, confidence: bool) -> str:
    least, mean, median, most = map(milliseconds, (times.least, times.mean, times.median, times.most))
    if not confidence:
        return f"{least:5d} {mean:5d}{most:5d}"
    return f"{least:5d} {mean:4d} {times.deviation / 1000:5.1f} {median:6d} {most:7d}"


def _doubt(what: str, times: Spread) -> Iterator[str]:
    """Yield ab's warning if mean and median (in ms) are more than one or two deviations apart."""
    apart, deviation = abs(milliseconds(times.mean) - milliseconds(times.median)), times.deviation / 1000
    if apart > 2 * deviation:
        yield f"ERROR: The median and mean for {what} are more than twice the standard"
        yield "       deviation apart. These results are NOT reliable."
    elif apart > deviation:
        yield f"WARNING: The median and mean for {what} are not within a normal deviation"
        yield "        These results are probably not that reliable."


def _percentiles(figures: AbFigures) -> Iterator[str]:
    times = figures.totals_us
    for percent in PERCENTS:
        yield f"  {percent}%  {milliseconds(times[len(times) * percent // 100]):5d}"
    yield f" 100%  {milliseconds(times[-1]):5d} (longest request)"
