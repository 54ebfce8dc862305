"""Diagnose the catalogue's services, unattended, and print how right that was.

    python -m catalogue                         every family, one development seed, each with its twin
    python -m catalogue --families 'db-*,loop-*' --seeds 3
    python -m catalogue --split hold-out --seeds 12 --within 4h
    python -m catalogue --quick                 six families, a short budget: to see that it works
    python -m catalogue list                    all families
    python -m catalogue show db-lock --seed 3   what is started, and what is true of it
    python -m catalogue serve db-lock [--twin]  start it and leave it alone, until Ctrl-C
    python -m catalogue page                    docs/explain/catalogue.md from the data

Each diagnosis is kept in catalogue/results as it comes; a run that was broken off goes on where it was. What
was diagnosed by an older commit is done again with --anew.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from catalogue import asking, page, rows
from catalogue.families import FAMILIES
from catalogue.rows import Task
from catalogue.running import CannotRun, lacks, others_busy, running
from loadlens import units

QUICK = ("healthy-threads", "loop-blocked", "cpu-threads", "db-lock", "worker-pool", "slow-path")
VERBS = ("run", "list", "show", "serve", "page")


def main() -> int:
    options = read_options()
    try:
        if options.verb == "list":
            print(page.families_table())
        elif options.verb == "page":
            page.write()
        elif options.verb == "show":
            show(options)
        elif options.verb == "serve":
            serve(options)
        else:
            return run(options)
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
    parser.add_argument("family", nargs="?", help="of show and serve")
    parser.add_argument("--families", default="*", help="names or patterns between commas")
    parser.add_argument("--seeds", type=int, default=1, help="specimens of each family (default 1)")
    parser.add_argument("--seed", type=int, default=1, help="of show and serve")
    parser.add_argument("--split", choices=tuple(rows.FIRST_SEED), default="development")
    parser.add_argument(
        "--tier", choices=("A", "B", "C"), default="C", help="what may be seen (default C: all)"
    )
    parser.add_argument("--budget", default="90s", help="of each diagnosis (default 90s)")
    parser.add_argument("--within", default="24h", help="begin no further diagnosis after that")
    parser.add_argument("--no-twins", action="store_true", help="leave the twins out")
    parser.add_argument("--twin", action="store_true", help="of show and serve: the twin")
    parser.add_argument("--anew", action="store_true", help="also what the data hold already")
    parser.add_argument("--results", type=Path, default=rows.FOLDER, help="folder of the data")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}; a budget of 20 s")
    options = parser.parse_args()
    if options.verb in ("show", "serve") and options.family not in FAMILIES:
        parser.error(f"no such family: {options.family}; there are {', '.join(FAMILIES)}")
    try:
        options.budget_s = units.duration_ns("20s" if options.quick else options.budget) / 1e9
        options.within_s = units.duration_ns(options.within) / 1e9
    except ValueError as fault:
        parser.error(str(fault))
    return options


def chosen(options: argparse.Namespace) -> list[str]:
    """Families that were asked for, in the catalogue's order."""
    patterns = QUICK if options.quick else [word.strip() for word in options.families.split(",")]
    return [name for name in FAMILIES if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def run(options: argparse.Namespace) -> int:
    """Diagnose what has not been; print the table of the split."""
    if not asking.is_there():
        raise CannotRun("there is no `loadlens explain` to ask")
    names = chosen(options)
    if not names:
        raise CannotRun(f"no family is called like {options.families}")
    for name in [name for name in names if lacks(FAMILIES[name].wants)]:
        print(f"skipped {name}: {lacks(FAMILIES[name].wants)}", file=sys.stderr)
        names.remove(name)
    file = rows.file_of(options.split, options.results)
    done = set() if options.anew else {key_of(row) for row in rows.read(file)}
    until = time.monotonic() + options.within_s
    wanted = rows.tasks(
        names, options.split, options.seeds, options.tier, options.budget_s, twins=not options.no_twins
    )
    todo = [task for task in wanted if task.key not in done]
    subject = rows.subject()
    for at, task in enumerate(todo, 1):
        if time.monotonic() > until:
            print(f"{len(todo) - at + 1} are left for the next time", file=sys.stderr)
            break
        diagnose(task, subject, file, f"{at}/{len(todo)}")
    print(page.table(rows.read(file)))
    return 0


def key_of(row: dict[str, object]) -> tuple[object, ...]:
    """The task that a row is the result of."""
    return tuple(row[key] for key in ("family", "seed", "side", "tier", "budget_s"))


def diagnose(task: Task, subject: str, file: Path, place: str) -> None:
    """One service: started, diagnosed, ended, kept."""
    known = task.known
    busy = others_busy()
    with running(known.setup, task.tier) as service:
        answer = asking.ask(service, task.tier, known.setup.around, budget_s=task.budget_s, seed=task.seed)
    row = rows.row(task, answer, subject, busy)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as data:
        data.write(json.dumps(row, sort_keys=True) + "\n")
    found = ", ".join(f"{one['rule']} ({one['grade']})" for one in row["said"].get("findings", ()))
    print(
        f"{place} {task.family} {task.seed} {task.side}: {answer.failure or found or 'nothing'} "
        f"[{answer.seconds:.0f} s]",
        file=sys.stderr,
        flush=True,
    )


def _task(options: argparse.Namespace) -> Task:
    side = "twin" if options.twin else "flawed"
    if options.twin and FAMILIES[options.family].drawn(options.seed).twin is None:
        raise CannotRun(f"{options.family} has no twin: it has no flaw")
    return Task(options.family, options.seed, side, options.tier, options.budget_s)


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
    with running(_task(options).known.setup, options.tier) as service:
        print(
            f"{service.work_url}\n{service.ping_url}\n{service.metrics_url}\npids {service.pids}", flush=True
        )
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    sys.exit(main())
