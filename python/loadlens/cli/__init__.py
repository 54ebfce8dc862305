"""The command line: one file per verb, wiring only.

Verbs import what they need when they run, so that `--help` and a short `hit` stay cheap.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import typer

from loadlens.cli import check, doctor, explain, hit, init, report, run, schema
from loadlens.cli.lab import needing_lab
from loadlens.errors import ExitCode, LoadlensError
from loadlens_compat import letters
from loadlens_compat.ab.verb import ab
from loadlens_compat.hey.verb import hey
from loadlens_compat.wrk.verb import wrk

# Verbs of the extra `lab`. Every other verb runs with the packages of the core alone.
LAB_VERBS: Final = {
    "explain": explain.explain,
    "run": run.run,
    "report": report.report,
    "show": report.show,
}

app = typer.Typer(
    name="loadlens",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("hit")(hit.hit)
app.command("ab", context_settings=letters.UNREAD)(ab)
app.command("hey", context_settings=letters.UNREAD)(hey)
app.command("wrk", context_settings=letters.UNREAD)(wrk)
for name, command in LAB_VERBS.items():
    app.command(name)(needing_lab(command))
app.command("check")(check.check)
app.command("init")(init.init)
app.command("schema")(schema.schema)
app.command("doctor")(doctor.doctor)


@app.command("version")
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
    """See what your service does under load, and why."""


def main() -> None:
    """Run the command line; expected faults become a message and an exit code, never a traceback."""
    try:
        # An interrupt that no verb took comes back as its exit code.
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else int(ExitCode.OK))
    except LoadlensError as fault:
        sys.stderr.write(f"loadlens: {fault}\n")
        sys.exit(int(fault.code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.INTERRUPTED))
    except typer.Abort:
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        # The reader of our output has gone (`loadlens ... | head`): there is nothing left to print.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitCode.OK))
    except Exception as fault:
        shown = getattr(fault, "show", None)  # a usage fault of the command line
        if shown is not None:
            shown()
            sys.exit(int(ExitCode.USAGE))
        if os.environ.get("LOADLENS_DEBUG"):
            raise
        sys.stderr.write(
            f"loadlens: internal error: {type(fault).__name__}: {fault}\n"
            "  try the same command with LOADLENS_DEBUG=1 and report what it prints\n"
        )
        sys.exit(int(ExitCode.BUG))
