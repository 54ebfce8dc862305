"""The only formatter of values and intervals.

A number is value + unit + interval + from what. Three significant digits (four for rates from 1,000 /s on),
never more than the interval supports: the last digit shown is at most the second digit of the half-width.
One unit per block: `scale(unit, values)` chooses it from the block's median and every figure of the block is
shown on it. Full precision stays in JSON and CSV.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from loadlens.model.finding import Estimate, Figure, NotMeasured, Undecided

EN_DASH = "–"
MINUS = "−"  # next to an en dash, a hyphen would be read as one
OPEN = "open"

ShownState = Literal["measured", "undecided", "not measured", "invalid"]


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit as people read it."""

    name: str  # "ms", "/s", "%", "MiB"; empty: a pure number
    factor: float  # base units in one of it: 0.001 for ms over s
    digits: int = 3  # significant digits at most


@dataclass(frozen=True, slots=True)
class Shown:
    """A figure in parts, so that each medium sets them its own way; the parts are final text."""

    state: ShownState
    value: str  # "39.0"; the word of the state when there is no value
    unit: str  # "ms"
    interval: str  # "35.4–43.6", "74.0–open"; empty: exact, or no value
    origin: str  # "5 trials, 1.20 M requests"; the reason when there is no value
    within_one_trial: bool = False

    @property
    def short(self) -> str:
        """`39.0 ms`, or the word of the state."""
        return f"{self.value} {self.unit}".rstrip() if self.state in ("measured", "invalid") else self.value

    @property
    def with_interval(self) -> str:
        """`39.0 ms (35.4–43.6)`, or the word of the state with its reason."""
        if self.state in ("undecided", "not measured"):
            return f"{self.value}: {self.origin}" if self.origin else self.value
        return f"{self.short} ({self.interval})" if self.interval else self.short

    @property
    def text(self) -> str:
        """`39.0 ms (35.4–43.6; 5 trials, 1.20 M requests)`: the whole of it."""
        if self.state in ("undecided", "not measured"):
            return self.with_interval
        inside = "; ".join(part for part in (self.interval, self.origin) if part)
        return f"{self.short} ({inside})" if inside else self.short


_TIMES = (Scale("ns", 1e-9), Scale("µs", 1e-6), Scale("ms", 1e-3), Scale("s", 1.0))
_BYTES = tuple(Scale(name, 1024.0**i) for i, name in enumerate(("B", "KiB", "MiB", "GiB", "TiB")))
_RATES = (Scale("/s", 1.0, 4), Scale("M /s", 1e6, 4))
_FIXED = {"share": Scale("%", 0.01), "ratio": Scale("", 1.0), "": Scale("", 1.0), "1": Scale("", 1.0)}
_ANY_PLACE = 400  # beyond the digits of any float
_HUGE = 1e15  # nothing that we measure; digits beyond it would fill the line
_COUNTED = frozenset({"requests", "connections", "users", "trials", "count"})


def scale(unit: str, values: Iterable[float | None] = ()) -> Scale:
    """The unit that a block of figures is shown in.

    Args:
        unit: A base unit as in `Estimate.unit`: s, 1/s, bytes, bytes/s, share, ratio, cores, requests ...
        values: The block's values in the base unit; none and not finite ones are passed over.

    Returns:
        For times ns, µs, ms or s, for bytes binary multiples, chosen by the median of the absolute values
        that are not zero; for other units the unit itself.
    """
    sizes = [abs(v) for v in values if v is not None and math.isfinite(v) and v != 0]
    middle = median(sizes) if sizes else None
    if unit == "s":
        return _fitting(_TIMES, middle, otherwise=_TIMES[2])
    if unit == "bytes":
        return _fitting(_BYTES, middle, otherwise=_BYTES[0])
    if unit in ("bytes/s", "B/s"):
        chosen = _fitting(_BYTES, middle, otherwise=_BYTES[0])
        return Scale(f"{chosen.name}/s", chosen.factor)
    if unit in ("1/s", "/s"):
        return _fitting(_RATES, middle, otherwise=_RATES[0])
    return _FIXED.get(unit, Scale(unit, 1.0))


def scale_of(figures: Iterable[Figure | None]) -> Scale:
    """The unit of a block of figures that share a base unit; the first figure that has one names it."""
    block = [figure for figure in figures if figure is not None]
    unit = next((f.unit for f in block if not isinstance(f, NotMeasured)), "")
    return scale(unit, [f.point for f in block if isinstance(f, Estimate)])


def _fitting(scales: tuple[Scale, ...], size: float | None, *, otherwise: Scale) -> Scale:
    """The largest unit in which the size is at least one; rounding up to the next unit counts."""
    if size is None:
        return otherwise
    best = scales[0]
    for candidate in scales[1:]:
        if size >= candidate.factor * (1 - 0.5 * 10**-candidate.digits):
            best = candidate
    return best


def count(number: int | float) -> str:
    """A count in full up to 999,999, then `1.46 M`, `2.00 G`."""
    if abs(number) < 999_999.5:
        return f"{number:,.0f}".replace("-", MINUS)
    for name, factor in (("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if abs(number) < 999.5 * factor:
            return f"{_places(number / factor, _place(number / factor, 3))} {name}"
    return f"{number:.2e}"


def about(number: float) -> str:
    """A mean count with two digits, in full from 100 on: 0.35, 7.2, 128."""
    return f"{number:.2g}" if number < 99.5 else count(number)


def _digits(scaled: float, on: Scale) -> int:
    """Three digits, or the scale's own where the number fills them before the point: 24,390 but 4.60."""
    return on.digits if on.digits <= 3 or abs(scaled) >= 999.5 or on.factor > 1 else 3


def value(number: float, on: Scale, *, low: float | None = None, high: float | None = None) -> str:
    """A number on a scale, without its unit; the interval, if given, limits the digits."""
    return _places(number / on.factor, _last_place(number, low, high, on))


def interval(low: float | None, high: float | None, on: Scale, *, point: float | None = None) -> str:
    """A range with an en dash; an end that is none or not finite is `open`."""
    middle = point if point is not None else _middle(low, high)
    place = _last_place(middle, low, high, on) if middle is not None else None
    return f"{_end(low, on, place)}{EN_DASH}{_end(high, on, place)}"


def with_unit(number: float, unit: str, *, on: Scale | None = None) -> str:
    """One value with the unit that fits it: `39.0 ms`, `24,390 /s`, `0.49 %`."""
    chosen = on or scale(unit, [number])
    text = count(number) if unit in _COUNTED and float(number).is_integer() else value(number, chosen)
    return f"{text} {chosen.name}".rstrip()


def duration(seconds: float) -> str:
    """A length of time for prose: `350 ms`, `12 s`, `57 min`, `2 h 5 min`, `3 d 4 h`."""
    if seconds < 1:
        return with_unit(seconds, "s")
    if seconds < 10 and not float(seconds).is_integer():
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def show(figure: Figure, on: Scale | None = None, *, invalid: bool = False) -> Shown:
    """A figure as people read it.

    Args:
        figure: What is known.
        on: The unit of the block that it stands in; none: the unit that fits it alone, as in prose.
        invalid: The value comes from trials that must not be used; it is shown as such, never averaged.
    """
    match figure:
        case Undecided():
            return Shown("undecided", "undecided", "", "", figure.reason)
        case NotMeasured():
            return Shown("not measured", "not measured", "", "", figure.reason)
        case Estimate():
            return _show_estimate(figure, on, "invalid" if invalid else "measured")


def is_exact(figure: Estimate) -> bool:
    """True if the figure was counted and needs no interval."""
    return "exact" in figure.method or (figure.low == figure.point == figure.high)


def is_predicted(figure: Estimate) -> bool:
    """True if the figure comes from a model, not from a measurement."""
    return "predict" in figure.method


def is_lower_bound(figure: Estimate) -> bool:
    """True if the figure is a lower bound: a censored quantile, or a rate limited by the generator."""
    return not is_exact(figure) and figure.high is None and figure.low == figure.point


def at_least(figure: Estimate) -> str:
    """A lower bound in a sentence: `at least 77.4 /s`."""
    return f"at least {with_unit(figure.point, figure.unit)}"


def _show_estimate(figure: Estimate, on: Scale | None, state: ShownState) -> Shown:
    if not math.isfinite(figure.point):
        return Shown("undecided", "undecided", "", "", f"{figure.metric or 'the value'} is not finite")
    chosen = on or scale(figure.unit, [figure.point])
    exact, bound = is_exact(figure), is_lower_bound(figure)
    if exact and figure.unit in _COUNTED and float(figure.point).is_integer():
        text = count(figure.point)
    else:
        low, high = (None, None) if exact or bound else (figure.low, figure.high)
        text = value(figure.point, chosen, low=low, high=high)
    bare = exact or bound or (figure.low is None and figure.high is None)
    span = "" if bare else interval(figure.low, figure.high, chosen, point=figure.point)
    origin = origin_of(figure)
    if not exact and not bound and bare:
        origin = f"no interval; {origin}" if origin else "no interval"
    return Shown(
        state=state,
        value=f"> {text}" if bound else text,
        unit=chosen.name,
        interval=span,
        origin=origin,
        within_one_trial=figure.is_within_one_trial and not exact,
    )


def origin_of(figure: Estimate) -> str:
    """Describe its origin: `5 trials, 1.20 M requests`, `within one trial, 9,600 requests`, `exact`."""
    if is_exact(figure):
        return "exact"
    trials = "within one trial" if figure.trials == 1 else f"{figure.trials} trials" if figure.trials else ""
    samples = (f"{count(figure.samples)} request" + "s" * (figure.samples != 1)) if figure.samples else ""
    return ", ".join(part for part in (trials, samples) if part)


def _middle(low: float | None, high: float | None) -> float | None:
    finite = [v for v in (low, high) if v is not None and math.isfinite(v)]
    return sum(finite) / len(finite) if finite else None


def _end(bound: float | None, on: Scale, place: int | None) -> str:
    if bound is None or not math.isfinite(bound):
        return OPEN
    scaled = bound / on.factor
    own = _place(scaled, _digits(scaled, on))
    return _places(scaled, own if place is None or scaled == 0 else max(place, own))


def _last_place(point: float, low: float | None, high: float | None, on: Scale) -> int:
    """Power of ten of the last digit that may be shown.

    Intervals of times are made on a log scale and lie askew, so the shorter side counts.
    """
    # zero is shown as 0 whatever the digits, so the ends of its interval decide alone
    place = -_ANY_PLACE if point == 0 else _place(point / on.factor, _digits(point / on.factor, on))
    sides = [abs(point - v) for v in (low, high) if v is not None and math.isfinite(v) and v != point]
    if sides:
        place = max(place, math.floor(math.log10(min(sides) / on.factor) + 1e-9) - 1)
    return place


def _place(number: float, digits: int) -> int:
    """Power of ten of the last of so many significant digits, after rounding (9.996 has 10.0's places)."""
    if number == 0 or not math.isfinite(number):
        return 0
    return int(f"{number:.{digits - 1}e}".partition("e")[2]) - digits + 1


def _places(number: float, place: int) -> str:
    """The number rounded at a power of ten, thousands separated, zeros kept up to that place."""
    if number == 0:
        return "0"
    if abs(number) >= _HUGE:
        return f"{number:.2e}"
    shown = f"{round(number, -place) + 0.0:,.{max(0, -place)}f}"
    return shown.replace("-", MINUS)


def shown(figure: Figure | None) -> str:
    """A figure with its interval in words; `not measured` when there is none."""
    return "not measured" if figure is None else show(figure).with_interval


def short(figure: Figure | None) -> str:
    """A figure without its interval."""
    return "not measured" if figure is None else show(figure).short


def ends(low: float | None, high: float | None, *more: str) -> str:
    """` (0.98–1.00; limit 0.85)`: interval and limit after a figure; unknown ends are left out."""
    parts = list(more)
    if low is not None or high is not None:
        parts.insert(0, f"{_interval_end(low)}{EN_DASH}{_interval_end(high)}")
    return f" ({'; '.join(parts)})" if parts else ""


def _interval_end(value: float | None) -> str:
    return OPEN if value is None else f"{value:.2f}"


def percent(share: float) -> str:
    """`97 %`, `1.9 %`, `0.49 %`: a share in a sentence, with two digits."""
    value = share * 100
    return (
        f"{value:.0f} %"
        if value >= 10 or value == 0
        else f"{value:.1f} %"
        if value >= 1
        else f"{value:.2g} %"
    )


def signed_percent(change: float) -> str:
    """`+9.7 %`: a change."""
    return f"{change * 100:+.1f} %"
