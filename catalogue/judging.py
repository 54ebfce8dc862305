"""Today's rules over records of earlier diagnoses: what they say now, without measuring anything again."""

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
from catalogue.keeping import Kept
from catalogue.rows import Row, row

PROCESSES: Final = 2

Say = Callable[[Path], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Judged:
    """One record as today's rules see it."""

    kept: Kept
    answer: Answer  # the whole answer, as `explain --json` gives it

    def row(self, subject: str) -> Row:
        """What is kept of it: measured then, judged by the rules of this commit."""
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


def say(record: Path) -> dict[str, Any]:
    """The answer of a record, as JSON has it."""
    from loadlens.record import open_run
    from loadlens.report.write.json import explanation_as_dict
    from loadlens.search import explanation

    return explanation_as_dict(explanation(open_run(record)))


def judge(kept: Kept, say: Say = say) -> Judged:
    """One record; whatever goes wrong with it is its failure, and no other's."""
    began = time.monotonic()
    try:
        said = say(kept.record)
    except Exception as fault:  # any rule may have any defect: it is told with the record's name
        why = " ".join(str(fault).split())
        answer = Answer({}, f"{type(fault).__name__}: {why[:200]}", time.monotonic() - began)
    else:
        answer = Answer(said, _unfinished(kept, said), time.monotonic() - began)
    return Judged(kept, answer)


def _unfinished(kept: Kept, said: dict[str, Any]) -> str | None:
    """Why the measuring did not come to its end; none: it did, whatever its rules said of it then."""
    if said.get("stopped_because") not in ("record", "interrupted"):
        return None
    return str(kept.row["failure"] or "the search did not end")


def judge_all(
    kept: Sequence[Kept], *, processes: int = PROCESSES, tell: Callable[[str], None] | None = None
) -> list[Judged]:
    """All records, a few at once; in their order.

    Args:
        kept: What was measured.
        processes: How many at once.
        tell: Is told how far it is; none: a line on the terminal.
    """
    tell = _line if tell is None else tell
    found: dict[str, Judged] = {}
    # Not forked: what reads records has threads of its own, which a fork leaves behind with their locks.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        asked = {pool.submit(judge, one): one for one in kept}
        for one in _as_they_come(asked):
            found[one.kept.task.name] = one
            failed = sum(1 for other in found.values() if other.answer.failure)
            tell(f"{len(found)}/{len(kept)} judged" + (f", {failed} failed" if failed else ""))
    return [found[one.task.name] for one in kept]


def _as_they_come(asked: dict[Future[Judged], Kept]) -> Iterator[Judged]:
    for future in as_completed(asked):
        fault = future.exception()  # a process that died takes those with it that it had
        why = f"{type(fault).__name__}: {fault}"
        yield future.result() if fault is None else Judged(asked[future], Answer({}, why, 0.0))


def _line(text: str) -> None:
    done, _, whole = text.split(" ", 1)[0].partition("/")
    if sys.stderr.isatty():
        end = "\n" if done == whole else ""
        print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
    elif done == whole or int(done) % 10 == 0:
        print(text, file=sys.stderr, flush=True)
