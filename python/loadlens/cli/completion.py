"""`loadlens completion SHELL`: the script that lets a shell complete verbs, options and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from loadlens.cli.options import Example, argument, choice, verb

if TYPE_CHECKING:
    import click

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_LOADLENS_COMPLETE"  # set by the script; click reads it


def shells(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return names of shells."""
    return [name for name in SHELLS if name.startswith(begun)]


@dataclass(frozen=True, slots=True)
class CompletionOptions:
    """Options of `completion`."""

    shell: str = argument("SHELL", "bash, zsh or fish.", shell_complete=shells)


@verb(
    CompletionOptions,
    Example("loadlens completion bash >> ~/.bashrc", "in every new bash"),
    Example("loadlens completion zsh >> ~/.zshrc", "after compinit"),
    Example("loadlens completion fish > ~/.config/fish/completions/loadlens.fish", "in every new fish"),
)
def completion(given: CompletionOptions) -> None:
    """Print the script that completes verbs, options, records, load tools and files in a shell."""
    import click
    from click.shell_completion import get_completion_class

    shell = choice(given.shell, SHELLS, "SHELL", "shell")
    made = get_completion_class(shell)
    assert made is not None, "click has all of SHELLS"
    print(made(click.get_current_context().find_root().command, {}, "loadlens", VARIABLE).source())


def records(context: click.Context, param: click.Parameter, begun: str) -> list[Any]:
    """Return records under runs/, else folders."""
    from click.shell_completion import CompletionItem

    from loadlens.cli.report import RUNS
    from loadlens.record import is_record

    paths = [str(path) for path in RUNS.iterdir() if is_record(path)] if RUNS.is_dir() else []
    matching = sorted(path for path in paths if path.startswith(begun))
    return [*map(CompletionItem, matching)] if matching else [CompletionItem(begun, type="dir")]


def drivers(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return names of load tools."""
    from loadlens.run.external import DRIVERS

    return [name for name in DRIVERS if name.startswith(begun)]


def flaws(context: click.Context, param: click.Parameter, begun: str) -> list[str]:
    """Return names of the flaws of `demo`."""
    from loadlens.demo import FLAWS

    return [name for name in FLAWS if name.startswith(begun)]
