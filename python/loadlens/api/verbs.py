"""The verbs as functions: they print nothing, and a mistake raises what the command line would print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, Unpack

from loadlens.api.keywords import OPTIONS, described, options_of
from loadlens.api.results import (
    Compared,
    Explained,
    Found,
    Load,
    Outcome,
    Record,
    Studied,
    load_of,
    outcome_of,
)
from loadlens.cli import DRAWING, lab
from loadlens.cli.outputs import received
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from loadlens.api.flags import CapacityFlags, CompareFlags, ExplainFlags, HitFlags, RunFlags

Answer = TypeVar("Answer", bound=Outcome)
ENDED: Final = (ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP, ExitCode.CPU_LIMIT)


@described
def hit(*urls: str, **flags: Unpack[HitFlags]) -> Load:
    """Load a URL, and return the result and how far to trust it.

    Args:
        urls: One URL, or several of one service, which share the load.
        flags: The flags of `loadlens hit`, such as `rate=500, duration="30s", objective=["p99<50ms"]`.

    Raises:
        UsageError: A keyword or a value that cannot be used; nothing was sent.
        TestbedError: Nothing accepts connections there.
        EngineError: This machine cannot carry the load.
        KeyboardInterrupt: Ctrl-C; the load ended, and `out=` keeps what was measured.
    """
    from loadlens.cli import hit as verb
    from loadlens.cli.hit_options import HitOptions

    if not urls and flags.get("targets") is None:
        raise UsageError("no URL", where="loadlens.hit", hint='loadlens.hit("http://127.0.0.1:8080/")')
    made = verb.load(options_of(HitOptions, "hit", flags, urls=urls, quiet=True))
    made.outputs.write(made.as_json, made.as_result)
    if made.done.lost is not None:
        raise made.done.lost
    if made.exit_code in ENDED:
        raise KeyboardInterrupt
    return load_of(made)


@described
def run(study: str | Path, **flags: Unpack[RunFlags]) -> Studied:
    """Run a study, and return its report; its record stays, in `runs/` unless `out=` names a folder.

    Args:
        study: A study file, or a folder with study.yaml in it.
        flags: The flags of `loadlens run`, such as `quick=True`.

    Raises:
        LoadlensError: A mistake in the study or a keyword; a service that does not start.
        KeyboardInterrupt: Ctrl-C; finished trials stay, and `resume=True` continues.
    """
    from loadlens.cli.run import run as verb

    return _answered("run", verb, flags, Studied, study=Path(study))


@described
def explain(*targets: str | Path, **flags: Unpack[ExplainFlags]) -> Explained:
    """Find what limits a service: the limit, its evidence, the capacity, what to do, what is not known.

    Args:
        targets: URLs of one service; or a study; or the record of an earlier search.
        flags: The flags of `loadlens explain`, such as `start="node app.js"`.

    Raises:
        LoadlensError: A keyword that cannot be used; a service that does not answer or start.
    """
    from loadlens.cli.explain import explain as verb

    return _answered("explain", verb, flags, Explained, targets=_texts("explain", targets))


@described
def capacity(*targets: str | Path, **flags: Unpack[CapacityFlags]) -> Found:
    """Find the highest rate that meets all objectives, and what limits the service.

    Args:
        targets: URLs of one service, or the record of an earlier search.
        flags: The flags of `loadlens capacity`, such as `objective="p99<50ms"`.

    Raises:
        LoadlensError: A keyword that cannot be used; a service that does not answer or start.
    """
    from loadlens.cli.capacity import capacity as verb

    return _answered("capacity", verb, flags, Found, targets=_texts("capacity", targets))


@described
def compare(*targets: str | Path, **flags: Unpack[CompareFlags]) -> Compared:
    """Say whether a second version is faster, slower, equivalent within a margin, or undecided.

    Args:
        targets: Two URLs; one URL with two of `start=` or `rev=`; two records; a record and two levels.
        flags: The flags of `loadlens compare`, such as `margin="5%"`.

    Raises:
        LoadlensError: Targets that make no two versions; a service that does not answer or start.
    """
    from loadlens.cli.compare.verb import compare as verb

    return _answered("compare", verb, flags, Compared, targets=_texts("compare", targets))


def open(path: str | Path) -> Record:
    """Open the record of a run.

    Args:
        path: Its folder.

    Returns:
        The record: `trials[i].samples()`, `.connections()`, `.readings()` are Polars frames, `report` is its
        report, which a notebook shows.

    Raises:
        RecordError: There is no record, or it was written by a newer version.
    """
    from loadlens.record import open_run

    return Record(open_run(path).path)


def _texts(verb: str, targets: Sequence[str | Path]) -> tuple[str, ...]:
    if not targets:
        raise UsageError("no target", where=f"loadlens.{verb}", hint=f"help(loadlens.{verb})")
    return tuple(map(str, targets))


def _answered(
    verb: str,
    command: Callable[..., None],
    flags: Mapping[str, object],
    kind: type[Answer],
    **targets: object,
) -> Answer:
    """Run the verb of the command line, and return the answer that it would print."""
    lab.demand(verb, draws=verb in DRAWING)
    given = options_of(OPTIONS[verb], verb, flags, quiet=True, **targets)
    code = ExitCode.OK
    with received() as answers:
        try:
            command(**{field.name: getattr(given, field.name) for field in fields(given)})
        except SystemExit as end:
            code = ExitCode(int(end.code or 0))
    if code in ENDED or not answers:
        raise KeyboardInterrupt
    outcome = outcome_of(answers[-1], code, is_capacity=verb == "capacity")
    assert isinstance(outcome, kind), f"{verb} answered with {type(outcome).__name__}"
    return outcome
