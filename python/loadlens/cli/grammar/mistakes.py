"""Faults that click finds on a command line, as errors of our own: what is wrong and what to type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

from loadlens.cli.grammar import foreign
from loadlens.errors import UsageError, nearest

_NOT_WHOLE: Final = re.compile(r"(.+) is not a valid (?:integer|int|float)(?: range)?\.?")
_OUT_OF_RANGE: Final = re.compile(r"(\S+) is not in the range x>=(\d+)\.?")
_EXAMPLE: Final = re.compile(r"Example: ([^.,]+?)(?:,|\.?$)")


def error_of(fault: click.ClickException, words: Sequence[str] = ()) -> UsageError:
    """Return a fault of the command line in the form of every other error.

    Args:
        fault: As click found it.
        words: What was typed after the verb.
    """
    context = getattr(fault, "ctx", None)
    verb = _name(context)
    if isinstance(fault, click.NoSuchOption):
        return UsageError(f"{verb} has no option {fault.option_name}", hint=_instead(fault, context, words))
    if isinstance(fault, click.MissingParameter) and fault.param is not None:
        return UsageError(f"{verb} needs {_with_article(fault.param)}", hint=_first_example(context))
    if isinstance(fault, click.BadParameter) and fault.param is not None:
        option = max(fault.param.opts, key=len)
        message = _NOT_WHOLE.sub(r"\1 is not a whole number", fault.message)
        message = _OUT_OF_RANGE.sub(r"at least \2, got \1", message).rstrip(".")
        return UsageError(message, where=option, hint=_example(fault.param))
    if isinstance(fault, click.BadOptionUsage):
        param = _param(context, fault.option_name)
        if param is not None and not getattr(param, "is_flag", False):
            return UsageError(f"{fault.option_name} needs a value", where=verb, hint=_example(param))
        return UsageError(f"{fault.option_name} takes no value", where=verb, hint=fault.option_name)
    message = fault.format_message().rstrip(".")
    if extra := re.search(r"unexpected extra arguments? \((.+)\)$", message):
        return UsageError(f"{verb} takes no further word, got {extra[1]!r}", hint=_help(context))
    return UsageError(message[:1].lower() + message[1:], where=verb, hint=_help(context))


def refuse_single_dash(words: list[str], command: click.Command, verb: str) -> None:
    """Refuse `-rate 50`, as Go programs write it: it would be read as `-r ate`.

    Raises:
        UsageError: A long option is written with one dash.
    """
    long = {name for param in command.params for name in param.opts if name.startswith("--")}
    for word in words:
        if word == "--":
            return
        name = f"-{word.partition('=')[0]}"
        if word[:1] == "-" and word[1:2] != "-" and len(name) > 3 and (name in long or name in foreign.HINTS):
            value = _value(word.partition("=")[0], words)
            hint = name if name in long else foreign.hint_of(name, _options(command), value)
            hint = hint or f"loadlens {verb} --help"
            raise UsageError(f"{word.partition('=')[0]} with one dash", where=verb, hint=hint)


def _name(context: click.Context | None) -> str:
    if context is None or context.parent is None:
        return "loadlens"
    return context.info_name or ""


def _options(command: click.Command) -> list[str]:
    return [name for param in command.params if isinstance(param, click.Option) for name in param.opts]


def _instead(fault: click.NoSuchOption, context: click.Context | None, words: Sequence[str]) -> str:
    if context is None:
        return _help(None)
    own = [*_options(context.command), "--help"]
    shown = [name for name in own if name not in _hidden(context.command)]
    hint = foreign.hint_of(fault.option_name, own, _value(fault.option_name, words))
    if hint is not None:
        return hint
    if fault.option_name == "--json" and "--out" in own:
        return "--out json=FILE"
    others = _verbs_with(fault.option_name, context)
    if others:
        return f"loadlens {' or '.join(others)}, which has it"
    near = nearest(fault.option_name, [name for name in shown if len(name) > 2])
    bare = fault.option_name.lstrip("-")
    # Two edits make most short words of any other: one that begins alike is meant.
    if near is not None and len(bare) > 1 and (len(bare) > 4 or near.lstrip("-")[0] == bare[0]):
        return f"did you mean {near}?"
    return _help(context)


def _value(option: str, words: Sequence[str]) -> str:
    """Return what was typed for an option that is not known; empty if nothing can be meant for it."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        name, _, value = word.partition("=")
        if name == option:
            return value or following
        if word.startswith(option) and not option.startswith("--"):
            return word[len(option) :]
    return ""


def _hidden(command: click.Command) -> list[str]:
    return [
        name
        for param in command.params
        if isinstance(param, click.Option) and param.hidden
        for name in param.opts
    ]


def _verbs_with(option: str, context: click.Context) -> list[str]:
    """Return verbs that have an option; if any of them takes the same argument, only those."""
    group = context.parent.command if context.parent is not None else context.command
    if not isinstance(group, click.Group):
        return []
    having = {name: command for name, command in group.commands.items() if option in _options(command)}
    argument = _argument(context.command)
    alike = [name for name, command in having.items() if _argument(command) == argument]
    return (alike or list(having))[:3]


def _argument(command: click.Command) -> str:
    first = next((param for param in command.params if isinstance(param, click.Argument)), None)
    return "" if first is None else first.metavar or ""


def _param(context: click.Context | None, option: str) -> click.Parameter | None:
    params = [] if context is None else context.command.params
    return next((param for param in params if option in param.opts), None)


def _with_article(param: click.Parameter) -> str:
    name = (param.metavar or (param.name or "").upper()).strip("[].")
    return f"a {name}"


def _example(param: click.Parameter) -> str | None:
    """Return the first example of an option's help, else its form."""
    given = _EXAMPLE.search(getattr(param, "help", None) or "")
    if given is not None:
        return given[1]
    return f"{max(param.opts, key=len)} {param.metavar}" if param.metavar else None


def _first_example(context: click.Context | None) -> str:
    examples = getattr(context.command.callback, "examples", ()) if context is not None else ()
    return examples[0].command if examples else _help(context)


def _help(context: click.Context | None) -> str:
    return " ".join(dict.fromkeys(("loadlens", _name(context), "--help")))
