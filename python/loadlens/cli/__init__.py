"""The command line: one file per verb, wiring only.

A verb is imported when it is asked for, and imports what it needs when it runs: a refusal stays cheap.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import Any, Final

import click
import typer

from loadlens.cli.grammar import mistakes
from loadlens.cli.grammar.command import UNREAD, Commands, Verb, Verbs
from loadlens.cli.lab import needing_lab
from loadlens.cli.options import Example
from loadlens.credentials import Hiding, names_in
from loadlens.errors import FULL, ExitCode, LoadlensError, RecordError, UsageError, limit_met, visible

# Groups of the list of verbs.
URLS: Final = "A URL"
STUDIES: Final = "A study"
OTHERS: Final = "Flags and output of other tools"
SETUP: Final = "This machine"

# The name of each verb, which is that of its function: its group, and its module.
VERBS: Final = {
    "hit": (URLS, "loadlens.cli.hit"),
    "explain": (URLS, "loadlens.cli.explain"),
    "capacity": (URLS, "loadlens.cli.capacity"),
    "compare": (URLS, "loadlens.cli.compare.verb"),
    "init": (STUDIES, "loadlens.cli.init"),
    "check": (STUDIES, "loadlens.cli.check"),
    "run": (STUDIES, "loadlens.cli.run"),
    "show": (STUDIES, "loadlens.cli.report"),
    "report": (STUDIES, "loadlens.cli.report"),
    "ui": (STUDIES, "loadlens.cli.ui.verb"),
    "steer": (STUDIES, "loadlens.cli.ui.steer"),
    "history": (STUDIES, "loadlens.cli.compare.history"),
    "schema": (STUDIES, "loadlens.cli.schema"),
    "wrk": (OTHERS, "loadlens_compat.wrk.verb"),
    "ab": (OTHERS, "loadlens_compat.ab.verb"),
    "hey": (OTHERS, "loadlens_compat.hey.verb"),
    "demo": (URLS, "loadlens.cli.demo"),
    "doctor": (SETUP, "loadlens.cli.doctor"),
    "fleet": (SETUP, "loadlens.cli.fleet.verb"),
    "completion": (SETUP, "loadlens.cli.completion"),
    "version": (SETUP, "loadlens.cli"),
}
# Verbs of the extra `lab`. Every other verb runs with the packages of the core alone.
LAB_VERBS: Final = frozenset(
    {"compare", "demo", "history", "explain", "capacity", "run", "report", "show", "ui"}
)
DRAWING: Final = frozenset({"run", "report"})  # charts for a page

# Faults of a path that the user gave. Like those of a full disk, they are no bugs of the program.
PLACES: Final = frozenset(
    {errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENOENT}
)


def _made(name: str) -> click.Command:
    """Import a verb and return its command."""
    group, module = VERBS[name]
    run = getattr(import_module(module), name)
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(
        name,
        cls=Verb,
        rich_help_panel=group,
        context_settings=UNREAD if group == OTHERS else None,
    )(needing_lab(run, draws=name in DRAWING) if name in LAB_VERBS else run)
    return typer.main.get_command(single)


class Program(Verbs):
    """The verbs of Loadlens."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given | {"commands": Commands(VERBS, _made)})


app = typer.Typer(
    name="loadlens",
    cls=Program,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def version() -> None:
    """Print the version of Loadlens and of its engine."""
    from loadlens import __version__, engine

    print(f"loadlens {__version__} (engine {engine.version()})")


def _version_and_exit(is_asked: bool) -> None:
    if is_asked:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _: bool = typer.Option(
        False,
        "-V",
        "--version",
        callback=_version_and_exit,
        is_eager=True,
        help="Print the version and exit.",
    ),
) -> None:
    """See what your service does under load, and why.

    A URL alone means `hit`. `loadlens VERB --help` shows the options of a verb.
    """


_options.examples = (  # type: ignore[attr-defined]
    Example("loadlens demo", "see a hidden flaw found"),
    Example("loadlens http://127.0.0.1:8080/", "how fast is it?"),
    Example("loadlens explain http://127.0.0.1:8080/", "what limits it, and why?"),
    Example("loadlens capacity http://127.0.0.1:8080/ --objective 'p99<50ms'", "how much can it take?"),
    Example("loadlens compare http://127.0.0.1:8080/ http://127.0.0.1:8081/", "is B slower than A?"),
    Example("loadlens init http://127.0.0.1:8080/", "write a study to start from"),
    Example("loadlens run study.yaml", "run it: trials, record, report"),
)


def main() -> None:
    """Run the command line; expected faults become a message and an exit code, never a traceback."""
    sys.exit(run_verb())


def run_verb() -> int:
    """Run the verb that is asked for and return its exit code."""
    try:
        # An interrupt that no verb took comes back as its exit code.
        code = app(prog_name="loadlens", standalone_mode=False)
        return code if isinstance(code, int) else ExitCode.OK
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.OK
    except click.ClickException as fault:
        return _refuse(mistakes.error_of(fault))
    except LoadlensError as fault:
        return _refuse(fault)
    except (KeyboardInterrupt, typer.Abort) as end:
        # typer turns the end of any input that a library reads, such as a damaged module, into an interrupt
        return _internal(end.__cause__) if isinstance(end.__cause__, EOFError) else ExitCode.INTERRUPTED
    except OSError as fault:
        if (limit := limit_met(fault)) is not None:
            return _refuse(limit)
        if (fault.errno not in PLACES and fault.errno not in FULL) or os.environ.get("LOADLENS_DEBUG"):
            return _internal(fault)
        if not _has_folder():
            return _refuse(UsageError("the working directory was deleted", hint="cd to a folder that exists"))
        named = "" if fault.filename is None else f" {fault.filename!r}"
        words = f"cannot use{named}: {(fault.strerror or '').lower()}"
        return _refuse(UsageError(words) if fault.errno in PLACES else RecordError(words))
    except BaseException as fault:  # a panic of a library in Rust is not an Exception
        if isinstance(fault.__cause__, KeyboardInterrupt):  # Python 3.11 wraps one that meets a new class
            return ExitCode.INTERRUPTED
        limit = limit_met(fault)
        return _internal(fault) if limit is None else _refuse(limit)


def _has_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _refuse(fault: LoadlensError) -> int:
    sys.stderr.write(f"loadlens: {_shown(str(fault))}\n")
    return fault.code


def _shown(text: str) -> str:
    """Return a message without credentials that were typed; control characters are shown, not sent."""
    return visible(Hiding(names_in(sys.argv[1:])).text(text))


def _internal(fault: BaseException) -> int:
    if os.environ.get("LOADLENS_DEBUG"):
        raise fault
    sys.stderr.write(
        f"loadlens: internal error: {type(fault).__name__}: {_shown(str(fault))}\n"
        "  try the same command with LOADLENS_DEBUG=1 and report what it prints\n"
    )
    return ExitCode.BUG
