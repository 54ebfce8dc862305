"""The record directory: the waist of Loadlens, and the only module that knows its paths.

`run` writes through RunWriter and TrialWriter; everything after reads through `open_run` and nothing else.
The layout is docs/reference/record.md.
"""

from loadlens.record.histogram_log import IntervalHistogram
from loadlens.record.layout import REPORT_HTML, REPORT_MARKDOWN, SCHEMA_VERSION
from loadlens.record.reader import (
    RunRecord,
    TrialRecord,
    is_record,
    latest_run,
    open_run,
    open_trial,
    runs_of,
)
from loadlens.record.writer import (
    Moment,
    RunWriter,
    TrialEnd,
    TrialWriter,
    create_run,
    differences,
    new_run_path,
    resume_run,
    write_report,
)

__all__ = [
    "REPORT_HTML",
    "REPORT_MARKDOWN",
    "SCHEMA_VERSION",
    "IntervalHistogram",
    "Moment",
    "RunRecord",
    "RunWriter",
    "TrialEnd",
    "TrialRecord",
    "TrialWriter",
    "create_run",
    "differences",
    "is_record",
    "latest_run",
    "new_run_path",
    "open_run",
    "open_trial",
    "resume_run",
    "runs_of",
    "write_report",
]
