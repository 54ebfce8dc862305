"""An expression as a tree, and the functions that it may use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from loadlens.promql.over_time import OF_VALUES

Kind = Literal["scalar", "vector", "range"]

# The length of the part that an expression is evaluated over: Grafana's name for it.
WHOLE_RANGE: Final = "$__range"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on a label; a label that is not there has the empty value."""

    label: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str
    pattern: re.Pattern[str] | None = None  # of the last two; anchored at both ends

    def fits(self, labels: Mapping[str, str]) -> bool:
        """True if a series has such a label."""
        return self.fits_value(labels.get(self.label, ""))

    def fits_value(self, value: str) -> bool:
        """True if a value meets the condition."""
        if self.pattern is None:
            return (value == self.value) == (self.operator == "=")
        return (self.pattern.fullmatch(value) is not None) == (self.operator == "=~")


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """Series by their name and labels; the name is a matcher of `__name__`."""

    matchers: tuple[Matcher, ...]
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """The samples of a selector over the time before; none: over the whole range."""

    selector: Selector
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One value for each group of series; all are one group when nothing is said."""

    operator: str
    argument: Expression
    labels: tuple[str, ...] = ()
    is_without: bool = False
    parameter: Expression | None = None  # of quantile


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Expression
    right: Expression
    matching: tuple[str, ...] = ()
    is_on: bool = False  # match on these labels; otherwise on all but these
    is_bool: bool = False  # comparisons: 0 or 1 in place of filtering


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Expression


Expression = Number | Selector | Range | Call | Aggregate | Binary | Negative


@dataclass(frozen=True, slots=True)
class Signature:
    """Arguments and result of a function."""

    takes: tuple[Kind, ...]
    gives: Kind = "vector"
    optional: int = field(default=0)  # how many arguments at the end may be left out


OVER_TIME: Final = ("rate", "increase", "irate", "delta", "idelta", *OF_VALUES)
BY_VALUE: Final = ("abs", "ceil", "floor", "sqrt", "exp", "ln", "log2", "log10")
FUNCTIONS: Final[Mapping[str, Signature]] = {
    **{name: Signature(("range",)) for name in OVER_TIME},
    **{name: Signature(("vector",)) for name in BY_VALUE},
    "quantile_over_time": Signature(("scalar", "range")),
    "histogram_quantile": Signature(("scalar", "vector")),
    "round": Signature(("vector", "scalar"), optional=1),
    "clamp_min": Signature(("vector", "scalar")),
    "clamp_max": Signature(("vector", "scalar")),
    "scalar": Signature(("vector",), gives="scalar"),
    "vector": Signature(("scalar",)),
}
AGGREGATES: Final = ("sum", "avg", "min", "max", "count", "stddev", "group", "quantile")
COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")


def kind_of(expression: Expression) -> Kind:
    """Return the kind of an expression's value."""
    match expression:
        case Number():
            return "scalar"
        case Range():
            return "range"
        case Call(function, _):
            return FUNCTIONS[function].gives
        case Negative(operand):
            return kind_of(operand)
        case Binary(left=left, right=right):
            both = kind_of(left) == kind_of(right) == "scalar"
            return "scalar" if both else "vector"
        case _:
            return "vector"


def reach_s(expression: Expression) -> float:
    """Return how far back it looks at most, seconds; the whole range not counted."""
    reach = 0.0
    for part in parts(expression):
        if isinstance(part, Range):
            reach = max(reach, part.selector.offset_s + (part.seconds or 0.0))
        elif isinstance(part, Selector):
            reach = max(reach, part.offset_s)
    return reach


def metrics_of(expression: Expression) -> tuple[str, ...]:
    """Return the names of the metrics that it reads, each once."""
    names = (
        matcher.value
        for part in parts(expression)
        if isinstance(part, Selector)
        for matcher in part.matchers
        if matcher.label == "__name__" and matcher.operator == "="
    )
    return tuple(dict.fromkeys(names))


def parts(expression: Expression) -> Iterator[Expression]:
    """Yield the expression and everything in it."""
    yield expression
    match expression:
        case Range(selector, _):
            yield selector
        case Call(_, arguments):
            for argument in arguments:
                yield from parts(argument)
        case Aggregate(argument=argument, parameter=parameter):
            yield from parts(argument)
            if parameter is not None:
                yield from parts(parameter)
        case Binary(left=left, right=right):
            yield from parts(left)
            yield from parts(right)
        case Negative(operand):
            yield from parts(operand)


def filled(text: str, range_s: float) -> str:
    """Return the text of an expression with the whole range as a duration, as a server reads it."""
    return text.replace(WHOLE_RANGE, f"{max(1, round(range_s * 1000))}ms")
