"""`loadlens compare A B`: is the second version faster, slower or equivalent, from records or live pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from loadlens import units
from loadlens.cli import preflight
from loadlens.cli.compare.options import (
    CompareFlags,
    is_live,
    is_record_text,
    margin_of,
    refuse_unclear,
    study_of,
    task_of,
)
from loadlens.cli.fleet.nodes import Wanted, nodes_for, nodes_of
from loadlens.cli.hit_load import quantity
from loadlens.cli.hit_requests import target_of
from loadlens.cli.options import Example, verb
from loadlens.cli.outputs import Show, outputs_of
from loadlens.cli.ui.page import page_of
from loadlens.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from loadlens.compare.pairing import Done
    from loadlens.model.comparison import Comparison
    from loadlens.run.progress import Progress


class _Run(NamedTuple):
    """A live comparison that is ready to run."""

    run: Callable[[Path, Progress], Done]
    names: tuple[str, str]
    budget_s: float


@verb(
    CompareFlags,
    Example("loadlens compare http://127.0.0.1:8080/a http://127.0.0.1:8081/a", "two that run"),
    Example("loadlens compare URL --start ./old --start ./new", "starts each in turn"),
    Example("loadlens compare URL --rev main --rev HEAD --start 'python3 app.py'", "two commits"),
    Example("loadlens compare study.yaml --rev main --rev HEAD", "two commits of a study"),
    Example("loadlens compare runs/main runs/branch", "two records of one study"),
    Example("loadlens compare runs/x pool=2 pool=4", "two levels of one record"),
)
def compare(given: CompareFlags) -> None:
    """Say whether a second version is faster, slower, equivalent within a margin, or undecided.

    Live, it finds a rate that both can serve, and runs pairs of trials in random order, at most 13. It ends
    as soon as they decide. Ctrl-C gives the answer so far.

    Exit 99 if it is slower by more than the margin with its whole interval, or fails more often.
    """
    out = outputs_of(given.out)
    show = Show(out, as_json=given.as_json, quiet=given.quiet, ui=given.ui, page=given.page)
    sys.exit(int(_live(given, show) if is_live(given) else _of_records(given, show)))


def _answer(show: Show, answer: Comparison) -> ExitCode:
    """Show the answer, and return the exit code of its margin."""
    from loadlens.report.write import result_of
    from loadlens.report.write.json import comparison_as_json
    from loadlens.report.write.terminal.comparison_text import print_comparison

    return show.answer(
        answer,
        partial(comparison_as_json, answer),
        partial(print_comparison, answer, quiet=show.quiet),
        partial(result_of.of_comparison, answer),
        is_missed=answer.is_missed,
        page=partial(_page, answer),
    )


def _page(answer: Comparison) -> str:
    from loadlens.report.write.html.comparison import comparison_page

    return comparison_page(answer)


def _live(given: CompareFlags, show: Show) -> ExitCode:
    """Load both versions in pairs."""
    study = study_of(given)
    if study is None:
        refuse_unclear(given)
    with ExitStack() as stack:
        if study is not None:
            run, names, budget_s = _study_pairs(given, study, stack)
        else:
            run, names, budget_s = _pairs(given, stack)
        record = show.outputs.folder("compare", stack)
        stack.enter_context(page_of(record, is_wanted=show.ui))
        from loadlens.cli.explain import listener
        from loadlens.run.interrupts import Stopped

        try:
            with ExitStack() as drawing:
                title = f"compare {names[0]} with {names[1]}"
                progress = listener(title, budget_s, record, drawing, is_silent=show.is_silent)
                drawing.enter_context(show.outputs.exporting(record))
                done = run(record, progress)
        except Stopped as stopped:
            return stopped.code
        kept = str(record) if show.is_kept else ""
        code = _answer(show, replace(done.answer, record=kept))
        return done.code or code


def _pairs(given: CompareFlags, stack: ExitStack) -> _Run:
    """Return the comparison of two URLs or commands."""
    folders: tuple[Path, ...] = ()
    if given.revisions:
        from loadlens.compare.revisions import worktrees

        folders = stack.enter_context(worktrees(Path.cwd(), given.revisions))
    task = task_of(given, folders)
    targets = [target_of(aim.origin)[0] for aim in task.aims]
    nodes = stack.enter_context(nodes_of(_wanted(given), [target.host for target in targets]))
    for aim, target in zip(task.aims, targets, strict=True):
        if not aim.services and (nodes is None or not nodes.away):
            preflight.connect(replace(target, tls=aim.tls), timeout_ns=aim.timeout_ns, is_hit=False)
    from loadlens.compare.live import run_pairs

    make_load = None if nodes is None else nodes.make_load
    return _Run(partial(run_pairs, task, make_load=make_load), task.names, task.budget_s)


def _wanted(given: CompareFlags) -> Wanted:
    return Wanted(given.fleet, given.insecure_fleet)


def _study_pairs(given: CompareFlags, path: Path, stack: ExitStack) -> _Run:
    """Return the comparison of two revisions of a study, in its quick profile."""
    from loadlens.cli.run import planned_study, study_file
    from loadlens.compare.revisions import top_of, worktrees
    from loadlens.run import secret_variables

    study = planned_study(path, quick=True)
    secret_variables.refuse_missing(study, str(study_file(path)))
    top = top_of(Path(study.folder))
    trees = stack.enter_context(worktrees(top, given.revisions))
    from loadlens.compare.plan import Terms
    from loadlens.compare.study_pairs import both_versions, run_study_pairs
    from loadlens.study import plan

    both = both_versions(study, top, trees)
    once = replace(both, cases=tuple(replace(case, trials=1) for case in both.cases))
    terms = Terms(
        names=(given.revisions[0], given.revisions[1]),
        budget_s=quantity(units.duration_ns, given.budget, "--budget") / 1e9,
        margin=margin_of(given.margin),
        seed=study.seed if given.seed is None else given.seed,
    )
    pair_s = plan.duration(once).seconds
    make_load = stack.enter_context(nodes_for(_wanted(given), both))
    run = partial(run_study_pairs, both, terms, pair_s, make_load=make_load)
    return _Run(run, terms.names, terms.budget_s)


def _of_records(given: CompareFlags, show: Show) -> ExitCode:
    from loadlens.cli.report import opened

    if show.outputs.record is not None or show.outputs.sent:
        raise UsageError("a comparison of records makes no record", where="--out", hint="json=FILE, md=FILE")
    if show.ui:
        raise UsageError("a comparison of records runs nothing", where="--ui", hint="loadlens ui")
    if _wanted(given) != Wanted():
        raise UsageError("a comparison of records runs nothing", where="--fleet", hint="without it")
    margin, (first, *others) = margin_of(given.margin), given.targets
    record = opened(Path(first))
    if len(others) == 1 and is_record_text(others[0]):
        other = opened(Path(others[0]))
        from loadlens.compare import records

        return _answer(show, records.of_records(record, other, margin))
    if len(others) not in (0, 2) or not all("=" in text for text in others):
        raise UsageError(
            f"not two versions: {' '.join(given.targets)}",
            hint=f"loadlens compare {first} RECORD, or {first} FACTOR=LEVEL FACTOR=LEVEL",
        )
    from loadlens.compare.levels import refuse_levels

    refuse_levels(record, others)
    from loadlens.compare import records

    return _answer(show, records.of_levels(record, others, margin))
