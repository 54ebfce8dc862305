"""Measure Loadlens alongside other load generators, and write docs/benchmarks.md from the data.

    python -m benches                    all parts below in turn, over an hour with all peers installed
    python -m benches main flow page     some of them

  main    CPU per request next to wrk, ab and the bare loop: what the bars are about, 8 rounds, about 18 min
  flow    five steps with an extraction, next to k6 and locust, about 3 min
  limits  start-up, memory of idle connections, the open loop's clock, about 4 min
  laws    our quantiles of a million requests against the server's own, four laws, about 7 min
  truth   times that each generator reports for a service of known times, about 8 min
  slow    the other peers next to wrk, about 25 min
  grid    POST, TLS and new connections at other connection counts, about 12 min
  soak    half an hour of `hit` at 10,000/s: memory, descriptors, threads and rate; only when it is named
  cost    your own choice of --cases and --peers
  page    docs/benchmarks.md, its appendix and its chart, from the newest data

Peers are looked for in --peers-dir (or $LOADLENS_PEERS) and on PATH; what is missing is skipped aloud.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benches import cost, laws, limits, machine, results, soak, truth
from benches.generators import GENERATORS, Generator
from benches.measuring import find_origin
from benches.works import FLOW, MAIN, QUICK, WORKS, chosen

DEFAULT_PEERS = [name for name in GENERATORS if name != "loadlens-hit"]
CLOSEST = ["loadlens", "floor", "wrk", "ab"]
REST = [work.name for work in WORKS if work not in [*chosen(MAIN), *FLOW]]
PARTS = ("main", "flow", "limits", "laws", "truth", "slow", "grid", "soak", "cost", "page")
ALL = [part for part in PARTS if part not in ("soak", "cost")]


@dataclass(frozen=True, slots=True)
class Suite:
    """Works and generators that are measured together, in the same rounds."""

    cases: Sequence[str]
    peers: Sequence[str]
    rounds: int = 8
    # A run of three times the short one: with runs that differ by some share, the marginal cost differs by
    # sqrt(3^2 + 1) / 2 = 1.6 times it, with twice the short one by 2.2 times; 1.4 would take a second more.
    long_s: int = 3


SUITES = {
    "main": Suite(MAIN, CLOSEST),
    "flow": Suite([work.name for work in FLOW], ["loadlens", "k6", "locust"]),
    "slow": Suite(MAIN, ["wrk", *(name for name in DEFAULT_PEERS if name not in CLOSEST)], long_s=2),
    "grid": Suite(REST, CLOSEST, long_s=2),
}
FEW = {  # with --quick
    "main": QUICK,
    "cost": QUICK,
    "flow": SUITES["flow"].cases,
    "slow": ["get-100"],
    "grid": ["post-12"],
}


def main() -> int:
    options = read_options()
    if len(os.sched_getaffinity(0)) < 2 and options.parts != ["page"]:
        print("needs two processors: one for the server, one for the generator", file=sys.stderr)
        return 2
    if options.peers_dir:
        os.environ["PATH"] = f"{Path(options.peers_dir).resolve()}{os.pathsep}{os.environ['PATH']}"
    if options.priority:
        machine.raise_priority()
    try:
        for part in options.parts:
            if part == "page":
                write_page(options)
            else:
                measure(part, options)
    except ValueError as fault:
        print(fault, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; what was measured so far is kept", file=sys.stderr)
        return 130
    return 0


def read_options() -> argparse.Namespace:
    assert __doc__ is not None
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m benches", description=__doc__, formatter_class=shape)
    parser.add_argument("parts", nargs="*", metavar="PART", help="see above (default: all but cost)")
    parser.add_argument("--cases", type=names, default=[], help="such as 'get-*,post-100' or freeze-open")
    parser.add_argument("--peers", type=names, default=[], help="such as loadlens,wrk,floor")
    parser.add_argument("--rounds", type=int, help="default 8, for truth 1, for limits 3; with --quick 1")
    parser.add_argument("--short", type=int, default=1, help="seconds of a short run (default 1)")
    parser.add_argument("--long", type=int, help="seconds of a long run (default 3, slow peers 2)")
    parser.add_argument(
        "--seconds", type=int, help="of a run of truth (default 10), laws (100) or soak (1800)"
    )
    parser.add_argument("--rate", type=int, help="requests per second of soak (default 10,000)")
    parser.add_argument("--quick", action="store_true", help="one round of a few cases, to see that it works")
    parser.add_argument(
        "--busy", type=float, default=0.85, help="least share of its core for the busier side (default 0.85)"
    )
    parser.add_argument("--peers-dir", default=os.environ.get("LOADLENS_PEERS"), help="looked in before PATH")
    parser.add_argument("--results", default=str(results.FOLDER), help="folder of the data")
    parser.add_argument("--anew", action="store_true", help="begin the data anew instead of adding to it")
    parser.add_argument("--docs", help="folder of the page (default: docs)")
    parser.add_argument(
        "--priority", action="store_true", help="put this session before all others on the machine (root)"
    )
    options = parser.parse_args()
    options.parts = options.parts or list(ALL)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return options


def names(text: str) -> list[str]:
    """Words between commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def present(wanted: Iterable[str]) -> list[Generator]:
    """Generators that are here; the others are skipped aloud.

    Raises:
        ValueError: A name that is no generator's.
    """
    installed = []
    for name in wanted:
        if name not in GENERATORS:
            raise ValueError(f"no such generator: {name}; there are {', '.join(GENERATORS)}")
        why = GENERATORS[name].why_missing()
        if why is None:
            installed.append(GENERATORS[name])
        else:
            print(f"skipped {name}: {why}", file=sys.stderr)
    return installed


def measure(part: str, options: argparse.Namespace) -> None:
    """Measure one part and add it to the data."""
    print(f"== {part}", file=sys.stderr)
    if not machine.state()["is_quiet"]:
        print("other work is running on this machine: expect measurements to be left out", file=sys.stderr)
    program = find_origin()
    book = results.current(Path(options.results), anew=options.anew)
    options.anew = False  # for the first part only
    if part == "truth":
        measure_truth(options, book, program)
    elif part == "limits":
        measure_limits(options, book, program)
    elif part == "soak":
        measure_soak(options, book, program)
    elif part == "laws":
        measure_laws(options, book, program)
    else:
        measure_cost(_suite(part, options), options, book, program)
    print(f"written to {book.path}")


def _suite(part: str, options: argparse.Namespace) -> Suite:
    """A suite with what the command line changes about it."""
    suite = SUITES.get(part, Suite([*MAIN, *SUITES["flow"].cases], DEFAULT_PEERS))
    if options.quick:
        suite = replace(suite, cases=FEW[part], rounds=1, long_s=2)
    return Suite(
        options.cases or suite.cases,
        options.peers or suite.peers,
        options.rounds or suite.rounds,
        options.long or suite.long_s,
    )


def measure_cost(suite: Suite, options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """One suite, round by round."""
    works, peers = chosen(suite.cases), present(suite.peers)
    series = cost.Series(suite.rounds, options.short, suite.long_s, options.busy)
    settings: dict[str, object] = {"cases": [work.name for work in works], "rounds": series.rounds}
    settings |= {"short_s": series.short_s, "long_s": series.long_s, "busy": series.busy}
    number = book.begin_set("cost", settings, _versions(peers))
    cost.measure_all(book, number, works, peers, series, program)
    print(cost.table(cost.summary(book, works, [peer.name for peer in peers])))


def measure_truth(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """Compare every generator with known times."""
    works = chosen(
        options.cases or (["mix-2-*"] if options.quick else ["*"]), [case.work for case in truth.CASES]
    )
    cases = [case for case in truth.CASES if case.work in works]
    peers = present(options.peers or DEFAULT_PEERS)
    rounds, seconds = options.rounds or 1, options.seconds or truth.SECONDS
    settings = {"cases": [case.work.name for case in cases], "rounds": rounds, "seconds": seconds}
    number = book.begin_set("truth", settings, _versions(peers))
    truth.measure_all(book, number, cases, peers, rounds, seconds, program)


def measure_limits(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """Measure start-up, memory of idle connections and the open loop's clock."""
    rounds = options.rounds or (1 if options.quick else 3)
    number = book.begin_set("limits", {"rounds": rounds}, _versions(present(["loadlens"])))
    limits.measure_all(book, number, rounds, program)


def measure_laws(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """Compare our quantiles with the server's own."""
    seconds = 2 if options.quick else options.seconds or laws.SECONDS
    number = book.begin_set("laws", {"seconds": seconds}, _versions(present(["loadlens"])))
    laws.measure_all(book, number, seconds, program)


def measure_soak(options: argparse.Namespace, book: results.Results, program: Path) -> None:
    """Measure a long run from outside the process."""
    seconds, rate = options.seconds or soak.SECONDS, options.rate or soak.RATE
    number = book.begin_set("soak", {"seconds": seconds, "rate": rate}, _versions(present(["loadlens"])))
    soak.measure_all(book, number, seconds, rate, program)


def _versions(peers: Iterable[Generator]) -> dict[str, str]:
    return {peer.name: peer.version() for peer in peers}


def write_page(options: argparse.Namespace) -> None:
    """The page and the chart, from the newest data.

    Raises:
        ValueError: There are no data.
    """
    from benches import page  # heavy to load, and needed only here

    path = results.newest(Path(options.results))
    if path is None:
        raise ValueError(f"no data in {options.results}: measure first")
    docs = Path(options.docs) if options.docs else page.DOCS
    for written in page.write(results.read(path), docs):
        print(f"written to {written}")


if __name__ == "__main__":
    sys.exit(main())
