"""`loadlens doctor`: can this machine be trusted, and how punctual is the generator on it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from loadlens.errors import EngineError

LIMITS = {
    "generator": "the generator had no time left",
    "server": "the server that does nothing had no time left: the generator can do more",
    "others": "others took these cores away: measure again when the machine is quiet",
    "machine": "its server shared these cores: the most that a service here can be asked",
}


def doctor(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="Also say what this study asks for."),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure",
            help="Drive a server of our own for some seconds and keep what comes out for later results: "
            "ceiling, lateness, timer. Default: measure.",
        ),
    ] = True,
) -> None:
    """Say what stands in the way of good figures on this machine, and what the generator can do on it."""
    from loadlens import calibrate
    from loadlens.looks import words
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
    print_lines(lines)
    if measure:
        print_lines(_measured())


def _measured() -> list[str]:
    """What the generator can do here, in lines; kept for the results of later loads."""
    from loadlens import calibrate, calibration
    from loadlens.looks import numbers, words

    try:
        made = calibrate.measure()
    except EngineError as fault:
        return [f"■ {'generator':<14}{fault.message}"]
    lines = []
    for title, ceiling in (("ceiling", made.one_thread), ("of all cores", made.all_threads)):
        rate, cost = numbers.count(round(ceiling.requests_per_s)), ceiling.cpu_per_request_s
        threads = words.plural(ceiling.threads, "thread")
        lines += [
            f"● {title:<14}{rate} requests/s on {threads}, {numbers.with_unit(cost, 's')} of CPU each",
            f"  {'':<14}{LIMITS[ceiling.limit]}",
        ]
    for late in made.lateness:
        glyph = words.GLYPHS["ok" if late.p99_s <= calibrate.PUNCTUAL_S else "caution"]
        p50, p99, most = (numbers.with_unit(value, "s") for value in (late.p50_s, late.p99_s, late.max_s))
        at = numbers.count(round(late.rate_per_s))
        lines.append(f"{glyph} {'lateness':<14}at {at}/s: p50 {p50}, p99 {p99}, at most {most}")
    timer = made.timer
    sleep, read = numbers.with_unit(timer.late_p99_s, "s"), numbers.with_unit(timer.clock_read_s, "s")
    lines.append(f"● {'timer':<14}a sleep ends {sleep} late at p99; reading the clock takes {read}")
    try:
        lines.append(f"  {'':<14}kept in {calibration.keep(made)}")
        lines.append(f"  {'':<14}results of hit and run say how far from it they were")
    except OSError as fault:
        lines.append(f"▲ {'':<14}not kept: {fault}")
    return lines
