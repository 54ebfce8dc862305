"""Diagnose services with known flaws, unattended, and print how often the diagnosis was right.

    python -m catalogue                           every family, one development seed, each with its twin
    python -m catalogue --families 'db-*,loop-*' --seeds 3
    python -m catalogue --split hold-out --seeds 12 --within 4h
    python -m catalogue --quick                   six families, a short budget: to see that it works
    python -m catalogue judge                     apply today's rules to the kept records
    python -m catalogue judge --rule db.lock      the same, with the result of this rule for each record
    python -m catalogue why db-lock/1/twin        why each rule fired or not on that record
    python -m catalogue list                      all families
    python -m catalogue show db-lock/3/flawed     the setup of a service, and its true numbers
    python -m catalogue serve db-lock/1/repaired  start a service (here with the fix applied) until Ctrl-C
    python -m catalogue page                      write the tables of docs/explain and docs/appendix again

Each diagnosis is stored in catalogue/results when it is made, and its record in --records; an interrupted run
continues where it stopped. --anew also measures services that are stored already. `judge` measures nothing:
it reads the records, a few seconds each.
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
from typing import Final

from catalogue import asking, judging, keeping, page, rows
from catalogue.cases import case_of
from catalogue.families import FAMILIES
from catalogue.family import Tier
from catalogue.keeping import KeptRecord
from catalogue.rows import Task
from catalogue.running import CannotRun, lacks, others_busy, program, running
from catalogue.why import status, why
from loadlens import units

QUICK = ("healthy-threads", "loop-blocked", "cpu-threads", "db-lock", "worker-pool", "slow-path")
VERBS = ("run", "judge", "why", "list", "show", "serve", "page")
TIER: Final[Tier] = "C"
BUDGET = "90s"


def main() -> int:
    options = read_options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: ends everything that was started
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
        print("\nstopped; diagnoses made so far are kept", file=sys.stderr)
        return 130
    return 0


def read_options() -> argparse.Namespace:
    assert __doc__ is not None
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m catalogue", description=__doc__, formatter_class=shape)
    parser.add_argument("verb", nargs="?", choices=VERBS, default="run")
    parser.add_argument("family", nargs="?", help="for show, serve and why: FAMILY or FAMILY/SEED/SIDE")
    parser.add_argument("--families", default="*", help="names or patterns, comma-separated (default all)")
    parser.add_argument("--seeds", type=int, default=1, help="number of specimens per family (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="for show, serve and why: the seed (default 1)")
    parser.add_argument("--split", choices=tuple(rows.FIRST_SEED), default="development")
    parser.add_argument(
        "--tier",
        choices=("A", "B", "C"),
        help=f"sources that the diagnosis may use: A responses, B also processes, C also metrics "
        f"(default {TIER}); for judge and why: only records of this tier",
    )
    parser.add_argument(
        "--budget",
        help=f"time per diagnosis (default {BUDGET}); for judge and why: only records of this budget",
    )
    parser.add_argument("--within", default="24h", help="start no further diagnosis after this time")
    parser.add_argument("--no-twins", action="store_true", help="leave out twins and repaired services")
    parser.add_argument("--twin", action="store_true", help="for show, serve and why: the twin")
    parser.add_argument("--anew", action="store_true", help="measure stored services again")
    parser.add_argument("--rule", help="for judge: print the result of this rule for each record")
    parser.add_argument("--results", type=Path, default=rows.FOLDER, help="folder of stored diagnoses")
    parser.add_argument("--records", type=Path, default=keeping.RECORDS, help="folder of records")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}; a budget of 20 s")
    options = parser.parse_args()
    if options.verb in ("show", "serve", "why"):
        _take_apart(options, parser)
    if options.rule is not None and options.rule not in page.existing_rules():
        parser.error(f"no such rule: {options.rule}; there are {', '.join(page.existing_rules())}")
    budget = "20s" if options.quick else options.budget
    try:
        options.only_budget_s = None if budget is None else units.duration_ns(budget) / 1e9
        options.within_s = units.duration_ns(options.within) / 1e9
    except ValueError as fault:
        parser.error(str(fault))
    is_default = options.only_budget_s is None
    options.budget_s = units.duration_ns(BUDGET) / 1e9 if is_default else options.only_budget_s
    return options


def _take_apart(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Read FAMILY/SEED/SIDE: `db-lock/3/twin` is `db-lock --seed 3 --twin`."""
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
    """Return the selected families, in the catalogue's order.

    Raises:
        CannotRun: No family matches.
    """
    patterns = QUICK if options.quick else [word.strip() for word in options.families.split(",")]
    names = [name for name in FAMILIES if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]
    if not names:
        raise CannotRun(f"no family matches {options.families}; `python -m catalogue list` names all")
    return names


# --- measuring -------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> None:
    """Diagnose services without a stored diagnosis; print the table of the split."""
    if not asking.has_explain():
        raise CannotRun("`loadlens explain` does not start; try `make install`")
    program()  # fails early if the specimen program is not built
    tier: Tier = options.tier or TIER
    names = chosen(options)
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
            print(f"time is up: {len(todo) - at + 1} diagnoses are left for the next run", file=sys.stderr)
            break
        try:
            row = diagnose(task, subject, options.records)
        except CannotRun as fault:  # one service that does not start must not stop the others
            print(f"{at}/{len(todo)} {task.place}: {fault}", file=sys.stderr, flush=True)
            continue
        rows.append(file, row)
        print(f"{at}/{len(todo)} {task.place}: {_in_short(row)}", file=sys.stderr, flush=True)
    selected = (tier, options.budget_s)
    print(page.table([row for row in rows.read(file) if (row["tier"], row["budget_s"]) == selected]))


def diagnose(task: Task, subject: str, records: Path) -> rows.Row:
    """Start a service, diagnose it, end it; keep the record and return the row."""
    setup = task.specimen.setup
    busy, began = others_busy(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with running(setup, task.tier) as service:
        record = keeping.room(records, task)
        answer = asking.ask(
            service, task.tier, setup.environment, budget_s=task.budget_s, seed=task.seed, record=record
        )
        lasted = service.lasted()
    row = rows.row(task, answer, subject=subject, others_busy=busy, began=began, lasted=lasted)
    keeping.note(record, row)
    return row


def _in_short(row: rows.Row) -> str:
    findings = row["said"].get("findings", ())
    names = ", ".join(f"{finding['rule']} ({finding['grade']})" for finding in findings)
    return f"{row['failure'] or names or 'no finding'} [{row['seconds']:.0f} s]"


# --- judging again ---------------------------------------------------------------------------------------


def judge(options: argparse.Namespace) -> None:
    """Apply today's rules to the kept records; print their table."""
    names = set(chosen(options))
    selected = [
        kept
        for kept in _kept(options)
        if kept.task.family in names and rows.split_of(kept.task.seed) == options.split
    ]
    if not selected:
        raise CannotRun(f"{options.records} holds no record of these families")
    all_judged = judging.judge_all(selected)
    subject = rows.subject()
    new_rows = [judged.row(subject) for judged in all_judged]
    rows.replace(rows.judged_file_of(options.split, options.results), new_rows)
    print(page.table(rows.of_latest_budget(new_rows)))
    for judged in all_judged:
        if judged.answer.failure:
            print(f"failed {judged.kept.record}: {judged.answer.failure}", file=sys.stderr)
    if options.rule is not None:
        print("\n".join(_results_of(options.rule, all_judged)))


def _kept(options: argparse.Namespace) -> list[KeptRecord]:
    """Return the kept records, of one tier and budget if those are given."""
    return [
        kept
        for kept in keeping.kept(options.records)
        if options.tier in (None, kept.task.tier) and options.only_budget_s in (None, kept.task.budget_s)
    ]


def _results_of(rule: str, all_judged: Sequence[judging.Judged]) -> list[str]:
    """Return one line per record: whether the rule is needed, allowed or untrue there, and its result."""
    lines = []
    for judged in all_judged:
        case = case_of(judged.row(""))
        needed = any(rule in rules for rules in case.needs)
        place = "needed" if needed else "allowed" if rule in case.truth.label.true else "untrue"
        lines.append(f"{case.place} [{place}] {status(rule, judged.answer.explanation)}")
    return lines


def explain_why(options: argparse.Namespace) -> None:
    """Print the result of each needed rule on one record, and each false finding with its evidence."""
    wanted = (options.family, options.seed, options.side)
    records = [
        kept for kept in _kept(options) if (kept.task.family, kept.task.seed, kept.task.side) == wanted
    ]
    if not records:
        raise CannotRun(f"{options.records} holds no record of {'/'.join(map(str, wanted))}")
    for kept in records:
        judged = judging.judge(kept)
        print(why(case_of(judged.row("")), judged.answer.explanation))


# --- looking ---------------------------------------------------------------------------------------------


def _task(options: argparse.Namespace) -> Task:
    tier: Tier = options.tier or TIER
    return Task(options.family, options.seed, options.side, tier, options.budget_s)


def show(options: argparse.Namespace) -> None:
    """Print the setup of a specimen, its label and its true numbers."""
    specimen = _task(options).specimen
    label = specimen.label
    description = {
        "setup": asdict(specimen.setup),
        "needs": [dict(need.by_tier) for need in label.needs],
        "allowed": sorted(label.allowed),
        "numbers": {name: f"{number.value:g} {number.unit}" for name, number in specimen.numbers.items()},
    }
    print(json.dumps(description, indent=1))


def serve(options: argparse.Namespace) -> None:
    """Start a specimen, print its URLs, and wait."""
    show(options)
    task = _task(options)
    with running(task.specimen.setup, task.tier) as service:
        print(
            f"{service.work_url}\n{service.ping_url}\n{service.metrics_url}\npids {service.pids}",
            *([f"\nin its own network: {' '.join(service.enter)} curl ..."] if service.enter else []),
            flush=True,
        )
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main())
