"""`loadlens doctor`: can this machine be trusted, and how punctual is the generator on it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loadlens.errors import EngineError


def doctor(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="Also say what this study asks for."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Drive a server of our own for a few seconds: lateness, ceiling. Default: measure.",
        ),
    ] = True,
) -> None:
    """Say what stands in the way of good figures on this machine, and what the generator can do on it."""
    from loadlens import calibrate
    from loadlens.looks import numbers, words
    from loadlens.render.terminal.printing import print_lines

    planned = None
    if study is not None:
        from loadlens.cli.run import planned_study

        planned = planned_study(study, quick=False, settings=[])
    lines = []
    for check in calibrate.of_machine(planned):
        lines.append(f"{words.GLYPHS[check.state]} {check.name:<14}{words.plain(check.words)}")
        if check.advice:
            lines.append(f"  {'':<14}try {check.advice}")
    if measure:
        try:
            late, ceiling = calibrate.punctuality(), calibrate.ceiling()
        except EngineError as fault:
            lines.append(f"■ {'generator':<14}{fault.message}")
        else:
            at = f"at {numbers.with_unit(late.rate_per_s, '1/s')}"
            glyph = words.GLYPHS["ok" if late.late_p99_s <= calibrate.PUNCTUAL_S else "caution"]
            lines.append(f"{glyph} {'lateness':<14}{numbers.with_unit(late.late_p99_s, 's')} at p99 {at}")
            least = "" if ceiling.is_the_generators else "at least "
            most = numbers.with_unit(ceiling.requests_per_s, "1/s")
            lines.append(f"● {'ceiling':<14}{least}{most} (32 connections, one thread)")
    print_lines(lines)
