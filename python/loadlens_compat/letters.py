"""Flags as ab (getopt), wrk (getopt_long) and hey (Go) read them: letters that cling, long names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from loadlens.cli.options import refuse_bytes_in
from loadlens.errors import UsageError

WIDTH: Final = 80  # columns of help


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of the other program."""

    name: str
    says: str
    value: str = ""  # what stands behind it; empty: nothing
    instead: str = ""  # it cannot be honoured: what to try; `says` is why
    long: str = ""  # the name behind two dashes, where there is one

    @property
    def shown(self) -> str:
        """As a person writes it, with what stands behind it."""
        names = f"-{self.name}, --{self.long}" if self.long else f"-{self.name}"
        return f"{names} {self.value}".strip()


Given = list[tuple[Flag, str]]


def getopt(words: Sequence[str], flags: Sequence[Flag], verb: str) -> tuple[Given, list[str]]:
    """Read letters up to the first word that is none: `-n 10`, `-n10`, `-kn 10`.

    Returns:
        The flags in their order with their values, and the other words.

    Raises:
        UsageError: An unknown letter, one without its value, or a word that is not UTF-8.
    """
    _refuse_bytes(words, verb)
    by_name = {flag.name: flag for flag in flags}
    given: Given = []
    rest = list(words)
    for word in _leading(rest):
        given += _letters(word[1:], rest, by_name, verb)
    return given, rest


def getopt_long(words: Sequence[str], flags: Sequence[Flag], verb: str) -> tuple[Given, list[str]]:
    """Read letters and long names wherever they stand: `-t2`, `--threads 2`, `--threads=2`, `--thr 2`.

    Returns:
        The flags in their order with their values, and the other words in theirs; behind `--` all are such.

    Raises:
        UsageError: An unknown flag, one of which several could be meant, one without its value, or a
            word that is not UTF-8.
    """
    _refuse_bytes(words, verb)
    by_name = {flag.name: flag for flag in flags}
    given: Given = []
    others: list[str] = []
    rest = list(words)
    while rest:
        if rest[0] == "--":
            return given, [*others, *rest[1:]]
        if not rest[0].startswith("-") or rest[0] == "-":
            others.append(rest.pop(0))
            continue
        if rest[0].startswith("--"):
            name, equals, value = rest.pop(0)[2:].partition("=")
            flag = _by_long_name(flags, name, verb)
            if equals and not flag.value:
                raise UsageError(f"--{flag.long} takes no value, got {value!r}", hint=f"--{flag.long}")
            given.append((flag, value if equals or not flag.value else _next(rest, flag, verb)))
            continue
        given += _letters(rest.pop(0)[1:], rest, by_name, verb)
    return given, others


def _refuse_bytes(words: Sequence[str], verb: str) -> None:
    for word in words:
        refuse_bytes_in(word, f"loadlens {verb}")


def _leading(rest: list[str]) -> Iterator[str]:
    """Take flags away up to the first word that is none, or to `--`."""
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            return
        yield word


def _letters(letters: str, rest: list[str], by_name: Mapping[str, Flag], verb: str) -> Given:
    """The flags of one word; a value that is not in it is taken from `rest`."""
    given: Given = []
    while letters:
        flag = _flag(by_name, letters[0], verb)
        letters = letters[1:]
        if flag.value:
            given.append((flag, letters or _next(rest, flag, verb)))
            break
        given.append((flag, ""))
    return given


def _by_long_name(flags: Sequence[Flag], name: str, verb: str) -> Flag:
    """The flag of a long name, or of its beginning where only one begins so."""
    meant = [flag for flag in flags if flag.long and flag.long.startswith(name)]
    exact = [flag for flag in meant if flag.long == name]
    if len(exact or meant) == 1 and name:
        return (exact or meant)[0]
    hint = ", ".join(f"--{flag.long}" for flag in meant or flags if flag.long)
    what = "could be several flags" if meant and name else f"is no flag of {verb}"
    raise UsageError(f"--{name[:40]} {what}", hint=hint)


def go_flags(words: Sequence[str], flags: Sequence[Flag], verb: str) -> tuple[Given, list[str]]:
    """Read flags as Go does, up to the first word that is none: `-n 10`, `-n=10`, `--n=10`, `-h2=false`.

    Raises:
        UsageError: An unknown flag, one without its value, a switch that is neither true nor false, or a
            word that is not UTF-8.
    """
    _refuse_bytes(words, verb)
    by_name = {flag.name: flag for flag in flags}
    given: Given = []
    rest = list(words)
    for word in _leading(rest):
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        flag = _flag(by_name, name, verb)
        if flag.value:
            given.append((flag, value if equals else _next(rest, flag, verb)))
        elif not equals or value in ("1", "t", "T", "true", "TRUE", "True"):
            given.append((flag, ""))
        elif value not in ("0", "f", "F", "false", "FALSE", "False"):
            raise UsageError(f"neither true nor false: {value!r}", where=f"-{name}", hint=f"-{name}")
    return given, rest


def refuse(given: Given, verb: str) -> None:
    """Raise when flags are among them that cannot be honoured, all at once."""
    refused = {flag.name: flag for flag, _ in given if flag.instead}
    if refused:
        raise UsageError(
            "; ".join(f"-{flag.name} {flag.value}".strip() + f": {flag.says}" for flag in refused.values()),
            where=f"loadlens {verb} {' '.join(f'-{name}' for name in refused)}",
            hint="; ".join(dict.fromkeys(flag.instead for flag in refused.values())),
        )


def usage(first: str, flags: Sequence[Flag]) -> Iterator[str]:
    """The lines of a help text: what is honoured, then what is not and what to try instead."""
    yield first
    yield "Options are:"
    for flag in flags:
        if not flag.instead:
            yield from _entry(flag, flag.says)
    if any(flag.instead for flag in flags):
        yield "Not honoured:"
    for flag in flags:
        if flag.instead:
            yield from _entry(flag, f"{flag.says}; try {flag.instead}")


def _entry(flag: Flag, says: str) -> Iterator[str]:
    wrapped = textwrap.wrap(says, WIDTH - 25, break_long_words=False, break_on_hyphens=False)
    yield f"    {flag.shown:<20} {wrapped[0]}"
    yield from (f"{'':<25}{line}" for line in wrapped[1:])


def whole(text: str, flag: str, *, at_least: int, at_most: int | None = None) -> int:
    """A whole number behind a flag."""
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"not a whole number: {text[:60]!r}", where=flag, hint=f"{flag} 100") from None
    if number < at_least:
        raise UsageError(f"at least {at_least}, got {number}", where=flag, hint=f"{flag} {at_least}")
    if at_most is not None and number > at_most:
        raise UsageError(f"at most {at_most}, got {number}", where=flag, hint=f"{flag} {at_most}")
    return number


def literal(text: str, flag: str) -> str:
    """Text that goes out as it is; braces would be filled by the engine."""
    if "{{" in text:
        raise UsageError(
            "{{...}} is filled for each request by loadlens and would not go out as it stands",
            where=flag,
            hint="loadlens hit, whose headers are templates on purpose",
        )
    return text


def _flag(by_name: Mapping[str, Flag], name: str, verb: str) -> Flag:
    if name not in by_name:
        raise UsageError(f"{verb} has no flag -{name[:40]}", hint=f"loadlens {verb} -h")
    return by_name[name]


def _next(rest: list[str], flag: Flag, verb: str) -> str:
    if not rest:
        raise UsageError(
            f"-{flag.name} without its {flag.value}",
            hint=f"loadlens {verb} -{flag.name} {flag.value.upper()}",
        )
    return rest.pop(0)
