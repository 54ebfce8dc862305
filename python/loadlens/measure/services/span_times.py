"""The time of requests, by the spans of the services' own traces.

At each moment the time of a request belongs to the innermost spans under way, to each an equal part if there
are several. With calls one after another this is the time of a span without its children.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Final, Literal, cast

import numpy as np

from loadlens.estimate.interval import Floats, Interval
from loadlens.measure.services.path_templates import fits
from loadlens.model.facts import LabelPart, LabelSplit, SpanPart, SpanRequests
from loadlens.signals.read.spans import Span, one_in, spans
from loadlens.signals.read.trial_series import mean_or_point

if TYPE_CHECKING:
    import polars as pl

    from loadlens.measure.case import CaseMeasures
    from loadlens.model.finding import Figure

FEWEST: Final = 20  # requests of a kind in a trial
MOST_KINDS: Final = 8  # of requests
MOST_PARTS: Final = 40  # of one kind
SLOW: Final = 0.1  # the slowest requests
STRETCHES: Final = 10  # of the measured part, for intervals
Piece = tuple[float, float, float]  # from, to, and the share of that time


@dataclass(frozen=True, slots=True)
class PartKey:
    """Spans that belong together."""

    service: str
    name: str
    kind: str


@dataclass(slots=True)
class Part:
    """The time that one request spent in spans of one key."""

    calls: int = 0
    own: float = 0.0
    whole: float = 0.0
    beneath: float = 0.0
    in_a_row: int = 0
    failed: int = 0
    answered: int = 0


@dataclass(slots=True)
class Request:
    """One request, as its trace shows it."""

    entry: Span
    parts: dict[PartKey, Part] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Length of its outermost span."""
        return self.entry.end_s - self.entry.begin_s


@dataclass(frozen=True, slots=True)
class PartReading:
    """A part over the requests of one kind in one trial."""

    key: PartKey
    calls: Interval
    own: Interval
    slow_own: Interval
    whole: Interval
    beneath: Interval
    in_a_row: float
    failed: float
    answered: float


@dataclass(frozen=True, slots=True)
class RequestReading:
    """Requests of one kind in one trial."""

    key: PartKey
    path: str
    count: int
    one_in: int
    length_s: float  # of the measured part
    time: Interval
    slow: Interval
    parts: tuple[PartReading, ...]


# --- one trace ---------------------------------------------------------------------------------------------


def requests(every: Sequence[Span]) -> list[Request]:
    """Return the request of each trace, with the time of each of its parts.

    A trace begins with the earliest span that has no parent, or that serves a request whose parent was not
    seen, as that of a client. Traces without one are left out.
    """
    by_trace: dict[str, list[Span]] = {}
    for span in every:
        by_trace.setdefault(span.trace, []).append(span)
    every_request = [request for trace in by_trace.values() if (request := _request(trace)) is not None]
    served = [request for request in every_request if request.entry.kind == "server"]
    return served or every_request


def _request(trace: Sequence[Span]) -> Request | None:
    ids = {span.id for span in trace}
    begins = [
        span
        for span in trace
        if not span.parent or (span.kind == "server" and span.parent not in ids and span.parent != span.id)
    ]
    if not begins:
        return None
    request = Request(min(begins, key=lambda span: span.begin_s))
    children: dict[str, list[Span]] = {}
    for span in trace:
        if span.parent and span is not request.entry:
            children.setdefault(span.parent, []).append(span)
    _add(request, children)
    return request


def _add(request: Request, children: Mapping[str, Sequence[Span]]) -> None:
    """Give each moment of the request to the innermost spans that are under way."""
    entry = request.entry
    # a span, its pieces of time, and the keys and the calls that it is inside of
    todo: list[tuple[Span, list[Piece], tuple[PartKey, ...], tuple[PartKey, ...]]] = [
        (entry, [(entry.begin_s, entry.end_s, 1.0)], (), ())
    ]
    while todo:
        span, pieces, inside, called_by = todo.pop()
        own_children = children.get(span.id, ())
        own_s, given = shared(pieces, own_children)
        key = key_of(span)
        part = request.parts.setdefault(key, Part())
        part.calls += 1
        part.own += own_s
        part.failed += span.is_error
        around = inside if key in inside else (*inside, key)
        for each in around:
            request.parts[each].whole += own_s
        if span.kind == "server" and inside:
            called_by = tuple(k for k in inside if k.kind == "client")
        for each in called_by:
            request.parts[each].beneath += own_s
        if span.kind == "client" and any(child.kind == "server" for child in own_children):
            part.answered += 1
        for name, calls in _calls(own_children).items():
            of = request.parts.setdefault(name, Part())
            of.in_a_row = max(of.in_a_row, one_after_another(calls))
        todo += [(child, times, around, called_by) for child, times in zip(own_children, given, strict=True)]


def key_of(span: Span) -> PartKey:
    """Return what spans of the same place have in common."""
    return PartKey(span.service, span.name, span.kind)


def _calls(children: Sequence[Span]) -> dict[PartKey, list[Span]]:
    by_key: dict[PartKey, list[Span]] = {}
    for child in children:
        if child.kind == "client":
            by_key.setdefault(key_of(child), []).append(child)
    return by_key


def one_after_another(calls: Sequence[Span]) -> int:
    """Return the most of these calls of which each begins after another has ended."""
    count, end_s = 0, -np.inf
    for call in sorted(calls, key=lambda call: call.end_s):
        if call.begin_s >= end_s:
            count, end_s = count + 1, call.end_s
    return count


def shared(pieces: Sequence[Piece], children: Sequence[Span]) -> tuple[float, list[list[Piece]]]:
    """Return the time that no child covers, and the pieces of each child.

    Args:
        pieces: Pieces of time in order, each with its share.
        children: Spans; what is outside the pieces is cut off.
    """
    edges = sorted(
        (when, is_begin, number)
        for number, child in enumerate(children)
        if child.end_s > child.begin_s
        for when, is_begin in ((child.begin_s, True), (child.end_s, False))
    )
    given: list[list[Piece]] = [[] for _ in children]
    under_way: set[int] = set()
    own_s, place = 0.0, 0
    for begin, end, share in pieces:
        now = begin
        while True:
            while place < len(edges) and edges[place][0] <= now:
                _, is_begin, number = edges[place]
                under_way.add(number) if is_begin else under_way.discard(number)
                place += 1
            if now >= end:
                break
            then = min(end, edges[place][0]) if place < len(edges) else end
            for number in under_way:
                given[number].append((now, then, share / len(under_way)))
            if not under_way:
                own_s += (then - now) * share
            now = then
    return own_s, given


# --- one trial ---------------------------------------------------------------------------------------------


def read(table: pl.DataFrame, begin: float, end: float) -> tuple[RequestReading, ...]:
    """Return each kind of request that began in the measured part [begin, end], seconds since t0."""
    every = [request for request in requests(spans(table)) if begin <= request.entry.begin_s < end]
    by_key: dict[PartKey, list[Request]] = {}
    for request in every:
        by_key.setdefault(key_of(request.entry), []).append(request)
    kinds = [own for own in by_key.values() if len(own) >= FEWEST]
    kinds.sort(key=lambda own: sum(request.seconds for request in own), reverse=True)
    kept = one_in(table)
    return tuple(_kind(own, begin, end, kept) for own in kinds[:MOST_KINDS])


def _kind(own: Sequence[Request], begin: float, end: float, kept: int) -> RequestReading:
    place = [
        min(STRETCHES - 1, int(STRETCHES * (request.entry.begin_s - begin) / (end - begin)))
        for request in own
    ]
    by_stretch = np.array(place)

    def mean(values: Floats, which: Floats | None = None) -> Interval:
        weights = np.ones(len(own)) if which is None else which
        sums, counts = (
            np.bincount(by_stretch, each, STRETCHES).astype(np.float64)
            for each in (values * weights, weights)
        )
        return mean_or_point(sums, counts, float(weights.sum()), "traces")

    times = np.array([request.seconds for request in own])
    is_slow = np.zeros(len(own))
    is_slow[np.argsort(times)[-max(1, round(SLOW * len(own))) :]] = 1.0
    own_s: dict[PartKey, float] = {}
    for request in own:
        for key, part in request.parts.items():
            own_s[key] = own_s.get(key, 0.0) + part.own
    parts = []
    for key in sorted(own_s, key=lambda key: own_s[key], reverse=True)[:MOST_PARTS]:
        each = [request.parts.get(key, _NONE) for request in own]
        calls = sum(part.calls for part in each)
        parts.append(
            PartReading(
                key=key,
                calls=mean(np.array([float(part.calls) for part in each])),
                own=mean(np.array([part.own for part in each])),
                slow_own=mean(np.array([part.own for part in each]), is_slow),
                whole=mean(np.array([part.whole for part in each])),
                beneath=mean(np.array([part.beneath for part in each])),
                in_a_row=sum(part.in_a_row for part in each) / len(own),
                failed=sum(part.failed for part in each) / calls,
                answered=sum(part.answered for part in each) / calls,
            )
        )
    return RequestReading(
        key=key_of(own[0].entry),
        path=own[0].entry.path,
        count=len(own),
        one_in=kept,
        length_s=end - begin,
        time=mean(times),
        slow=mean(times, is_slow),
        parts=tuple(parts),
    )


_NONE: Final = Part()


# --- one case ----------------------------------------------------------------------------------------------


def requests_of(case: CaseMeasures) -> tuple[SpanRequests, ...]:
    """Return the kinds of requests that were seen in every trial of a case."""
    trials = [trial.spans for trial in case.usable]
    if not trials:
        return ()
    kinds = []
    for first in trials[0]:
        own = [kind for trial in trials for kind in trial if kind.key == first.key]
        if len(own) == len(trials):
            kinds.append(_joined(case, own))
    return tuple(kinds)


def _joined(case: CaseMeasures, own: Sequence[RequestReading]) -> SpanRequests:
    counts = [kind.count for kind in own]
    key = own[0].key

    parts = []
    for first in own[0].parts:
        readings = [reading for kind in own for reading in kind.parts if reading.key == first.key]
        if len(readings) == len(own):
            parts.append(_part(case, key, readings))
    return SpanRequests(
        name=f"{key.service}: {key.name}",
        requests=sum(counts),
        time=case.figure("span", "s", [kind.time for kind in own], counts),
        slow=case.figure("span.slow", "s", [kind.slow for kind in own], counts),
        parts=tuple(parts),
        one_in=max(kind.one_in for kind in own),
    )


def _part(case: CaseMeasures, entry: PartKey, readings: Sequence[PartReading]) -> SpanPart:
    key = readings[0].key

    def seconds(name: str, values: Sequence[Interval]) -> Figure:
        return case.level_figure(name, "s", values)

    is_elsewhere = key.service != entry.service
    return SpanPart(
        name=f"{key.service}: {key.name}" if is_elsewhere else key.name,
        kind=cast("Literal['server', 'client', 'inside']", key.kind),
        calls=case.level_figure("span.calls", "", [each.calls for each in readings]),
        own=seconds("span.own", [each.own for each in readings]),
        slow_own=seconds("span.own.slow", [each.slow_own for each in readings]),
        whole=seconds("span.whole", [each.whole for each in readings]),
        beneath=seconds("span.beneath", [each.beneath for each in readings]),
        in_a_row=fmean([each.in_a_row for each in readings]),
        failed=fmean([each.failed for each in readings]),
        answered=fmean([each.answered for each in readings]),
        is_elsewhere=is_elsewhere,
    )


def splits_of(case: CaseMeasures) -> tuple[LabelSplit, ...]:
    """Return the own time of each span as a metric by name, of the requests that take most time in all."""
    trials = [trial.spans[0] for trial in case.usable if trial.spans]
    if not trials or len(trials) < len(case.usable) or any(kind.key != trials[0].key for kind in trials):
        return ()
    parts = []
    for first in trials[0].parts:
        own = [(kind, each) for kind in trials for each in kind.parts if each.key == first.key]
        if len(own) < len(trials) or any(each.calls.point <= 0 for _, each in own):
            continue
        calls = [round(each.calls.point * kind.count) for kind, each in own]
        rates = [_bare(each.calls.point * kind.count * kind.one_in / kind.length_s) for kind, each in own]
        means = [_bare(each.own.point / each.calls.point) for _, each in own]
        parts.append(
            LabelPart(
                first.key.name,
                case.figure("span", "1/s", rates, calls),
                case.figure("span", "s", means, calls),
            )
        )
    return (
        (LabelSplit("the service's spans", "span", tuple(parts), is_of_steps=True),) if len(parts) > 1 else ()
    )


def _bare(point: float) -> Interval:
    return Interval(point, None, None, 1.0, "traces")


def mean_time(case: CaseMeasures, path: str) -> Figure | None:
    """Return the mean time of the outermost spans of a path; none where no span has it in every trial."""
    where = path.partition("?")[0]
    own = [kind for trial in case.usable for kind in trial.spans if kind.path and fits(kind.path, where)]
    if not own or len(own) != len(case.usable):
        return None
    return case.figure(
        f"span {own[0].key.name}", "s", [kind.time for kind in own], [kind.count for kind in own]
    )
