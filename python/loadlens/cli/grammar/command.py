"""Reading of the command line: a URL alone means `hit`, mistakes are errors of our own, help has groups."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final

import click
from typer.core import TyperCommand, TyperGroup

from loadlens.cli.grammar import foreign, help_page, mistakes
from loadlens.errors import UsageError

_URL: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://.*|"  # a scheme
    r"(localhost|[\w-]+(\.[\w-]+)*\.[a-z]{2,}|\d+(\.\d+){3}|\[[0-9a-f:]+\])(:\d+)?([/?].*)?|"  # a host
    r"[\w.-]+:\d+([/?].*)?",  # a host and its port
    re.IGNORECASE,
)
_STUDY_ENDINGS: Final = (".yaml", ".yml")

# How click is kept from reading what belongs to another program's grammar.
UNREAD: Final[dict[str, Any]] = {
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


class Verb(TyperCommand):
    """One verb."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verb's help page."""
        help_page.write(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words after the verb."""
        if not ctx.ignore_unknown_options:
            mistakes.refuse_single_dash(args, self, ctx.info_name or "")
        typed = tuple(args)  # click takes words away as it reads them
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as fault:
            raise mistakes.error_of(fault, typed) from None
        except click.UsageError as fault:
            fault.ctx = fault.ctx or ctx  # click's parser does not know its verb
            raise


class Commands(MutableMapping[str, click.Command]):
    """Commands by name, each made when it is first asked for."""

    def __init__(self, names: Iterable[str], make: Callable[[str], click.Command]) -> None:
        self._made: dict[str, click.Command | None] = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> click.Command:
        made = self._made[name] or self._make(name)
        self._made[name] = made
        return made

    def __setitem__(self, name: str, made: click.Command) -> None:
        self._made[name] = made

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


class Verbs(TyperGroup):
    """The program: its verbs, and what is read as a verb."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs."""
        help_page.write(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line, of which the first may be a URL or an option of `hit`."""
        return super().parse_args(ctx, _with_verb(args, self))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb and the words after it.

        Raises:
            UsageError: There is no such verb.
        """
        if args[0] not in self.commands:
            raise UsageError(f"no verb {args[0]!r}", hint=_instead(args[0], list(self.commands)))
        return super().resolve_command(ctx, args)

    def _main_shell_completion(
        self, ctx_args: Any, prog_name: str, complete_var: str | None = None
    ) -> None:  # typer's own has no options of `loadlens completion`
        click.Group._main_shell_completion(self, ctx_args, prog_name, complete_var)


def _with_verb(words: list[str], group: click.Group) -> list[str]:
    """Put the verb in front that was meant: `hit` before a URL, the verb of `help VERB` before --help."""
    if not words:
        return ["--help"]
    if words[0] == "help":
        return [*words[1:2], "--help"]
    own = {name for param in group.params for name in param.opts} | {"-h", "--help"}
    is_option = words[0].startswith("-") and words[0] not in own
    if _is_url(words[0]) or (is_option and any("://" in word for word in words)):
        return ["hit", *words]
    return words


def _is_url(word: str) -> bool:
    return _URL.fullmatch(word) is not None and not Path(word).exists() and not word.endswith(_STUDY_ENDINGS)


def _instead(word: str, verbs: list[str]) -> str:
    if word.endswith(_STUDY_ENDINGS) or (Path(word) / "study.yaml").exists():
        return f"loadlens run {word}, or loadlens check {word}"
    foreign.refuse_file(word)
    if Path(word).is_dir():
        from loadlens.record import is_record

        if is_record(Path(word)):
            return f"loadlens show {word}"
    return foreign.verb_hint(word, verbs)
