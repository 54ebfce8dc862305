"""`loadlens doctor`: checks this machine, the generator's accuracy, and the needs of a study."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadlens.cli.options import Example, argument, option, verb
from loadlens.errors import EngineError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadlens.doctor import Check
    from loadlens.machine.calibration import Calibration
    from loadlens.run.external import Driver
    from loadlens.testbed import Missing

SCHEMA_VERSION = 1  # of --json
NAME = 16  # columns of the glyph and the name of a check
LIMITS = {
    "generator": "limited by the generator",
    "server": "limited by the test server: the generator can do more",
    "others": "other programs used these cores: measure again on a quiet machine",
    "machine": "the test server shared these cores: the most load for a service on this machine",
}


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """Options of `doctor`."""

    study: Path | None = argument(
        "[STUDY]",
        "Also say what this study asks for: its programs (exit 3 when any is missing), connections, cores.",
        default=None,
    )
    measure: bool = option(
        "--measure/--no-measure",
        "Load a built-in test server for some seconds and keep the results for later runs: ceiling, "
        "lateness, timer. Default: measure.",
        default=True,
    )
    variants: tuple[str, ...] = option(
        "--variant SERVICE=NAME",
        "Check this variant of a service; repeatable. Default: the first variant that can run on this "
        "machine. Example: --variant api=cowboy",
        default=(),
    )
    clean: bool = option(
        "--clean",
        "Only end and remove what runs left that were killed together with their keeper: processes, "
        "temporary folders, shared memory of PostgreSQL. Nothing else is touched.",
    )
    as_json: bool = option("--json", "Print one line of JSON instead (docs/reference/doctor-json.md).")


@verb(
    DoctorOptions,
    Example("loadlens doctor", "some 20 s of measuring"),
    Example("loadlens doctor --no-measure", "only look"),
    Example("loadlens doctor studies/register", "with what a study needs"),
    Example("loadlens doctor --clean", "end what killed runs left"),
)
def doctor(given: DoctorOptions) -> None:
    """Report what would distort measurements on this machine, and what the generator can do on it.

    With a study also what that asks for: its programs (exit 3 when any is missing), connections, cores.
    """
    if given.clean:
        _clean()
        return
    planned = None
    if given.study is not None:
        from loadlens.cli.run import planned_study

        planned = planned_study(given.study, quick=False, variants=given.variants)
    from loadlens import doctor
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens.run import external

    lacking: tuple[Missing, ...] = () if planned is None else doctor.missing_programs(planned)
    undriven: tuple[Driver, ...] = () if planned is None else external.missing(planned)
    checks = doctor.of_machine(planned)
    if not given.as_json:
        print_lines(_wrapped(_lines(checks)))
    made, fault = _measured() if given.measure else (None, None)
    kept, why = _kept(made)
    if given.as_json:
        content = _as_json(None if planned is None else planned.name, checks, lacking, undriven, made, fault)
        print(json.dumps(content, ensure_ascii=False, allow_nan=False))
    elif given.measure:
        print_lines(_wrapped(_calibration_lines(made, fault, kept, why)))
    if lacking or undriven:
        sys.exit(int(ExitCode.TESTBED))


def _clean() -> None:
    """End what killed runs left, and print it.

    Raises:
        TestbedError: A process could not be ended.
    """
    from loadlens.errors import TestbedError
    from loadlens.present import words
    from loadlens.report.write.terminal.printing import print_lines
    from loadlens.testbed import remains

    ended = remains.end()
    print_lines(
        [f"● ended {words.plain(remains.in_words(left))}" for left in ended]
        or ["● nothing is left of runs that were killed"]
    )
    still = [pid for left in ended for pid in left.still]
    if still:
        raise TestbedError(f"cannot end {words.listed([str(pid) for pid in still])}", hint="the same as root")


def _lines(checks: Sequence[Check]) -> list[str]:
    from loadlens.present import words

    lines = []
    for check in checks:
        lines.append(f"{words.GLYPHS[check.state]} {check.name:<14}{words.plain(check.words)}")
        if check.advice:
            lines.append(f"  {'':<14}try {check.advice}")
    return lines


def _wrapped(lines: Sequence[str]) -> list[str]:
    """Return lines that fit the terminal; what follows a name goes on below itself."""
    from loadlens.present import terminal

    width = terminal.width()
    return [
        part for line in lines for part in textwrap.wrap(line, width, subsequent_indent=" " * NAME) or [""]
    ]


def _measured() -> tuple[Calibration | None, str | None]:
    """Measure the generator on this machine; or the reason for no result."""
    from loadlens import doctor

    try:
        return doctor.measure(), None
    except EngineError as fault:
        return None, f"{fault.message}; {fault.hint}" if fault.hint else fault.message


def _kept(made: Calibration | None) -> tuple[Path | None, str]:
    """Save the calibration for later results; return where, or the reason for failing."""
    from loadlens.machine import calibration

    if made is None:
        return None, ""
    try:
        return calibration.keep(made), ""
    except OSError as fault:
        return None, str(fault)


def _calibration_lines(made: Calibration | None, fault: str | None, kept: Path | None, why: str) -> list[str]:
    from loadlens import doctor
    from loadlens.present import numbers, words

    if made is None:
        return [f"■ {'generator':<14}{fault}"]
    lines = []
    for title, ceiling in (("ceiling", made.one_thread), ("of all cores", made.all_threads)):
        rate, cost = numbers.count(round(ceiling.requests_per_s)), ceiling.cpu_per_request_s
        threads = words.plural(ceiling.threads, "thread")
        lines += [
            f"● {title:<14}{rate} requests/s on {threads}, {numbers.with_unit(cost, 's')} of CPU each",
            f"  {'':<14}{LIMITS[ceiling.limit]}",
        ]
    for late in made.lateness:
        glyph = words.GLYPHS["ok" if late.p99_s <= doctor.PUNCTUAL_S else "caution"]
        p50, p99, most = (numbers.with_unit(value, "s") for value in (late.p50_s, late.p99_s, late.max_s))
        at = numbers.count(round(late.rate_per_s))
        lines.append(f"{glyph} {'lateness':<14}at {at}/s: p50 {p50}, p99 {p99}, at most {most}")
    timer = made.timer
    sleep, read = numbers.with_unit(timer.late_p99_s, "s"), numbers.with_unit(timer.clock_read_s, "s")
    lines.append(f"● {'timer':<14}a sleep ends {sleep} late at p99; reading the clock takes {read}")
    if kept is None:
        return [*lines, f"▲ {'':<14}not kept: {why}"]
    lines.append(f"  {'':<14}kept in {kept}")
    return [*lines, f"  {'':<14}results of hit and run say how far from it they were"]


def _as_json(
    study: str | None,
    checks: Sequence[Check],
    lacking: Sequence[Missing],
    undriven: Sequence[Driver],
    made: Calibration | None,
    fault: str | None,
) -> dict[str, Any]:
    from dataclasses import asdict

    from loadlens import __version__, testbed
    from loadlens.doctor import untrusted
    from loadlens.run import external

    programs = dict.fromkeys(each.program for each in lacking)
    commands = [testbed.how_to_install(lacking)] if lacking else []
    commands += [external.how_to_install(undriven)] if undriven else []
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": f"loadlens {__version__}",
        "study": study,
        "checks": [asdict(check) for check in checks],
        "untrusted": untrusted(checks),
        "missing": [
            {"program": program, "services": [each.service for each in lacking if each.program == program]}
            for program in programs
        ]
        + [{"program": driver.name, "services": []} for driver in undriven],
        "install": "; ".join(commands) or None,
        "calibration": None if made is None else asdict(made),
        "calibration_fault": fault,
    }
