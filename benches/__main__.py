"""Measure Loadlens beside other load generators, and write docs/benchmarks.md from the data.

    python -m benches                 everything, about an hour with all peers installed
    python -m benches cost            CPU per request      [--cases 'get-*,post-100'] [--peers wrk,ab]
    python -m benches truth           accuracy             [--cases freeze-open] [--peers oha,k6]
    python -m benches limits          start-up, memory, the open loop's clock
    python -m benches page            docs/benchmarks.md and its chart, from the newest data

Peers are looked for in --peers-dir (or $LOADLENS_PEERS) and on PATH; what is missing is skipped aloud.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benches import cost, limits, machine, results, truth
from benches.generators import GENERATORS, Generator
from benches.measuring import find_origin
from benches.works import MAIN, QUICK, WORKS, chosen

DEFAULT_PEERS = [name for name in GENERATORS if name != "loadlens-hit"]
QUICK_PEERS = ("loadlens", "floor", "wrk", "ab")
GRID = ("post-*", "tls-*", "fresh-*")


def main() -> int:
    options = read_options()
    if options.verb == "page":
        return write_page(options)
    if len(os.sched_getaffinity(0)) < 2:
        print("needs two processors: one for the server, one for the generator", file=sys.stderr)
        return 2
    if options.peers_dir:
        os.environ["PATH"] = f"{Path(options.peers_dir).resolve()}{os.pathsep}{os.environ['PATH']}"
    if options.priority:
        machine.raise_priority()
    if not machine.state()["is_quiet"]:
        print("other work is running on this machine: expect discarded measurements", file=sys.stderr)
    book = results.current(Path(options.results), anew=options.anew)
    program = find_origin()
    try:
        VERBS[options.verb](options, book, program)
    except ValueError as fault:
        print(fault, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; what was measured so far is kept", file=sys.stderr)
    print(f"written to {book.path}")
    return write_page(options) if options.verb == "all" else 0


def read_options() -> argparse.Namespace:
    assert __doc__ is not None
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benches", description=__doc__, formatter_class=shape)
    parser.add_argument("verb", nargs="?", default="all", choices=[*VERBS, "page"])
    parser.add_argument("--cases", type=names, default=[], help="such as 'get-*,post-100' or freeze-open")
    parser.add_argument("--peers", type=names, default=[], help="such as loadlens,wrk,floor")
    parser.add_argument("--rounds", type=int, help="default 8 for cost, 1 for truth, 3 for limits")
    parser.add_argument("--short", type=int, default=1, help="seconds of a short run (default 1)")
    parser.add_argument("--long", type=int, help="seconds of a long run (default 3, with --quick 2)")
    parser.add_argument("--seconds", type=int, default=truth.SECONDS, help="of a run of truth (default 10)")
    parser.add_argument("--quick", action="store_true", help="cost: one round of four pieces of work")
    parser.add_argument(
        "--busy", type=float, default=0.85, help="least share of its core for the busier side (default 0.85)"
    )
    parser.add_argument("--peers-dir", default=os.environ.get("LOADLENS_PEERS"), help="looked in before PATH")
    parser.add_argument("--results", default=str(results.FOLDER), help="folder of the data")
    parser.add_argument("--anew", action="store_true", help="begin the data anew instead of adding to it")
    parser.add_argument("--docs", default=None, help="page: folder of the docs (default: the repository's)")
    parser.add_argument(
        "--priority", action="store_true", help="put this session before all others on the machine (root)"
    )
    return parser.parse_args()


def names(text: str) -> list[str]:
    """Words between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def present(wanted: Iterable[str]) -> list[Generator]:
    """Generators that are here; the others are skipped aloud.

    Raises:
        ValueError: A name that is no generator's.
    """
    found = []
    for name in wanted:
        if name not in GENERATORS:
            raise ValueError(f"no such generator: {name}; there are {', '.join(GENERATORS)}")
        why = GENERATORS[name].why_missing()
        if why is None:
            found.append(GENERATORS[name])
        else:
            print(f"skipped {name}: {why}", file=sys.stderr)
    return found


def measure_cost(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """One set of works and generators."""
    works = options.cases or (QUICK if options.quick else [*MAIN, "flow-100"])
    rounds = options.rounds or (1 if options.quick else 8)
    long_s = options.long or (2 if options.quick else 3)
    series = cost.Series(rounds, options.short, long_s, options.busy)
    _cost(book, program, works, present(options.peers or DEFAULT_PEERS), series)


def _cost(
    book: results.Results,
    program: Path,
    patterns: Sequence[str],
    peers: Sequence[Generator],
    series: cost.Series,
) -> None:
    works = chosen(patterns)
    told = {"cases": [work.name for work in works], "rounds": series.rounds}
    told |= {"short_s": series.short_s, "long_s": series.long_s, "busy": series.busy}
    number = book.begin_set("cost", told, _versions(peers))
    cost.measure_all(book, number, works, peers, series, program)
    rows = [row for row in cost.summary(book, works, GENERATORS) if row.generator in {p.name for p in peers}]
    print(cost.table(rows))


def measure_truth(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """Every generator beside known times."""
    works = chosen(options.cases or ["*"], [case.work for case in truth.CASES])
    cases = [case for case in truth.CASES if case.work in works]
    peers = present(options.peers or DEFAULT_PEERS)
    rounds = options.rounds or 1
    told = {"cases": [case.work.name for case in cases], "rounds": rounds, "seconds": options.seconds}
    number = book.begin_set("truth", told, _versions(peers))
    truth.measure_all(book, number, cases, peers, rounds, options.seconds, program)


def measure_limits(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """What has a bar of its own."""
    rounds = options.rounds or 3
    number = book.begin_set("limits", {"rounds": rounds}, _versions(present(["loadlens"])))
    limits.measure_all(book, number, rounds, program)


def measure_everything(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """The quick generators first and longest, then the slow ones beside the peer, then truth and limits."""
    peers = present(DEFAULT_PEERS)
    quick = [one for one in peers if one.name in QUICK_PEERS]
    others = [one for one in peers if one.name not in QUICK_PEERS]
    peer = [one for one in peers if one.name in ("wrk",)]
    rounds = options.rounds or 8
    _cost(book, program, MAIN, quick, cost.Series(rounds, 1, options.long or 3, options.busy))
    _cost(book, program, ["flow-100"], [*quick[:1], *others], cost.Series(rounds, 1, 2, options.busy))
    _cost(book, program, MAIN, [*peer, *others], cost.Series(rounds, 1, 2, options.busy))
    measure_limits(options, book, program)
    measure_truth(options, book, program)
    main_works = {work.name for work in chosen(MAIN)}
    grid = [work.name for work in WORKS if work.name not in main_works and work.kind != "flow"]
    _cost(book, program, grid, quick, cost.Series(rounds, 1, 2, options.busy))


def _versions(peers: Iterable[Generator]) -> dict[str, str]:
    return {one.name: one.version() for one in peers}


def write_page(options: argparse.Namespace) -> int:
    """The page and the chart, from the newest data."""
    from benches import page  # altair and its like only here

    path = results.newest(Path(options.results))
    if path is None:
        print(f"no data in {options.results}; measure first", file=sys.stderr)
        return 2
    docs = Path(options.docs) if options.docs else page.DOCS
    for written in page.write(results.read(path), docs):
        print(f"written to {written}")
    return 0


VERBS = {
    "all": measure_everything,
    "cost": measure_cost,
    "truth": measure_truth,
    "limits": measure_limits,
}

if __name__ == "__main__":
    sys.exit(main())
