"""Run every shipped study in its quick profile, two at a time, and say of each whether it stands.

What is judged is structure and counts: every planned trial was made, is valid or says why not, and the books
balance. Nothing here is judged by speed. A study whose programs this machine lacks, or whose limits it
cannot hold, is skipped aloud.

    python tools/studies.py [--within MINUTES] [--keep DIR] [NAME ...]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from loadlens import engine
from loadlens.errors import ExitCode, LoadlensError, TestbedError
from loadlens.model.report import Report
from loadlens.model.study import Study
from loadlens.model.trial import TrialStatus
from loadlens.record import RunRecord, is_record, open_run
from loadlens.report import build
from loadlens.study import parse, plan
from loadlens.study.tree import items_at
from loadlens.testbed.build import missing
from loadlens.testbed.placement import Placement

ROOT = Path(__file__).parent.parent
STUDIES = ROOT / "studies"
MINUTES = 20.0  # for all of them, builds included; about eight on two cores once everything is built
AT_A_TIME = 2  # a quick trial mostly waits, and nothing is judged by speed
END_WITHIN_S = 60.0  # from the first Ctrl-C to the end: services have their own time to stop
LABS: list[subprocess.Popen[bytes]] = []  # that were begun
OVER = threading.Event()  # Ctrl-C: no further lab begins


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of one study."""

    name: str
    state: str  # ok, FAILED, skipped
    words: str

    @property
    def line(self) -> str:
        return f"{self.state:<8}{self.name}: {self.words}"


def main() -> int:
    """Exit 1 when a study fails; 0 also when some were skipped, unless all were."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies to run; default: all")
    parser.add_argument("--within", type=float, default=MINUTES, metavar="MINUTES", help="for all of them")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the records in DIR; default: remove them"
    )
    asked = parser.parse_args()
    until = time.monotonic() + 60 * asked.within
    shipped = sorted(path.parent.name for path in STUDIES.glob("*/study.yaml"))
    names = asked.names or shipped
    verdicts = []
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = asked.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="loadlens-studies-"))
        )
        runs.mkdir(parents=True, exist_ok=True)
        try:
            for verdict in pool.map(partial(verdict_of, runs=runs, until=until), names):
                verdicts.append(verdict)
                print(verdict.line, flush=True)
                for words in other_variants(verdict.name):
                    print(f"skipped {verdict.name}: {words}", flush=True)
        except BaseException:
            OVER.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for lab in LABS:
                end(lab)
            raise
    states = Counter(verdict.state for verdict in verdicts)
    print(f"\n{', '.join(f'{count} {state}' for state, count in states.items())}")
    return 0 if states["ok"] and not states["FAILED"] else 1


def verdict_of(name: str, runs: Path, until: float) -> Verdict:
    """Run one study and check its record."""
    try:
        study = plan.plan(parse.read(STUDIES / name), quick=True, templates=engine)
    except LoadlensError as fault:
        return Verdict(name, "FAILED", str(fault))
    lacking = missing((s for case in study.cases for s in case.services), STUDIES / name)
    if lacking:
        programs = ", ".join(sorted({program.program for program in lacking}))
        return Verdict(name, "skipped", f"this machine lacks {programs}")
    if unheld := what_cannot_be_held(study):
        return Verdict(name, "skipped", f"this machine cannot enforce its limits: {unheld}")
    record = runs / name
    began = time.monotonic()
    code, output = run(name, record, until)
    took = time.monotonic() - began
    if code is None:
        return Verdict(name, "FAILED", f"out of the time for all studies: ended after {took:.0f} s")
    if code not in (ExitCode.OK, ExitCode.INVALID, ExitCode.OBJECTIVE) or not is_record(record):
        return Verdict(name, "FAILED", f"exit {code} after {took:.0f} s\n{output}")
    faults, words = look(study, open_run(record))
    state = "FAILED" if faults else "ok"
    return Verdict(name, state, "\n         ".join((f"{words}, {took:.0f} s", *faults)))


def what_cannot_be_held(study: Study) -> str:
    """Return the first limit of a service that this machine cannot enforce (control groups need root)."""
    for limits in dict.fromkeys(service.limits for case in study.cases for service in case.services):
        placement = Placement()
        try:
            placement.place("studies", limits, where="limits")
        except TestbedError as fault:
            return fault.message
        finally:
            placement.remove()
    return ""


def other_variants(name: str) -> list[str]:
    """List the variants of its services that were not run: only the first whose needs are met runs."""
    try:
        definition = parse.read(STUDIES / name)
        taken = {s.name: s.variant for case in plan.plan(definition).cases for s in case.services}
    except LoadlensError:
        return []
    return [
        f"{service}={variant}, because {taken[service]} was run"
        for service, part in items_at(definition.tree, "services").items()
        for variant in items_at(part, "variants")
        if variant != taken.get(service)
    ]


def run(name: str, record: Path, until: float) -> tuple[int | None, str]:
    """Run `loadlens run --quick`; return its exit code (None: out of time) and its last lines."""
    command = [sys.executable, "-m", "loadlens", "run", str(STUDIES / name), "--quick", "--out", str(record)]
    home = os.pathsep.join((str(ROOT / "python"), os.environ.get("PYTHONPATH", "")))
    with tempfile.TemporaryFile("w+") as output:
        lab = subprocess.Popen(
            command,
            cwd=record.parent,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env={**os.environ, "PYTHONPATH": home},
        )
        LABS.append(lab)
        if OVER.is_set():
            end(lab)
        try:
            code: int | None = lab.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            end(lab)
            code = None
        output.seek(0)
        return code, "\n".join(f"         {line}" for line in output.read().splitlines()[-30:])


def end(lab: subprocess.Popen[bytes]) -> None:
    """End it in order, then by force; its keeper ends the services in either case."""
    lab.send_signal(signal.SIGINT)
    try:
        lab.wait(timeout=END_WITHIN_S)
    except subprocess.TimeoutExpired:
        lab.kill()
        lab.wait()


def look(study: Study, record: RunRecord) -> tuple[list[str], str]:
    """Return the faults in the structure and the counts of a record, and a short summary of the run."""
    report = build.report(record)
    planned = {(trial.case.slug, trial.block) for trial in plan.order(study)}
    tried = {(trial.case.slug, trial.block) for trial in record.trials}
    complete = {
        (trial.case.slug, trial.block) for trial in record.trials if trial.status is TrialStatus.COMPLETE
    }
    faults = [f"never tried: {slug}" for slug, _ in sorted(planned - tried)]
    faults += [
        f"{trial.case.name}: {trial.status} without a reason"
        for trial in record.trials
        if trial.status is not TrialStatus.COMPLETE and not trial.reasons
    ]
    faults += [f"no valid trial of {len(planned)}"] if not complete else []
    faults += list(record.damage)
    faults += broken_books(report)
    invalid = [
        f"{trial.case.name}: {'; '.join(trial.reasons)}"
        for trial in record.trials
        if (trial.case.slug, trial.block) not in complete
    ]
    words = f"{len(complete)} of {len(planned)} trials valid, {claims(report)}"
    return faults, "\n         ".join((words, *(f"invalid: {reason}" for reason in invalid)))


def broken_books(report: Report) -> list[str]:
    """List the sources whose counts do not add up."""
    if not report.accounting:
        return ["no source counted a request"]
    return [
        f"the books of {row.source} do not balance: {row.explained_by}"
        for row in report.accounting
        if row.state == "bad"
    ]


def claims(report: Report) -> str:
    """Count the published claims by verdict; a quick run alone contradicts none."""
    if report.published is None:
        return "nothing published"
    names: Mapping[bool | None, str] = {True: "agree", False: "are contradicted", None: "stay undecided"}
    counts = Counter(row.holds for row in report.published.claims)
    return "conclusions: " + ", ".join(f"{counts[holds]} {word}" for holds, word in names.items())


if __name__ == "__main__":
    sys.exit(main())
