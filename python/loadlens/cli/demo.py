"""`loadlens demo`: explains a small service with a hidden flaw, then shows what the flaw was."""

from __future__ import annotations

import json
import random
import secrets
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import temporary
from loadlens.cli.completion import flaws
from loadlens.cli.explain import listener
from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.cli.options import OUT, Example, argument, option, verb
from loadlens.cli.outputs import outputs_of
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from loadlens.demo import Flaw

BUDGET: Final = "40s"  # the service's start and the answer take the rest of 45 s


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of `demo`."""

    flaw: str | None = argument(
        "[FLAW]", "One of --list. Default: one at random, which stays hidden.", None, shell_complete=flaws
    )
    lists: bool = option("--list", "List the flaws and exit.")
    seed: int | None = option("--seed N", "Choose the flaw and seed the search with N. Default: a new seed.")
    out: str | None = option(*OUT)
    as_json: bool = option("--json", "Print the answer of `explain` and the answer key as JSON.")
    quiet: bool = option("-q --quiet", "Print only the limit and the answer key.")


@verb(
    DemoOptions,
    Example("loadlens demo", "a flaw at random"),
    Example("loadlens demo --list", "the flaws"),
    Example("loadlens demo lock -o demo-lock", "one of them; keep the record"),
)
def demo(given: DemoOptions) -> None:
    """Start a small service with a hidden flaw, explain it within 45 s, and show the answer key.

    `explain` gets the service's URL and nothing else. Exits 0 also if the diagnosis is wrong or undecided,
    and says so. Ctrl-C gives the answer so far. Nothing is left behind but the record of --out.
    """
    if given.lists:
        if given.flaw is not None:
            raise UsageError("--list shows every flaw", where="demo", hint="loadlens demo --list")
        _print_list()
        return
    seed = secrets.randbits(48) if given.seed is None else given.seed
    outputs = outputs_of([] if given.out is None else [given.out])
    if outputs.files or outputs.sent:
        raise UsageError("a demo is written as its record only", where="--out", hint="-o DIR, or --json")
    sys.exit(int(_run(flaw_of(given.flaw, seed), seed, outputs.record, given)))


def _print_list() -> None:
    from loadlens.demo import FLAWS

    for flaw in FLAWS.values():
        print(f"{flaw.name:<14}{flaw.rule:<22}{flaw.service}")


def flaw_of(name: str | None, seed: int) -> Flaw:
    """Return the flaw of this name, or the one that a seed chooses.

    Raises:
        UsageError: There is no flaw of this name.
    """
    import difflib

    from loadlens.demo import FLAWS

    if name is None:
        return random.Random(seed).choice(tuple(FLAWS.values()))
    if name not in FLAWS:
        near = difflib.get_close_matches(name, FLAWS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(FLAWS)}"
        raise UsageError(f"no flaw {name!r}", where="FLAW", hint=hint)
    return FLAWS[name]


def _run(flaw: Flaw, seed: int, out: Path | None, given: DemoOptions) -> ExitCode:
    from loadlens.demo.answer_key import answer_key_as_dict, answer_key_lines
    from loadlens.demo.running import running
    from loadlens.present import terminal
    from loadlens.record import open_run
    from loadlens.report.write.json import explanation_as_dict
    from loadlens.report.write.terminal.explanation_text import print_explanation
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens.run.interrupts import Stopped
    from loadlens.search import explanation, explore

    is_silent = given.as_json or given.quiet
    with ExitStack() as stack:
        folder = stack.enter_context(temporary.folder(f"demo of {flaw.name}"))
        url = stack.enter_context(running(flaw, folder))
        if not is_silent:
            sys.stderr.write(
                f"A small service with a hidden flaw runs. All that explain gets of it:\n  {url}\n"
            )
        record = folder / f"demo-{secrets.token_hex(4)}" if out is None else out
        aim = aim_of((url,), ExplainFlags(targets=(url,), budget=BUDGET, seed=seed))
        try:
            with ExitStack() as drawing:
                progress = listener(
                    f"explain {url}", aim.bounds.budget_s, record, drawing, is_silent=is_silent
                )
                done = explore(aim, record, is_kept=out is not None, progress=progress)
        except Stopped as stopped:
            return stopped.code  # before anything was measured
        answer = explanation(open_run(record), is_kept=out is not None)
    if given.as_json:
        content = {"key": answer_key_as_dict(flaw, answer), "explanation": explanation_as_dict(answer)}
        print(json.dumps(content, ensure_ascii=False, allow_nan=False))
    else:
        print_explanation(answer, quiet=given.quiet)
        print_lines(["", *answer_key_lines(flaw, answer, width=terminal.width())], headings=(1,))
    return done.code or ExitCode.OK
