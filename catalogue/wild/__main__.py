"""Serve a service of this folder, check all, or score what `explain` says of them."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from catalogue.wild.score import RESULTS, score, table
from catalogue.wild.serve import VARIANTS, CannotServe, faults, running, service, services


def _serve(name: str, variant: str, port: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored behind `&`
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with running(name, variant, port) as each:
            print("\n".join(f"http://127.0.0.1:{port}{path}" for path in each.paths), flush=True)
            if each.about["metrics"]:
                print(f"metrics: http://127.0.0.1:{port}{each.about['metrics']}", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        return


def _list() -> None:
    for each in services():
        kind = "sealed" if each.is_sealed else each.about["kind"]
        print(f"{each.name:<16} {kind:<20} {'-' if each.is_sealed else each.about['tier']}")


def _check() -> int:
    wrong = [f"{each.name}: {fault}" for each in services() for fault in faults(each)]
    print("\n".join(wrong) or "every wild.yaml is complete")
    return 1 if wrong else 0


def _score(asked: argparse.Namespace) -> None:
    which = [service(name) for name in asked.names] or [each for each in services() if each.is_sealed == asked.sealed]
    default = RESULTS / ("sealed.jsonl" if asked.sealed else "development.jsonl")
    print(table(score(which, asked.variants, asked.results or default)))


def main() -> int:
    """Run the verb of the command line."""
    parser = argparse.ArgumentParser(prog="python -m catalogue.wild", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    serve = verbs.add_parser("serve", help="start a service and end it on Ctrl-C")
    serve.add_argument("name")
    serve.add_argument("variant", choices=VARIANTS)
    serve.add_argument("--port", type=int, default=8090, help="port to serve on; the nine after it may be used too")
    verbs.add_parser("list", help="print names, kinds and tiers")
    verbs.add_parser("check", help="report errors of any wild.yaml")
    scores = verbs.add_parser("score", help="explain services with their URL alone, and compare with the truth")
    scores.add_argument("names", nargs="*", help="default: all that are not sealed")
    scores.add_argument("--sealed", action="store_true", help="the sealed ones: once, at the end")
    scores.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    scores.add_argument("--results", type=Path, help="file of answers so far; an interrupted run goes on there")
    asked = parser.parse_args()
    try:
        if asked.verb == "serve":
            _serve(asked.name, asked.variant, asked.port)
        elif asked.verb == "list":
            _list()
        elif asked.verb == "check":
            return _check()
        else:
            _score(asked)
    except CannotServe as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
