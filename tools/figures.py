"""Write the results of a run into its study: one table into README.md, all of them into results.md.

README.md gets time and place, the answer and the published claims, between the marks `figures` and `end of
figures`. results.md gets these, the findings, published and measured figures and the comparisons of the
study. All of it comes from the record, nothing by hand, so that it can be repeated.

    python tools/figures.py STUDY [RECORD] [--print]

STUDY is the name of a shipped study; RECORD the latest one under runs/ unless it is given.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from loadlens.errors import LoadlensError, UsageError
from loadlens.model.report import Report
from loadlens.present import charts, numbers, words
from loadlens.record import RunRecord, latest_run, open_run
from loadlens.report import build
from loadlens.report.write import cells
from loadlens.report.write.escaping import code, escaped, folded
from loadlens.report.write.escaping import table as table_lines

ROOT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- figures: [^\n]* -->\n).*?(<!-- end of figures -->\n)", re.DOTALL)


def main() -> int:
    """Exit 2 when there is no such study or record, or the README has no place for figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", metavar="STUDY", help="a folder of studies/")
    parser.add_argument("record", nargs="?", type=Path, metavar="RECORD", help="default: the latest in runs/")
    parser.add_argument("--print", action="store_true", help="print the results and write nothing")
    asked = parser.parse_args()
    folder = ROOT / "studies" / asked.study
    readme, results = folder / "README.md", folder / "results.md"
    try:
        record = open_run(asked.record or _latest(asked.study))
        report = build.report(record)
        everything = page(asked.study, record, report)
        if asked.print:
            print(everything, end="")
            return 0
        short = "\n".join(summary(record, report)).strip() + "\n"
        readme.write_text(filled(readme.read_text(encoding="utf-8"), short), encoding="utf-8")
        results.write_text(everything, encoding="utf-8")
    except (LoadlensError, OSError) as fault:
        print(fault, file=sys.stderr)
        return 2
    print(f"{readme}\n{results}")
    return 0


def _latest(study: str) -> Path:
    latest = latest_run(Path("runs"), study)
    if latest is None:
        raise UsageError(f"there is no record of {study} in runs/", hint=f"loadlens run studies/{study}")
    return latest


def filled(readme: str, text: str) -> str:
    """Return the README with these figures instead of its earlier ones.

    Raises:
        UsageError: The README does not have exactly one place for them.
    """
    if len(MARKED.findall(readme)) != 1:
        raise UsageError(
            "the README has no place for figures, or several",
            hint="<!-- figures: python tools/figures.py STUDY --> and <!-- end of figures -->, a line each",
        )
    return MARKED.sub(lambda place: f"{place[1]}\n{text}\n{place[2]}", readme)


def summary(record: RunRecord, report: Report) -> Iterator[str]:
    """Yield what a README shows: time and place, the answer, and one table with the published claims."""
    parts = [_when(record, report), *report.conditions]
    yield textwrap.fill(f"{escaped('; '.join(parts))}. [Every result](results.md).", 100)
    yield ""
    yield from _answer(report)
    if report.published is not None and report.published.claims:
        yield from table_lines(cells.claims(report.published.claims))


def page(study: str, record: RunRecord, report: Report) -> str:
    """Return results.md."""
    note = f"<!-- made by `python tools/figures.py {study} RECORD`; not edited by hand -->"
    head = f"# {study}: every result of a full run"
    return f"{note}\n\n{head}\n\n" + "\n".join(lines(record, report)).strip() + "\n"


def lines(record: RunRecord, report: Report) -> Iterator[str]:
    """Yield time and place, the findings, and the comparison with the published figures."""
    parts = [_when(record, report), *report.conditions, *(badge.text for badge in report.badges)]
    yield f"{escaped('; '.join(parts))}."
    yield ""
    yield from _answer(report)
    for finding in report.findings:
        statement = f"{escaped(finding.statement)} ({escaped(finding.scope)})"
        yield f"- **{finding.grade.word}** {code(finding.rule)}: {statement}"
    yield ""
    if report.published is not None:
        for line in report.published.agreement:
            yield f"- {escaped(line)}"
        yield ""
        yield from folded("Claims", table_lines(cells.claims(report.published.claims)))
        yield from folded(
            "Published and measured figures", table_lines(cells.published(report.published.rows))
        )
    for chart in report.charts:
        table = charts.table(chart) if chart.kind == "comparison" else None
        if table is not None:
            yield from folded(chart.headline, table_lines(cells.table_view(table)))


def _answer(report: Report) -> Iterator[str]:
    """Yield the answer as a quotation with a line per sentence."""
    for sentence in report.answer:
        yield textwrap.fill(escaped(sentence), 100, initial_indent="> ", subsequent_indent="> ")
    yield ""


def _when(record: RunRecord, report: Report) -> str:
    """Return `A full run of 16 cases on 22 November 2026; 58 min from the first trial to the last`."""
    began = min(trial.began_unix_ns for trial in record.trials if trial.began_unix_ns)
    took_s = (max(trial.ended_unix_ns for trial in record.trials) - began) / 1e9
    on = datetime.datetime.fromtimestamp(began / 1e9, tz=datetime.UTC)
    kind = "quick" if record.study.get("quick") else "full"
    cases = words.plural(len(report.details), "case")
    took = numbers.duration(took_s)
    return f"A {kind} run of {cases} on {on.day} {on:%B %Y}; {took} from the first trial to the last"


if __name__ == "__main__":
    sys.exit(main())
