"""Parts of a service by its own labels, and by the times of requests: which one is full, or slow.

A metric by upstream, shard or query says how many requests each value gets and how long they take. Of parts
that work side by side, one that is full slows down with the load and the others do not; its share of the
requests bounds the throughput of all. Names of metrics and labels are printed and never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from loadlens.diagnose.observe.waits import Full
from loadlens.measure import figures
from loadlens.model.facts import Curve, LabelSplit, RequestClass, Step
from loadlens.model.finding import Estimate
from loadlens.model.shapes import SlowLevel, SlowPath
from loadlens.present import numbers

GROWN = 3.0  # times the time at the lightest load
UNLOADED = 2.0  # times: up to there the others do not wait for each other
MOST_SHARE = 0.8  # of the requests: beyond, it is hardly one part of several
MOST_OF_A_KIND = 0.95  # the same where the parts take the same time without load
FEWEST_OF_A_KIND = 3  # parts: two may be success and failure
ALIKE = 1.25  # times the time of the others without load
LEAST_SHARE = 0.02
SAME_SHARE = 0.2  # by which a share may differ between levels
FEWEST_ALONE = 5  # requests of a part at the lightest load
FEWEST = 20  # and at the highest
FEWEST_COMPARED = 50  # at a level whose share is compared
OF_A_CLASS = 0.15  # by which the rates of a value and of requests of the load may differ
AS_LONG = 0.7  # of what clients wait: then the value stands for these requests
EACH = 0.8  # calls per request: every request makes one
WHOLE = 0.9  # of a request's time
MOST_CLASSES = 8  # of the load
ONCE = 0.2  # by which the requests that a metric counts may differ from those of the load
LEAST_OF_TIME, MOST_OF_TIME = 0.5, 1.2  # a value's mean over what slow requests take
PROBES = 0.3  # by which the rate of a value must differ from that of a probe
NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Before:
    """Time that a part takes at the lightest load at which it is known."""

    load: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part that slows down with the load while the others stay fast."""

    name: str  # for printing: `upstream="b"`, or `33 % of GET /x`
    source: str  # for printing: the metric; empty: the times of requests
    share: float  # of the requests
    of_time: float  # share of the time of all
    before: Before | None  # none: it is not known at a second level
    now_s: float  # its mean at the highest load
    others_before_s: float
    others_now_s: float
    shares: tuple[tuple[float, float], ...]  # load and share, of each level where enough were counted
    of_waiting: float  # share of the time that requests wait at the highest load
    rate: float  # requests per second that it serves there
    further: tuple[str, ...] = ()  # other values of the label that slow down as well
    most: float = MOST_SHARE  # that it may have as one part of several
    what: str = "requests"  # for printing: that have the share

    @property
    def before_s(self) -> float:
        """Its mean at the lightest load at which it is known."""
        return self.now_s if self.before is None else self.before.seconds

    @property
    def has_same_share(self) -> bool | None:
        """True if its share is the same at all levels, so that it bounds the throughput of all; none: one."""
        if len(self.shares) < 2:
            return None
        return all(abs(share / self.share - 1) <= SAME_SHARE for _, share in self.shares)


@dataclass(frozen=True, slots=True)
class _Timed:
    """One value of a label at one level."""

    value: str
    rate: float
    mean_s: float
    samples: int


def by_labels(full: Full) -> Part | None:
    """Return the values of a label that stand for most of the waiting; none: no label shows any.

    Values that are too rare to be judged alone are judged together. Ports of one program that were hardly
    called without load are taken to be as quick there as the one that slows down.
    """
    return _most_waited_for(
        part
        for split in full.top.splits
        if not split.is_of_steps
        and (part := _by_label(full, split)) is not None
        and not _is_step(full, split, part)
        and (
            split.is_of_load
            or _is_shared_out(full, split, part)
            or not is_of_client(full.top.classes, part.rate, part.now_s)
        )
    )


def step_of_each(full: Full) -> Part | None:
    """Return the step that every request takes and where it waits, by a label; none: no label shows one.

    If also the other values come as often as the requests, the metric counts steps, such as queries.
    """
    return _most_waited_for(
        part
        for split in full.top.splits
        if not (split.is_of_calls or split.is_of_load)  # `calls_seen` looks at calls
        and (part := _by_label(full, split)) is not None
        and _is_step(full, split, part)
    )


@dataclass(frozen=True, slots=True)
class LongStep:
    """The step of every request that takes most of its time, by a label."""

    name: str
    seconds: float  # of each request


def longest_step(step: Step) -> LongStep | None:
    """Return the longest step of a request at one level; none: no label shows steps of every request.

    What takes as long as the request is the whole of it.
    """
    return max(_steps(step), key=lambda part: part.seconds, default=None)


def _steps(step: Step) -> Iterator[LongStep]:
    rate, whole_s = figures.point(step.throughput), figures.point(step.response.mean)
    for split in step.splits if rate > 0 else ():
        if split.is_of_calls or split.is_of_load:
            continue  # `calls_seen` has calls
        timed = _timed(split, FEWEST_ALONE)
        whole = _rate(list(timed.values()))
        for value, part in timed.items():
            seconds = part.mean_s * max(1, round(part.rate / rate))
            if min(part.rate, whole - part.rate) >= EACH * rate and 0 < seconds <= WHOLE * whole_s:
                yield LongStep(_name(split, value), seconds)


def _most_waited_for(parts: Iterable[Part]) -> Part | None:
    return max(parts, key=lambda part: part.of_waiting, default=None)


def _is_shared_out(full: Full, split: LabelSplit, part: Part) -> bool:
    """Return true if parts of a kind together come as often as the requests, and not one of them."""
    rate, whole = figures.point(full.top.throughput), sum(figures.point(each.rate) for each in split.parts)
    return part.most > MOST_SHARE and abs(whole - rate) < abs(part.rate - rate)


def _is_step(full: Full, split: LabelSplit, part: Part) -> bool:
    rate = figures.point(full.top.throughput)
    whole = sum(figures.point(each.rate) for each in split.parts)
    return min(part.rate, whole - part.rate) >= EACH * rate


def _by_label(full: Full, split: LabelSplit) -> Part | None:
    first, top = full.curve.steps[0], full.top
    before, now = _timed(_same(first, split), 1), _timed(split, 1)
    rate, waiting_s = figures.point(top.throughput), _waiting_s(full)
    hot = [
        value
        for value in now
        if value in before
        and (before[value].samples >= FEWEST_ALONE and now[value].samples >= FEWEST)
        and now[value].mean_s >= GROWN * before[value].mean_s
    ]
    own = [now[value] for value in hot]
    others, others_before = ([each for each in at.values() if each.value not in hot] for at in (now, before))
    is_known = _samples(others) >= FEWEST and _samples(others_before) >= FEWEST_ALONE
    if not (hot and is_known and rate > 0 and waiting_s > 0):
        return None
    hot.sort(key=lambda value: now[value].rate * now[value].mean_s, reverse=True)
    before_s, others_before_s = _mean_s([before[value] for value in hot]), _mean_s(others_before)
    is_of_one = split.is_of_calls and len({_program(value) for value in now}) == 1
    if is_of_one and _samples(others_before) < FEWEST:
        others_before_s = max(others_before_s, before_s)  # from few calls it is hardly known
    is_of_a_kind = len(now) >= FEWEST_OF_A_KIND and before_s <= ALIKE * others_before_s <= ALIKE**2 * before_s
    return Part(
        name=_name(split, hot[0]),
        source=split.metric,
        share=_rate(own) / _rate(list(now.values())),
        of_time=_rate(own) * _mean_s(own) / sum(each.rate * each.mean_s for each in now.values()),
        before=Before(first.load, before_s),
        now_s=_mean_s(own),
        others_before_s=others_before_s,
        others_now_s=_mean_s(others),
        shares=tuple(_shares(full.curve, split, hot)),
        of_waiting=min(1.0, _rate(own) * (_mean_s(own) - before_s) / (rate * waiting_s)),
        rate=_rate(own),
        further=tuple(_name(split, value) for value in hot[1:]),
        most=MOST_OF_A_KIND if is_of_a_kind else MOST_SHARE,
        what="calls" if split.is_of_calls else "requests",
    )


def _program(called: str) -> str:
    return called.rpartition(":")[0]


def _samples(parts: Iterable[_Timed]) -> int:
    return sum(part.samples for part in parts)


def _same(step: Step, split: LabelSplit) -> LabelSplit | None:
    key = split.metric, split.label
    return next((other for other in step.splits if (other.metric, other.label) == key), None)


def _timed(split: LabelSplit | None, fewest: int) -> dict[str, _Timed]:
    """Return the values of a label that were timed often enough."""
    timed = {}
    for part in () if split is None else split.parts:
        if (
            isinstance(part.rate, Estimate)
            and isinstance(part.mean, Estimate)
            and part.rate.samples >= fewest
        ):
            timed[part.value] = _Timed(part.value, part.rate.point, part.mean.point, part.rate.samples)
    return timed


def _rate(parts: Sequence[_Timed]) -> float:
    return sum(part.rate for part in parts)


def _mean_s(parts: Sequence[_Timed]) -> float:
    return sum(part.rate * part.mean_s for part in parts) / _rate(parts)


def _waiting_s(full: Full) -> float:
    """Return how long a request waits at the highest load, by its mean there and at the lightest load."""
    return figures.point(full.top.response.mean) - figures.point(full.alone)


def _shares(curve: Curve, split: LabelSplit, hot: Sequence[str]) -> Iterator[tuple[float, float]]:
    for step in curve.steps:
        every = list(_timed(_same(step, split), 1).values())
        own = [part for part in every if part.value in hot]
        if sum(part.samples for part in own) >= FEWEST_COMPARED:
            yield step.load, _rate(own) / _rate(every)


def is_of_client(classes: Sequence[RequestClass], rate: float, mean_s: float) -> bool:
    """Return true if clients choose the value: it counts their requests of one kind or several, and no part.

    It then comes as often as they, and takes about as long as they wait. The parts of a service are met by
    requests of every kind, which wait for the slow one only now and then.
    """
    for size in range(1, 1 + min(len(classes), MOST_CLASSES)):
        for kinds in combinations(classes[:MOST_CLASSES], size):
            rates = [figures.point(kind.rate) for kind in kinds]
            if abs(rate - sum(rates)) > OF_A_CLASS * rate:
                continue
            seconds = sum(r * figures.point(kind.response.mean) for r, kind in zip(rates, kinds, strict=True))
            if mean_s >= AS_LONG * seconds / sum(rates) and seconds >= AS_LONG * mean_s * sum(rates):
                return True
    return False


def _name(split: LabelSplit, value: str) -> str:
    text = value if split.is_of_calls or split.is_of_load else f'{split.label}="{value}"'
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 2]}.."


# --- by the times of requests -----------------------------------------------------------------------------


def by_times(full: Full) -> Part | None:
    """Return the requests that slow down while all others stay fast, by their times; none: there are none."""
    paths = [part for path in full.curve.slow_paths if (part := _by_times(full, path)) is not None]
    return max(paths, key=lambda part: part.of_waiting, default=None)


def _by_times(full: Full, path: SlowPath) -> Part | None:
    """Compare the levels at which some requests of a class wait and the others hardly do."""
    top, usual_s = full.top, path.usual_s
    levels = [level for level in path.parted if figures.point(level.weight) > 0 and _quick_s(level) > 0]
    kind = next((kind for kind in top.classes if kind.label == path.label), None)
    rate, waiting_s = figures.point(top.throughput), _waiting_s(full)
    if kind is None or not levels or levels[-1].load != top.load or usual_s is None:
        return None
    if not (rate > 0 and waiting_s > 0):
        return None
    first, last = levels[0], levels[-1]
    share, now_s, quick_s = figures.point(last.weight), _slow_s(last), _quick_s(last)
    on_plateau = [level for level in levels if level.load >= full.steps[0].load]
    return Part(
        name=f"{numbers.percent(share)} of {path.request}",
        source="",
        share=share,
        of_time=share * now_s / (share * now_s + (1 - share) * quick_s),
        before=Before(first.load, _slow_s(first)) if first is not last else None,
        now_s=now_s,
        others_before_s=usual_s,
        others_now_s=quick_s,
        shares=tuple((level.load, figures.point(level.weight)) for level in on_plateau),
        of_waiting=min(1.0, share * figures.point(kind.rate) * (now_s - quick_s) / (rate * waiting_s)),
        rate=share * figures.point(kind.rate),
    )


def _quick_s(level: SlowLevel) -> float:
    """Return the median below the last hill, from the distance of the two and their ratio."""
    return figures.point(level.shift) / (level.ratio - 1)


def _slow_s(level: SlowLevel) -> float:
    return _quick_s(level) * level.ratio


# --- which part has a share -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfShare:
    """The value of a label that has a given share of the requests."""

    name: str
    source: str  # the metric
    mean_s: float | None  # none: the metric only counts


def of_share(step: Step, share: float, slow_s: float) -> OfShare | None:
    """Return the only value of a label that can be some slow requests, by share and by time.

    Args:
        step: A level of load. Metrics that count each request once are looked at.
        share: Of the slow requests.
        slow_s: What they take, as clients see it.
    """
    same: dict[str, OfShare] = {}
    throughput = figures.point(step.throughput)
    for split in step.splits if throughput > 0 else ():
        if split.is_of_load:
            continue
        rates = {part.value: figures.point(part.rate) for part in split.parts}
        whole = sum(rates.values())
        if whole <= 0:
            continue
        near = [part for part in split.parts if abs(rates[part.value] / whole / share - 1) <= SAME_SHARE]
        if len(near) != 1 or abs(whole / throughput - 1) > ONCE:
            continue
        name, mean_s = _name(split, near[0].value), None
        if isinstance(near[0].mean, Estimate):
            mean_s = near[0].mean.point
            if not LEAST_OF_TIME * slow_s <= mean_s <= MOST_OF_TIME * slow_s:
                continue
        elif any(abs(rates[near[0].value] / other - 1) <= PROBES for other in _other_rates(step)):
            continue
        if name not in same or mean_s is not None:
            same[name] = OfShare(name, split.metric, mean_s)
    return next(iter(same.values())) if len(same) == 1 else None


def _other_rates(step: Step) -> Iterator[float]:
    """Yield the rates of what a counter may also count: each probe, and failures."""
    rate = figures.point(step.throughput)
    answers = (step.issued or 0) - step.failed_count
    for count in (*(probe.count for probe in step.probes), step.failed_count):
        if count and answers > 0:
            yield count * rate / answers
