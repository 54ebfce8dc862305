"""Options of the verbs: each is declared once, as a field of a dataclass that the command line fills."""

from __future__ import annotations

import inspect
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import typer

from loadlens import named_pipes
from loadlens.credentials import Hiding
from loadlens.errors import UsageError, did_you_mean, nearest, reason_of
from loadlens.model.workload import KEPT_ROWS

DEVICE_BYTES: Final = 1 << 20  # of a device, which may have no end
MOST_BYTES: Final = 256 << 20  # of a file that a flag names, which is kept in memory
Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Example:
    """A command as typed, and a few words on what it does."""

    command: str
    says: str


def option(spec: str, help: str, default: Any = None, *, group: str | None = None, **more: Any) -> Any:
    """Declare an option by its flags and placeholder, `-c --connections N`; a switch has no placeholder.

    A field with the type `tuple[..., ...]` makes the option repeatable. Help lists options by group.
    """
    *flags, last = spec.split()
    metavar: str | None = last
    if last.startswith("-"):
        flags, metavar, default = [*flags, last], None, bool(default)
    shown = None if default == () else default
    declared = typer.Option(shown, *flags, metavar=metavar, help=help, rich_help_panel=group, **more)
    return field(default=default, metadata={"typer": declared})


def argument(metavar: str, help: str, default: Any = ..., **more: Any) -> Any:
    """Declare an argument; one without a default is required on the command line."""
    declared = typer.Argument(None if default == () else default, metavar=metavar, help=help, **more)
    return field(
        default=None if default is ... else default,
        metadata={"typer": declared},
    )


def verb(
    options: type[Options], *examples: Example
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that turns a function of its options into a command for typer."""

    def command_of(run: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(filled(options, given))

        command.__name__, command.__doc__ = run.__name__, run.__doc__
        parameters = parameters_of(options)
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.examples = examples  # type: ignore[attr-defined]
        return command

    return command_of


def parameters_of(options: type[Options]) -> list[inspect.Parameter]:
    """Return the options as parameters, the type of each as typer reads it."""
    hints = get_type_hints(options)
    return [_parameter(each, hints[each.name]) for each in fields(options)]  # type: ignore[arg-type]


def filled(options: type[Options], given: Mapping[str, Any]) -> Options:
    """Return the options with these values; one that is `None` keeps its default.

    Raises:
        UsageError: Text or a path is not UTF-8.
    """
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    refuse_bytes(values, parameters_of(options))
    return options(**{name: value for name, value in values.items() if value is not None})


def refuse_bytes(values: Mapping[str, Any], parameters: Sequence[inspect.Parameter]) -> None:
    """Refuse text and paths that are not UTF-8, which neither a plan nor a record can hold.

    Raises:
        UsageError: An option or argument has such bytes, or is a path below a folder that has.
    """
    flags = {each.name: (each.default.param_decls or (each.default.metavar,))[-1] for each in parameters}
    for name, value in values.items():
        for each in value if isinstance(value, tuple) else (value,):
            refuse_bytes_in(each, flags[name])


def refuse_bytes_in(value: object, flag: str) -> None:
    """Refuse one value; a path also for the folder that it is in."""
    text = _absolute(value) if isinstance(value, Path) else str(value)
    if any("\udc80" <= sign <= "\udcff" for sign in text):
        hint = "a path without such bytes" if isinstance(value, Path) else "%FF in a URL, -f FILE for a body"
        raise UsageError(f"not UTF-8: {os.fsencode(text)!r}", where=flag, hint=hint)


def _absolute(path: Path) -> str:
    try:
        return os.path.abspath(path)
    except FileNotFoundError:  # the working directory was deleted
        return str(path)


def _parameter(declared: Field[Any], kind: Any) -> inspect.Parameter:
    if get_origin(kind) is tuple:
        kind = list[get_args(kind)[0]] | None  # type: ignore[misc]  # typer reads repeated options as a list
    info = declared.metadata["typer"]
    return inspect.Parameter(declared.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)


def hiding_of(texts: Sequence[str]) -> Hiding:
    """Return what --hide hides, besides what is always hidden.

    Raises:
        UsageError: It is no list of names.
    """
    names = tuple(name.strip() for text in texts for name in text.split(","))
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise UsageError(f"not a name: {name!r}", where="--hide", hint="--hide sig,X-Partner")
    return Hiding(names)


def choice(text: str, choices: Sequence[str], flag: str, what: str) -> str:
    """Return a word that is one of several.

    Raises:
        UsageError: It is none of them.
    """
    if text in choices:
        return text
    raise UsageError(f"no {what} {text!r}", where=flag, hint=did_you_mean(text, choices))


def unreadable(file: str, fault: OSError, flag: str) -> UsageError:
    """Return the error for a file of a flag: why it cannot be read, and the name of one that is there."""
    path = Path(file)
    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = None if path.exists() else nearest(path.name, names)
    hint = f"a path seen from {Path.cwd()}" if near is None else f"did you mean {path.parent / near}?"
    if path.is_fifo():
        hint = "a file, or - where standard input is taken"
    why = reason_of(fault)
    return UsageError(f"cannot read {file!r}: {why}", where=flag, hint=hint)


def read_file(file: str, flag: str, most: int = MOST_BYTES, *, is_stdin: bool = False) -> bytes:
    """Read a file of a flag, or standard input, to its end.

    Raises:
        UsageError: It cannot be read, or is longer than `most` bytes; of a device, 1 MiB.
    """
    try:
        kind = os.fstat(sys.stdin.fileno()) if is_stdin else os.stat(file)
        if stat.S_ISCHR(kind.st_mode):
            most = min(most, DEVICE_BYTES)
        is_longer = stat.S_ISREG(kind.st_mode) and kind.st_size > most
        content = b""
        if not is_longer:
            content = sys.stdin.buffer.read(most + 1) if is_stdin else named_pipes.read(Path(file), most + 1)
    except OSError as fault:
        raise unreadable(file, fault, flag) from None
    if is_longer or len(content) > most:
        raise UsageError(f"{file!r} is longer than {most >> 20} MiB", where=flag, hint="a shorter file")
    return content


def refuse_stream(file: str, flag: str) -> None:
    """Refuse a pipe or device where a file is read more than once.

    Raises:
        UsageError: It is there and no regular file.
    """
    path = Path(file)
    if path.exists() and not path.is_file():
        raise UsageError(f"not a regular file: {file!r}", where=flag, hint="a copy of it in a file")


# Declarations that several verbs share.
VARIANTS: Final = (
    "--variant SERVICE=NAME",
    (
        "Run a service in this variant; repeatable. Default: the first variant that can run on this machine. "
        "Example: --variant api=cowboy"
    ),
    (),
)
METHOD: Final = ("-m --method -X METHOD", "Use METHOD. Default: GET, or POST with a body. Example: -m PUT")
HEADERS: Final = ("-H --header NAME:VALUE", "Add a header; repeatable. Example: -H 'Accept: */*'", ())
TRACEPARENT: Final = (
    "--traceparent",
    (
        "Send a W3C trace context with each request; the record leads from a request to its trace. "
        "Default: none."
    ),
)
EXPECTED: Final = (
    "--expect STATUS,...",
    "Count only these statuses as success: 200, 2xx, 200-299. Default: 200-399. Example: --expect 2xx,404",
)
HIDE: Final = (
    "--hide NAME,...",
    (
        "Keep the values of these headers, query fields and body fields out of record, reports and output, "
        "as is done for Authorization, Cookie and names with password, secret, token or api_key. Example: "
        "--hide sig"
    ),
    (),
)
SAMPLES: Final = (
    "--samples all|none|N",
    (
        "Keep a row of every request in the record, of none, or of at most N per stream, thinned evenly. "
        f"Counts and histograms stay exact. Default: {KEPT_ROWS:,}. Example: --samples 100k"
    ),
)
INSECURE: Final = (
    "-k --insecure",
    "Accept any certificate of an https server. No effect on http URLs.",
)
SEED: Final = ("--seed N", "Seed every random draw with N. Default: a new seed, which is recorded.")
OUT: Final = ("-o --out DIR", "Write the record to DIR, a new folder.")
