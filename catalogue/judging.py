"""Applies the rules of this commit to kept records, without measuring again."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from catalogue.asking import Answer
from catalogue.keeping import KeptRecord
from catalogue.rows import Row, row

PROCESSES: Final = 2

Explain = Callable[[Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One kept record with the answer of today's rules."""

    kept: KeptRecord
    answer: Answer  # the whole answer, as `explain --json` gives it

    def row(self, subject: str) -> Row:
        """Return the stored form: measured by an earlier commit, judged by this one."""
        then = self.kept.row
        now = row(
            self.kept.task,
            self.answer,
            subject=then["subject"],
            others_busy=then["others_busy"],
            began=then["began"],
            lasted=then.get("lasted"),
        )
        return now | {"seconds": then["seconds"], "judged": subject}


def explain(record: Path) -> dict[str, Any]:
    """Return the answer for a record, as in `explain --json`."""
    from loadlens.record import open_run
    from loadlens.report.write.json import explanation_as_dict
    from loadlens.search import explanation

    return explanation_as_dict(explanation(open_run(record)))


def judge(kept: KeptRecord, explain: Explain = explain) -> Judged:
    """Judge one record; an error becomes its failure and does not affect other records."""
    began = time.monotonic()
    try:
        explanation = explain(kept.record)
    except Exception as fault:  # a rule may have any defect: it is reported with the record's name
        why = " ".join(str(fault).split())
        answer = Answer({}, f"{type(fault).__name__}: {why[:200]}", time.monotonic() - began)
    else:
        answer = Answer(explanation, _unfinished(kept, explanation), time.monotonic() - began)
    return Judged(kept, answer)


def _unfinished(kept: KeptRecord, explanation: dict[str, Any]) -> str | None:
    """Return why the measurement did not finish; None if it did, even if a rule failed on it then."""
    if explanation.get("stopped_because") not in ("record", "interrupted"):
        return None
    return str(kept.row["failure"] or "the search did not end")


def judge_all(records: Sequence[KeptRecord], *, processes: int = PROCESSES) -> list[Judged]:
    """Judge records, `processes` at a time, with progress on stderr; return them in the given order."""
    by_name: dict[str, Judged] = {}
    # Not forked: the reader of records has threads, and a fork would inherit their locks in a locked state.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        pending = {pool.submit(judge, record): record for record in records}
        for judged in _as_completed(pending):
            by_name[judged.kept.task.name] = judged
            failed = sum(1 for other in by_name.values() if other.answer.failure)
            _progress(f"{len(by_name)}/{len(records)} judged" + (f", {failed} failed" if failed else ""))
    return [by_name[record.task.name] for record in records]


def _as_completed(pending: dict[Future[Judged], KeptRecord]) -> Iterator[Judged]:
    for future in as_completed(pending):
        fault = future.exception()  # if a process dies, every record it had fails
        why = f"{type(fault).__name__}: {fault}"
        yield future.result() if fault is None else Judged(pending[future], Answer({}, why, 0.0))


def _progress(text: str) -> None:
    done, _, whole = text.split(" ", 1)[0].partition("/")
    if sys.stderr.isatty():
        end = "\n" if done == whole else ""
        print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
    elif done == whole or int(done) % 10 == 0:
        print(text, file=sys.stderr, flush=True)
