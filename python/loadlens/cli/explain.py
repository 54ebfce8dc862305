"""`loadlens explain URL`: raises the load by itself and reports the limit of the service, with evidence."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from loadlens.cli import preflight
from loadlens.cli.explain_options import ExplainFlags, aim_of
from loadlens.cli.fleet.nodes import Wanted, nodes_for, nodes_of
from loadlens.cli.hit_requests import target_of
from loadlens.cli.options import Example, verb
from loadlens.cli.outputs import Show, outputs_of
from loadlens.cli.ui.page import page_of
from loadlens.credentials import Hiding
from loadlens.errors import ExitCode, UsageError
from loadlens.present import terminal

if TYPE_CHECKING:
    from loadlens.model.search import Aim
    from loadlens.run.progress import Progress

STUDY_FILE = "study.yaml"


@verb(
    ExplainFlags,
    Example("loadlens explain http://127.0.0.1:8080/", "watches what listens there"),
    Example("loadlens explain URL --start 'node app.js'", "starts and ends the service"),
    Example("loadlens explain URL --objective 'rate>500/s'", "exit 99 if missed"),
    Example("loadlens explain studies/register", "the quick profile of a study"),
)
def explain(given: ExplainFlags) -> None:
    """Find what limits a service: the limit, its evidence, the capacity, what to do, what is not known.

    Doubles the users from one until throughput stops growing, with the probe at every level, and says after
    each what it would answer so far. Ends early when the answer is certain or requests fail. Undecided is an
    answer too, and exits 0; requests that fail without any load exit 3. Ctrl-C gives the answer so far.
    """
    sys.exit(int(answered(given)))


def answered(given: ExplainFlags, verb: str = "explain") -> ExitCode:
    """Search, print the answer, and return the exit code.

    Args:
        given: The flags.
        verb: For messages.
    """
    show = Show(outputs_of(given.out), as_json=given.as_json, quiet=given.quiet, ui=given.ui)
    path = path_of(given.targets, verb)
    wanted = Wanted(given.fleet, given.insecure_fleet)
    if path is None:
        return of_aim(aim_of(given.targets, given), show, wanted)
    none = type(given)()
    rest = replace(given, targets=none.targets, out=none.out, as_json=False, quiet=False, ui=False)
    if replace(rest, fleet=None, insecure_fleet=False) != none:
        raise UsageError(
            f"{path} defines its own load, so the flags for URLs do not apply",
            where=verb,
            hint="only --out, --json, --quiet, --ui and --fleet, or a URL instead",
        )
    return _of_path(path, show, wanted)


def _answer(show: Show, record: Path, *, is_kept: bool) -> ExitCode:
    """Read a record, show its answer, and return the exit code."""
    from loadlens.record import open_run
    from loadlens.report.write import result_of
    from loadlens.report.write.json import explanation_as_json
    from loadlens.report.write.terminal.explanation_text import print_explanation
    from loadlens.search import explanation

    answer = explanation(open_run(record), is_kept=is_kept)
    code = show.answer(
        answer,
        partial(explanation_as_json, answer),
        partial(print_explanation, answer, quiet=show.quiet),
        partial(result_of.of_explanation, answer),
        is_missed=any(row.state == "bad" for row in answer.objectives),
    )
    return ExitCode.TESTBED if code is ExitCode.OK and answer.has_no_service else code


def path_of(targets: tuple[str, ...], verb: str) -> Path | None:
    """Return the study or record among the targets of a verb; `None` for URLs."""
    path = Path(targets[0])
    if "://" in targets[0]:
        return None
    if not path.exists():
        if targets[0].startswith(("/", "./", "../")) or path.suffix in (".yaml", ".yml"):
            raise UsageError(
                f"there is no study or record {targets[0]}", where=verb, hint="a URL: http://..."
            )
        return None
    if path.is_file() and path.suffix not in (".yaml", ".yml"):
        raise UsageError(
            f"{path} is neither a study nor a record",
            hint=f"loadlens {verb} URL --start COMMAND, with the command that starts {path}",
        )
    if len(targets) > 1:
        raise UsageError(
            f"{path} cannot be combined with other targets",
            where=verb,
            hint="one study or record, or URLs",
        )
    return path


def of_aim(aim: Aim, show: Show, wanted: Wanted) -> ExitCode:
    """Search, print the answer, and return the exit code."""
    target, _ = target_of(aim.origin)
    with ExitStack() as stack:
        nodes = stack.enter_context(nodes_of(wanted, [target.host]))
        if not aim.services and (nodes is None or not nodes.away):  # before what a search needs is loaded
            preflight.connect(replace(target, tls=aim.tls), timeout_ns=aim.timeout_ns, is_hit=False)
        from loadlens.run.interrupts import Stopped
        from loadlens.search import explore

        make_load = None if nodes is None else nodes.make_load
        record = show.outputs.folder("explain", stack)
        stack.enter_context(page_of(record, is_wanted=show.ui))  # until the answer is made
        try:
            with ExitStack() as drawing:
                paths = ", ".join(step.path for step in aim.steps)
                title = Hiding(aim.hide).text(f"explain {aim.origin}: {paths}")
                progress = listener(title, aim.bounds.budget_s, record, drawing, is_silent=show.is_silent)
                drawing.enter_context(show.outputs.exporting(record))
                done = explore(aim, record, is_kept=show.is_kept, progress=progress, make_load=make_load)
        except Stopped as stopped:
            return stopped.code  # before anything was measured
        code = _answer(show, record, is_kept=show.is_kept)
        return done.code or code


def _of_path(path: Path, show: Show, wanted: Wanted) -> ExitCode:
    from loadlens.record import is_record

    if is_record(path):
        if wanted != Wanted():
            raise UsageError(
                f"{path} is a record already: nothing is run", where="--fleet", hint="without it"
            )
        if show.outputs.record is not None:
            raise UsageError(f"{path} is a record already", where="--out", hint="json=FILE, md=FILE")
        show.outputs.of(path)
        return _answer(show, path, is_kept=True)
    from loadlens.cli.run import planned_study
    from loadlens.run import secret_variables

    study = planned_study(path, quick=True, settings=[])
    secret_variables.refuse_missing(study, str(path / STUDY_FILE if path.is_dir() else path))
    from loadlens.live.run_view import run_printer, run_view
    from loadlens.run.interrupts import Stopped
    from loadlens.run.progress import Silent
    from loadlens.run.study_runner import run_study

    code = ExitCode.OK
    with ExitStack() as stack:
        make_load = stack.enter_context(nodes_for(wanted, study))
        record = show.outputs.folder(study.name, stack)
        stack.enter_context(page_of(record, is_wanted=show.ui))
        try:
            with ExitStack() as drawing:
                progress: Progress = Silent() if show.is_silent else run_printer(record)
                if not show.is_silent and terminal.can_draw(sys.stderr):
                    progress = drawing.enter_context(run_view(record))
                with show.outputs.exporting(record):
                    run_study(study, record, progress=progress, make_load=make_load)
        except Stopped as stopped:
            code = stopped.code
            if not is_record(record):
                return code
        missed = _answer(show, record, is_kept=show.is_kept)
        return code or missed


def listener(title: str, budget_s: float, record: Path, drawing: ExitStack, *, is_silent: bool) -> Progress:
    """Return the display of a search: a live view, plain lines off a terminal, or none."""
    from loadlens.live.explain_view import explain_view, search_printer
    from loadlens.run.progress import Silent

    if is_silent:
        return Silent()
    if terminal.can_draw(sys.stderr):
        return drawing.enter_context(explain_view(title, budget_s, record))
    return search_printer(budget_s, record)
