"""Keywords of the verbs: the long name of each flag, `-` as `_`, and any value that a flag takes as text."""

from __future__ import annotations

import inspect
import keyword
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from loadlens.cli.capacity import CapacityFlags
from loadlens.cli.compare.options import CompareFlags
from loadlens.cli.explain_options import ExplainFlags
from loadlens.cli.hit_options import HitOptions
from loadlens.cli.options import filled
from loadlens.cli.run import RunOptions
from loadlens.errors import UsageError, nearest

Options = TypeVar("Options")
Verb = TypeVar("Verb", bound=Callable[..., object])
OPTIONS: Final[Mapping[str, type[Any]]] = {
    "hit": HitOptions,
    "run": RunOptions,
    "explain": ExplainFlags,
    "compare": CompareFlags,
    "capacity": CapacityFlags,
}
# Flags about printing, which Python does not do, and other load tools, whose results have no intervals.
LEFT_OUT: Final = frozenset({"as_json", "quiet", "verbose", "driver"})
_TYPES: Final = {str: "Text", int: "int", bool: "bool", Path: "File"}


@dataclass(frozen=True, slots=True)
class Keyword:
    """A keyword, the field of the options that it fills, and the type of one value."""

    name: str
    field: str
    kind: type
    is_repeatable: bool

    @property
    def annotation(self) -> str:
        """The type of what is passed, as `flags.py` writes it."""
        if not self.is_repeatable:
            return _TYPES[self.kind]
        return "Texts" if self.kind is str else f"{_TYPES[self.kind]} | Sequence[{_TYPES[self.kind]}]"


def keywords_of(options: type[Any]) -> dict[str, Keyword]:
    """Return the keywords of a verb by name: its flags without those that are refused or only print."""
    hints = get_type_hints(options)
    keywords = {}
    for field in fields(options):
        declared = field.metadata["typer"]
        flags = [flag for flag in declared.param_decls or () if flag.startswith("--")]
        if flags and not declared.hidden and field.name not in LEFT_OUT:
            name = flags[0].removeprefix("--").replace("-", "_")
            name += "_" * keyword.iskeyword(name)
            hint = hints[field.name]
            parts = get_args(hint) if get_origin(hint) in (tuple, types.UnionType) else (hint,)
            keywords[name] = Keyword(name, field.name, parts[0], get_origin(hint) is tuple)
    return keywords


def described(verb: Verb) -> Verb:
    """Let `help` and notebooks show every keyword of a function with what its flag does."""
    options = OPTIONS[verb.__name__]
    allowed = keywords_of(options)
    defaults = {field.name: field.default for field in fields(options)}
    helps = {field.name: field.metadata["typer"].help for field in fields(options)}
    lines = [f"    {each.name}: {helps[each.field]}" for each in allowed.values()]
    verb.__doc__ = f"{inspect.cleandoc(verb.__doc__ or '')}\n\nKeywords:\n" + "\n".join(lines)
    signature = inspect.signature(verb)
    kept = [each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    kept += [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults[each.field],
            annotation=each.annotation,
        )
        for each in allowed.values()
    ]
    verb.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return verb


def options_of(options: type[Options], verb: str, given: Mapping[str, object], **more: object) -> Options:
    """Return the options of a verb, filled from keywords.

    Args:
        options: Their dataclass.
        verb: For messages.
        given: Keywords as passed; `None` leaves the default.
        more: Fields that no keyword fills.

    Raises:
        UsageError: No such keyword, or a value that no flag takes.
    """
    allowed = keywords_of(options)
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in allowed:
            near = nearest(name, list(allowed))
            hint = f"did you mean {near}?" if near else f"help(loadlens.{verb})"
            raise UsageError(f"{verb} has no keyword {name!r}", where=f"loadlens.{verb}", hint=hint)
        if value is not None:
            values[allowed[name].field] = _value(allowed[name], value, verb)
    return filled(options, values | more)


def _value(target: Keyword, value: object, verb: str) -> object:
    if not target.is_repeatable:
        return _one(target, value, verb)
    many = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    return [_one(target, each, verb) for each in many]


def _one(target: Keyword, value: object, verb: str) -> object:
    """Return a value as the command line would pass it on."""
    if target.kind is bool:
        if isinstance(value, bool):
            return value
    elif isinstance(value, str | Path) or (isinstance(value, int | float) and not isinstance(value, bool)):
        if target.kind is not int:
            return target.kind(value if isinstance(value, str | Path) else repr(value))
        if str(value).lstrip("-").isdecimal():
            return int(str(value))
    wanted = {bool: "True or False", int: "a whole number", Path: "a path"}.get(target.kind, "text")
    raise UsageError(
        f"{target.name} takes {wanted}, not {value!r}",
        where=f"loadlens.{verb}",
        hint=f"help(loadlens.{verb})",
    )
