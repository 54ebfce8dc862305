"""A figure of a result in Python: it compares as an interval, and explains what came of the comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from loadlens import units
from loadlens.errors import UsageError
from loadlens.model.finding import Estimate, Figure, NotMeasured
from loadlens.model.report import State
from loadlens.present import numbers, objective_text

Sign = Literal["<", "<=", ">", ">="]
MOST_LONGER: Final = 100.0  # beyond it, a longer measurement is no advice


def _number(value: object) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise units.UnitError(f"{units.shown(value)} is no number", "1.05") from None


def _time(value: object) -> float:
    if re.fullmatch(r"[\d.]+", str(value)):
        raise units.UnitError(f"{value} has no unit", f"'{value}ms' or '{value}s'")
    return units.duration_s(value)


_LIMITS: Final[Mapping[str, Callable[[object], float]]] = {
    "s": _time,
    "1/s": units.rate_per_s,
    "share": units.share,
    "bytes": units.size_bytes,
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A figure against a limit: `ok` if its whole interval keeps it, `bad` if none of it does."""

    state: State
    lines: tuple[str, ...]  # the answer, then the evidence


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A figure with its interval: `figure < "50ms"` is true only if the whole interval lies below.

    Where the interval covers the limit, neither `<` nor `>` is true: it is undecided.
    """

    name: str  # "p99 of response time"
    unit: str  # base unit: "s", "1/s", "share", "bytes", "ratio", "users"
    figure: Figure
    origin: str  # how it was measured: "http://127.0.0.1:8000: GET / · open loop · 500/s"
    trust: tuple[str, ...] = ()  # what is worth a look, each with its glyph
    doubt: str = ""  # why nothing can be concluded from this result; empty: it is valid
    measured_s: float | None = None
    record: str = ""  # folder; empty: not kept

    @property
    def value(self) -> float | None:
        """The value in the base unit; `None`: not known, and `reason` says why."""
        return self.figure.point if isinstance(self.figure, Estimate) else None

    @property
    def low(self) -> float | None:
        """The lower end of the 95 % interval; `None`: open, or not known."""
        return self.figure.low if isinstance(self.figure, Estimate) else None

    @property
    def high(self) -> float | None:
        """The upper end of the 95 % interval; `None`: open, or not known."""
        return self.figure.high if isinstance(self.figure, Estimate) else None

    @property
    def reason(self) -> str:
        """The reason if there is no value, else empty."""
        return "" if isinstance(self.figure, Estimate) else self.figure.reason

    @property
    def text(self) -> str:
        """The figure as reports show it: `39.0 ms (35.4–43.6; 1 trial, 12,003 requests)`."""
        return numbers.show(self.figure).text

    def __lt__(self, limit: object) -> bool:
        return self.against("<", limit).state == "ok"

    def __le__(self, limit: object) -> bool:
        return self.against("<=", limit).state == "ok"

    def __gt__(self, limit: object) -> bool:
        return self.against(">", limit).state == "ok"

    def __ge__(self, limit: object) -> bool:
        return self.against(">=", limit).state == "ok"

    def __str__(self) -> str:
        return f"{self.name} {self.text}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        from html import escape

        return escape(str(self))

    def against(self, sign: Sign, limit: object) -> Judged:
        """Judge the figure by its interval, as `--objective` does.

        Args:
            sign: The limit is an upper one, or a lower one.
            limit: With its unit: `"50ms"`, `"400/s"`, `"1%"`.

        Raises:
            UsageError: It is no limit for a figure of this unit.
        """
        bound = self._limit(sign, limit)
        is_upper = sign.startswith("<")
        if self.doubt:
            state: State = "unknown"
            word = f"undecided: {self.doubt}"
        else:
            below, above = (bound, None) if is_upper else (None, bound)
            state, word = objective_text.verdict(self.figure, below, above)
        wanted = f"{'below' if is_upper else 'above'} {numbers.with_unit(bound, self.unit)}"
        head = f"{word}: {self.name} {wanted}" if state != "unknown" else f"{self.name} {wanted} is {word}"
        lines = [head]
        if isinstance(self.figure, Estimate):
            shown, sure = numbers.show(self.figure), f"{100 * self.figure.confidence:g} % interval"
            interval = (
                f"{sure} {shown.interval}" if self.low is not None or self.high is not None else f"no {sure}"
            )
            lines.append(f"value: {shown.short}, {interval} ({shown.origin})")
        lines.append(f"measured: {self.origin}")
        lines += self.trust
        if state == "unknown" and not self.doubt and (advice := self._longer(bound)):
            lines.append(advice)
        if self.record:
            lines.append(f"record: {self.record}")
        return Judged(state, tuple(lines))

    def _limit(self, sign: str, limit: object) -> float:
        if isinstance(limit, Measured):
            raise UsageError(
                "two results differ by more than their intervals show: trials of one version vary, too",
                where=f"{self.name} {sign} {limit.name}",
                hint="loadlens.compare(a, b), which runs both in pairs",
            )
        try:
            return _LIMITS.get(self.unit, _number)(limit)
        except units.UnitError as fault:
            raise UsageError(fault.message, where=f"{self.name} {sign} ...", hint=fault.example) from None

    def _longer(self, bound: float) -> str:
        """Say how long a load would decide: the width of an interval falls with the root of the time."""
        figure = self.figure
        if not isinstance(figure, Estimate) or self.measured_s is None:
            return ""
        end = figure.high if figure.point < bound else figure.low
        if end is None or figure.point == bound:
            return ""
        longer = ((end - figure.point) / (bound - figure.point)) ** 2
        if not 1 <= longer <= MOST_LONGER:
            return ""
        seconds = numbers.duration(1.1 * longer * self.measured_s)
        return f"to decide: about {seconds} of load, in place of {numbers.duration(self.measured_s)}"


def unit_of(figure: Figure, otherwise: str) -> str:
    """Return the base unit of a figure; one that was not measured does not know it."""
    return otherwise if isinstance(figure, NotMeasured) else figure.unit
