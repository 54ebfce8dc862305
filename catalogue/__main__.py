"""Diagnose the catalogue's services, unattended, and print how right that was.

    python -m catalogue                         every family, one development seed, each with its twin
    python -m catalogue --families 'db-*,loop-*' --seeds 3
    python -m catalogue --split hold-out --seeds 12 --within 4h
    python -m catalogue --quick                 six families, a short budget: to see that it works
    python -m catalogue judge                   what today's rules say of the records that are kept
    python -m catalogue judge --rule db.lock    the same, and what this rule said of each
    python -m catalogue why db-lock/1/twin      why each rule spoke or was silent about that record
    python -m catalogue list                    all families
    python -m catalogue show db-lock/3/flawed   what is started, and what is true of it
    python -m catalogue serve db-lock/1/mended  start one with a remedy and leave it alone, until Ctrl-C
    python -m catalogue page                    docs/explain/catalogue.md from the data

Each diagnosis is kept in catalogue/results as it comes and its record in --records; a run that was broken off
goes on where it was. What was measured by an older commit is measured again with --anew. Judging measures
nothing: it reads the records again, and takes seconds each.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from catalogue import asking, judging, keeping, page, rows
from catalogue.cases import case_of
from catalogue.families import FAMILIES
from catalogue.keeping import Kept
from catalogue.rows import Task
from catalogue.running import CannotRun, lacks, others_busy, program, running
from catalogue.why import status, why
from loadlens import units

QUICK = ("healthy-threads", "loop-blocked", "cpu-threads", "db-lock", "worker-pool", "slow-path")
VERBS = ("run", "judge", "why", "list", "show", "serve", "page")
TIER, BUDGET = "C", "90s"


def main() -> int:
    options = read_options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started ends with us either way
    try:
        if options.verb == "list":
            print(page.families_table())
        elif options.verb == "page":
            page.write()
        elif options.verb == "show":
            show(options)
        elif options.verb == "serve":
            serve(options)
        elif options.verb == "why":
            explain_why(options)
        elif options.verb == "judge":
            judge(options)
        else:
            run(options)
    except CannotRun as fault:
        print(fault, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; what was diagnosed so far is kept", file=sys.stderr)
        return 130
    return 0


def read_options() -> argparse.Namespace:
    assert __doc__ is not None
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m catalogue", description=__doc__, formatter_class=shape)
    parser.add_argument("verb", nargs="?", choices=VERBS, default="run")
    parser.add_argument("family", nargs="?", help="of show, serve and why: FAMILY or FAMILY/SEED/SIDE")
    parser.add_argument("--families", default="*", help="names or patterns between commas")
    parser.add_argument("--seeds", type=int, default=1, help="specimens of each family (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="of show, serve and why")
    parser.add_argument("--split", choices=tuple(rows.FIRST_SEED), default="development")
    parser.add_argument(
        "--tier",
        choices=("A", "B", "C"),
        help=f"what may be seen (default {TIER}: all); of judge and why: only records of it",
    )
    parser.add_argument(
        "--budget", help=f"of each diagnosis (default {BUDGET}); of judge and why: only records of it"
    )
    parser.add_argument("--within", default="24h", help="begin no further diagnosis after that")
    parser.add_argument("--no-twins", action="store_true", help="leave twins and mended services out")
    parser.add_argument("--twin", action="store_true", help="of show, serve and why: the twin")
    parser.add_argument("--anew", action="store_true", help="also what the data hold already")
    parser.add_argument("--rule", help="of judge: print what this rule says of each record")
    parser.add_argument("--results", type=Path, default=rows.FOLDER, help="folder of the data")
    parser.add_argument("--records", type=Path, default=keeping.RECORDS, help="folder of the records")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}; a budget of 20 s")
    options = parser.parse_args()
    if options.verb in ("show", "serve", "why"):
        _take_apart(options, parser)
    if options.rule is not None and options.rule not in page.existing_rules():
        parser.error(f"no such rule: {options.rule}; there are {', '.join(page.existing_rules())}")
    budget = "20s" if options.quick else options.budget
    try:
        options.asked_s = None if budget is None else units.duration_ns(budget) / 1e9
        options.within_s = units.duration_ns(options.within) / 1e9
    except ValueError as fault:
        parser.error(str(fault))
    options.budget_s = units.duration_ns(BUDGET) / 1e9 if options.asked_s is None else options.asked_s
    return options


def _take_apart(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """`db-lock/3/twin` is db-lock with --seed 3 and --twin."""
    options.family, _, rest = (options.family or "").partition("/")
    seed, _, side = rest.partition("/")
    if options.family not in FAMILIES:
        parser.error(f"no such family: {options.family}; there are {', '.join(FAMILIES)}")
    if rest and not seed.isdecimal():
        parser.error(f"no such seed: {seed}; a service is FAMILY/SEED/SIDE, such as db-lock/1/twin")
    options.seed = int(seed) if seed else options.seed
    options.side = side or ("twin" if options.twin else "flawed")
    if getattr(FAMILIES[options.family].drawn(options.seed), options.side, None) is None:
        parser.error(f"{options.family} has no {options.side}")


def chosen(options: argparse.Namespace) -> list[str]:
    """Families that were asked for, in the catalogue's order.

    Raises:
        CannotRun: There are none.
    """
    patterns = QUICK if options.quick else [word.strip() for word in options.families.split(",")]
    names = [name for name in FAMILIES if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    if not names:
        raise CannotRun(f"no family is called like {options.families}")
    return names


# --- measuring -------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> None:
    """Diagnose what has not been; print the table of the split."""
    if not asking.is_there():
        raise CannotRun("there is no `loadlens explain` to ask")
    program()  # without it nothing can be started
    names, tier = chosen(options), options.tier or TIER
    for name in [name for name in names if lacks(FAMILIES[name].wants)]:
        print(f"skipped {name}: {lacks(FAMILIES[name].wants)}", file=sys.stderr)
        names.remove(name)
    file = rows.file_of(options.split, options.results)
    done = set() if options.anew else {rows.task_of(row).key for row in rows.read(file)}
    until = time.monotonic() + options.within_s
    wanted = rows.tasks(
        names, options.split, options.seeds, tier, options.budget_s, twins=not options.no_twins
    )
    todo = [task for task in wanted if task.key not in done]
    subject = rows.subject()
    for at, task in enumerate(todo, 1):
        if time.monotonic() > until:
            print(f"{len(todo) - at + 1} are left for the next time", file=sys.stderr)
            break
        try:
            row = diagnose(task, subject, options.records)
        except CannotRun as fault:  # one service that does not come up is no reason to leave all others
            print(f"{at}/{len(todo)} {task.place}: {fault}", file=sys.stderr, flush=True)
            continue
        rows.append(file, row)
        print(f"{at}/{len(todo)} {task.place}: {_in_short(row)}", file=sys.stderr, flush=True)
    asked = (tier, options.budget_s)
    print(page.table([row for row in rows.read(file) if (row["tier"], row["budget_s"]) == asked]))


def diagnose(task: Task, subject: str, records: Path) -> rows.Row:
    """One service: started, diagnosed, ended, kept."""
    known = task.known
    busy, began = others_busy(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with running(known.setup, task.tier) as service:
        record = keeping.room(records, task)
        answer = asking.ask(
            service, task.tier, known.setup.around, budget_s=task.budget_s, seed=task.seed, record=record
        )
        lasted = service.lasted()
    row = rows.row(task, answer, subject=subject, others_busy=busy, began=began, lasted=lasted)
    keeping.note(record, row)
    return row


def _in_short(row: rows.Row) -> str:
    found = ", ".join(f"{one['rule']} ({one['grade']})" for one in row["said"].get("findings", ()))
    return f"{row['failure'] or found or 'nothing'} [{row['seconds']:.0f} s]"


# --- judging again ---------------------------------------------------------------------------------------


def judge(options: argparse.Namespace) -> None:
    """Ask today's rules about every record that is kept; print the table of those."""
    names = set(chosen(options))
    wanted = [
        one
        for one in _kept(options)
        if one.task.family in names and rows.split_of(one.task.seed) == options.split
    ]
    if not wanted:
        raise CannotRun(f"{options.records} holds no record of these families")
    found = judging.judge_all(wanted)
    subject = rows.subject()
    judged = [one.row(subject) for one in found]
    rows.replace(rows.judged_file_of(options.split, options.results), judged)
    print(page.table(rows.of_latest_budget(judged)))
    for one in found:
        if one.answer.failure:
            print(f"failed {one.kept.record}: {one.answer.failure}", file=sys.stderr)
    if options.rule is not None:
        print("\n".join(_said_by(options.rule, found)))


def _kept(options: argparse.Namespace) -> list[Kept]:
    """Records, of one tier and budget where those were asked for."""
    return [
        one
        for one in keeping.kept(options.records)
        if options.tier in (None, one.task.tier) and options.asked_s in (None, one.task.budget_s)
    ]


def _said_by(rule: str, found: Sequence[judging.Judged]) -> list[str]:
    """What one rule says of each record, where it is needed, allowed, or neither."""
    lines = []
    for one in found:
        case = case_of(one.row(""))
        needed = any(rule in rules for rules in case.needs)
        place = "needed" if needed else "allowed" if rule in case.known.label.true else "untrue"
        lines.append(f"{case.place} [{place}] {status(rule, one.answer.said)}")
    return lines


def explain_why(options: argparse.Namespace) -> None:
    """Print what each needed rule said of one record, and each false finding with its evidence."""
    wanted = (options.family, options.seed, options.side)
    found = [one for one in _kept(options) if (one.task.family, one.task.seed, one.task.side) == wanted]
    if not found:
        raise CannotRun(f"{options.records} holds no record of {'/'.join(map(str, wanted))}")
    for one in found:
        judged = judging.judge(one)
        print(why(case_of(judged.row("")), judged.answer.said))


# --- looking ---------------------------------------------------------------------------------------------


def _task(options: argparse.Namespace) -> Task:
    return Task(options.family, options.seed, options.side, options.tier or TIER, options.budget_s)


def show(options: argparse.Namespace) -> None:
    """Print what a specimen is and what is true of it."""
    known = _task(options).known
    label = known.label
    told = {
        "setup": asdict(known.setup),
        "needs": [dict(need.by_tier) for need in label.needs],
        "allowed": sorted(label.allowed),
        "numbers": {name: f"{number.value:g} {number.unit}" for name, number in known.numbers.items()},
    }
    print(json.dumps(told, indent=1))


def serve(options: argparse.Namespace) -> None:
    """Start a specimen, say where it is, and wait."""
    show(options)
    task = _task(options)
    with running(task.known.setup, task.tier) as service:
        print(
            f"{service.work_url}\n{service.ping_url}\n{service.metrics_url}\npids {service.pids}",
            *([f"\nin a network of its own: {' '.join(service.enter)} curl ..."] if service.enter else []),
            flush=True,
        )
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main())
