"""Text -> expression, by precedence climbing; faults say what was read.

Precedence, from the loosest: comparisons; `+ -`; `* / %`; unary minus; `^`, which binds to the right.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from loadlens.promql.syntax import (
    AGGREGATES,
    COMPARISONS,
    FUNCTIONS,
    WHOLE_RANGE,
    Aggregate,
    Binary,
    Call,
    Expression,
    Kind,
    Matcher,
    Negative,
    Number,
    Range,
    Selector,
    kind_of,
)

T = TypeVar("T")

MOST_CHARACTERS = 4_000
DEEPEST = 60
UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "y": 31536000.0}
# Of the language, but answered by a server only.
FOREIGN_FUNCTIONS: Final = (
    "absent", "absent_over_time", "acos", "acosh", "asin", "asinh", "atan", "atanh", "clamp", "cos", "cosh",
    "day_of_month", "day_of_week", "day_of_year", "days_in_month", "deg", "deriv", "histogram_avg",
    "histogram_count", "histogram_fraction", "histogram_stddev", "histogram_sum", "holt_winters", "hour",
    "info", "label_join", "label_replace", "mad_over_time", "minute", "month", "pi", "predict_linear",
    "present_over_time", "rad", "sgn", "sin", "sinh", "sort", "sort_by_label", "sort_desc",
    "stdvar_over_time", "tan", "tanh", "time", "timestamp", "year", "double_exponential_smoothing",
)  # fmt: skip
FOREIGN_AGGREGATES: Final = ("topk", "bottomk", "count_values", "stdvar", "limitk", "limit_ratio")
FOREIGN_WORDS: Final = ("and", "or", "unless", "atan2", "group_left", "group_right")

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<whole>\$__range\b)
    | (?P<duration>(?:[0-9]+(?:ms|[smhdwy]))+(?![A-Za-z0-9_]))
    | (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?:Inf|NaN|inf|nan)\b(?!\s*[({:]))
    | (?P<name>[A-Za-z_][A-Za-z0-9_:]*)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    | (?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],@:])
    )""",
    re.VERBOSE,
)
_DURATION_PART: Final = re.compile(r"([0-9]+)(ms|[smhdwy])")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEVELS: Final = (COMPARISONS, ("+", "-"), ("*", "/", "%"))


class PromqlError(ValueError):
    """The text is no expression."""


class NotOurs(PromqlError):
    """It may be one, but uses what only a Prometheus server answers."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # whole, duration, number, name, text, sign, end
    text: str


def parse(text: str) -> Expression:
    """Return the expression of a text.

    Raises:
        NotOurs: It uses a part of the language that is not evaluated here.
        PromqlError: It is not PromQL.
    """
    if len(text) > MOST_CHARACTERS:
        raise PromqlError(f"an expression of {len(text):,} characters; at most {MOST_CHARACTERS:,}")
    reader = _Reader(_tokens(text))
    expression = reader.expression()
    reader.end()
    if kind_of(expression) == "range":
        raise PromqlError("a range of samples has no value of its own: rate(...[5s]), max_over_time(...[5s])")
    return expression


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    text = re.sub(r"#[^\n]*", "", text) if "#" in text and not re.search(r"[\"'`]", text) else text
    while position < len(text.rstrip()):
        token = _TOKEN.match(text, position)
        if token is None:
            rest = text[position:].strip()[:20]
            if rest.startswith("$"):
                raise PromqlError(
                    f"{rest.split()[0]!r} stands for nothing here; {WHOLE_RANGE} is the whole part"
                )
            raise PromqlError(f"cannot read {rest!r}")
        kind = str(token.lastgroup)
        tokens.append(_Token(kind, token[kind]))
        position = token.end()
    return [*tokens, _Token("end", "")]


class _Reader:
    """Takes tokens from left to right."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    # --- expressions --------------------------------------------------------------------------------

    def expression(self) -> Expression:
        self._depth += 1
        if self._depth > DEEPEST:
            raise PromqlError(f"nested deeper than {DEEPEST} levels")
        expression = self._level(0)
        self._depth -= 1
        return expression

    def end(self) -> None:
        if self._peek.kind != "end":
            raise PromqlError(f"nothing can follow here, got {self._peek.text!r}")

    def _level(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._level(level + 1)
        while self._peek.kind == "sign" and self._peek.text in _LEVELS[level]:
            left = self._binary(left, lambda: self._level(level + 1))
        if self._peek.kind == "name" and self._peek.text in FOREIGN_WORDS:
            raise NotOurs(f"{self._peek.text} is answered by a Prometheus server only")
        return left

    def _unary(self) -> Expression:
        if self._peek.kind == "sign" and self._peek.text in "+-":
            sign = self._take().text
            self._depth += 1
            if self._depth > DEEPEST:
                raise PromqlError(f"nested deeper than {DEEPEST} levels")
            operand = self._unary()
            self._depth -= 1
            self._want_kind(operand, ("scalar", "vector"), f"unary {sign}")
            return operand if sign == "+" else Negative(operand)
        base = self._postfix()
        if self._is_sign("^"):
            return self._binary(base, self._unary)
        return base

    def _binary(self, left: Expression, read_right: Callable[[], Expression]) -> Expression:
        operator = self._take().text
        is_bool = self._peek.kind == "name" and self._peek.text == "bool"
        if is_bool:
            self._take()
        if is_bool and operator not in COMPARISONS:
            raise PromqlError(f"bool goes with comparisons, not with {operator}")
        is_on = False
        matching: tuple[str, ...] = ()
        if self._peek.text in ("on", "ignoring") and self._after_next.text == "(":
            is_on = self._take().text == "on"
            matching = self._labels()
        right = read_right()
        for side in (left, right):
            self._want_kind(side, ("scalar", "vector"), operator)
        both = kind_of(left) == kind_of(right)
        if (is_on or matching) and not (both and kind_of(left) == "vector"):
            raise PromqlError("on and ignoring match series: both sides are to be vectors")
        if operator in COMPARISONS and both and kind_of(left) == "scalar" and not is_bool:
            raise PromqlError(f"comparing two numbers gives 0 or 1: {operator} bool")
        return Binary(operator, left, right, matching, is_on, is_bool)

    def _postfix(self) -> Expression:
        expression = self._atom()
        while True:
            if self._is_sign("["):
                expression = self._range(expression)
            elif self._peek.text == "offset" and self._peek.kind == "name":
                expression = self._offset(expression)
            elif self._is_sign("@"):
                raise NotOurs("the modifier @ is answered by a Prometheus server only")
            else:
                return expression

    def _range(self, of: Expression) -> Expression:
        self._take()
        if self._peek.kind == "whole":
            self._take()
            seconds = None
        else:
            seconds = self._duration("the range")
        if self._is_sign(":"):
            raise NotOurs("subqueries are answered by a Prometheus server only")
        self._want("]")
        if not isinstance(of, Selector):
            raise PromqlError("a range belongs behind a selector: metric{...}[5s]")
        if of.offset_s:
            raise PromqlError("offset stands behind the range: metric[5s] offset 1m")
        return Range(of, seconds)

    def _offset(self, of: Expression) -> Expression:
        self._take()
        if self._is_sign("-"):
            raise NotOurs("a negative offset is answered by a Prometheus server only")
        seconds = self._duration("offset")
        if isinstance(of, Selector):
            return replace(of, offset_s=seconds)
        if isinstance(of, Range):
            return replace(of, selector=replace(of.selector, offset_s=seconds))
        raise PromqlError("offset belongs behind a selector: metric offset 5m")

    def _atom(self) -> Expression:
        token = self._peek
        if token.kind == "number":
            return Number(float(self._take().text))
        if token.kind == "sign" and token.text == "(":
            self._take()
            inner = self.expression()
            self._want(")")
            return inner
        if token.kind == "sign" and token.text == "{":
            return self._selector(None)
        if token.kind == "name":
            return self._named()
        if token.kind == "text":
            raise NotOurs("texts are answered by a Prometheus server only")
        if token.kind in ("duration", "whole"):
            raise PromqlError(f"{token.text} is a duration: it stands in brackets, metric[{token.text}]")
        if token.kind == "end":
            raise PromqlError("an expression is missing")
        raise PromqlError(f"an expression cannot begin with {token.text!r}")

    def _named(self) -> Expression:
        name = self._take().text
        follows = self._peek.text
        if name in FOREIGN_WORDS:
            raise NotOurs(f"{name} is answered by a Prometheus server only")
        if (name in AGGREGATES or name in FOREIGN_AGGREGATES) and follows in ("(", "by", "without"):
            return self._aggregate(name)
        if follows != "(":
            return self._selector(name)
        if name in FOREIGN_FUNCTIONS:
            raise NotOurs(f"{name}() is answered by a Prometheus server only")
        if name not in FUNCTIONS:
            near = difflib.get_close_matches(name, [*FUNCTIONS, *AGGREGATES, *FOREIGN_FUNCTIONS], n=1)
            raise PromqlError(f"there is no function {name}" + (f"; did you mean {near[0]}?" if near else ""))
        return self._call(name)

    def _call(self, name: str) -> Expression:
        arguments = self._arguments()
        signature = FUNCTIONS[name]
        most = len(signature.takes)
        if not most - signature.optional <= len(arguments) <= most:
            raise PromqlError(f"{name}() takes {' and '.join(f'a {kind}' for kind in signature.takes)}")
        for argument, kind in zip(arguments, signature.takes, strict=False):
            self._want_kind(argument, (kind,), f"{name}()")
        return Call(name, arguments)

    def _aggregate(self, name: str) -> Expression:
        if name in FOREIGN_AGGREGATES:
            raise NotOurs(f"{name}() is answered by a Prometheus server only")
        grouping = self._grouping()
        arguments = self._arguments()
        grouping = self._grouping() if grouping is None else grouping
        wanted = 2 if name == "quantile" else 1
        if len(arguments) != wanted:
            raise PromqlError(f"{name}() takes {'a scalar and a vector' if wanted == 2 else 'a vector'}")
        parameter = arguments[0] if wanted == 2 else None
        if parameter is not None:
            self._want_kind(parameter, ("scalar",), f"{name}()")
        self._want_kind(arguments[-1], ("vector",), f"{name}()")
        is_without, labels = grouping or (False, ())
        return Aggregate(name, arguments[-1], labels, is_without, parameter)

    # --- selectors ----------------------------------------------------------------------------------

    def _selector(self, name: str | None) -> Selector:
        matchers = [] if name is None else [Matcher("__name__", "=", name)]
        if self._is_sign("{"):
            matchers += self._listed("{", self._matcher, "}")
        if all(matcher.fits_value("") for matcher in matchers):
            raise PromqlError('a selector without a condition would take every series: {job="api"}')
        return Selector(tuple(matchers))

    def _matcher(self) -> Matcher:
        label = self._label()
        operator = self._take()
        if operator.text not in ("=", "!=", "=~", "!~"):
            raise PromqlError(f'wanted {label}="value", got {operator.text!r}')
        value = self._take()
        if value.kind != "text":
            raise PromqlError(f'the value of {label} stands in quotes: {label}="{value.text}"')
        text = _unquoted(value.text)
        pattern = None
        if operator.text in ("=~", "!~"):
            try:
                pattern = re.compile(text, re.DOTALL)
            except re.error as error:
                raise PromqlError(f"{text!r} is no pattern: {error}") from None
        return Matcher(label, operator.text, text, pattern)  # type: ignore[arg-type]  # one of the four, above

    def _grouping(self) -> tuple[bool, tuple[str, ...]] | None:
        if self._peek.text not in ("by", "without"):
            return None
        is_without = self._take().text == "without"
        return is_without, self._labels()

    def _labels(self) -> tuple[str, ...]:
        return self._listed("(", self._label, ")")

    def _label(self) -> str:
        token = self._take()
        if token.kind not in ("name", "number") or not _LABEL.fullmatch(token.text):
            raise PromqlError(f"wanted a label, got {token.text or 'the end'!r}")
        return token.text

    def _arguments(self) -> tuple[Expression, ...]:
        return self._listed("(", self.expression, ")")

    def _listed(self, opens: str, read: Callable[[], T], closes: str) -> tuple[T, ...]:
        """Read items between two signs, with commas; a last comma is allowed."""
        self._want(opens)
        items = []
        while not self._is_sign(closes):
            items.append(read())
            if not self._is_sign(","):
                break
            self._take()
        self._want(closes)
        return tuple(items)

    # --- tokens -------------------------------------------------------------------------------------

    @property
    def _peek(self) -> _Token:
        return self._tokens[self._next]

    @property
    def _after_next(self) -> _Token:
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _is_sign(self, text: str) -> bool:
        return self._peek.kind == "sign" and self._peek.text == text

    def _want(self, sign: str) -> None:
        if not self._is_sign(sign):
            raise PromqlError(f"wanted {sign!r}, got {self._peek.text or 'the end'!r}")
        self._take()

    def _duration(self, what: str) -> float:
        token = self._take()
        if token.kind != "duration":
            raise PromqlError(
                f"{what} is a duration such as 5s or {WHOLE_RANGE}, got {token.text or 'the end'!r}"
            )
        seconds = sum(int(count) * UNIT_S[unit] for count, unit in _DURATION_PART.findall(token.text))
        if seconds <= 0:
            raise PromqlError(f"{what} is longer than 0")
        return seconds

    def _want_kind(self, expression: Expression, kinds: tuple[Kind, ...], who: str) -> None:
        kind = kind_of(expression)
        if kind not in kinds:
            example = {
                "range": "a range of samples: metric[5s]",
                "vector": "series: metric, or what is made of them",
                "scalar": "a number",
            }[kinds[0]]
            raise PromqlError(f"{who} wants {example}; got a {kind}")


def _unquoted(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]
    return re.sub(r"\\(.)", lambda escaped: {"n": "\n", "t": "\t"}.get(escaped[1], escaped[1]), text[1:-1])
