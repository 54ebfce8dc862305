"""The record directory: the waist of Loadlens, and the only module that knows its paths.

`run` writes through RunWriter and TrialWriter; everything after reads through `open_run` and nothing else.
The layout is docs/reference/record.md.
"""

from loadlens.store.histograms import IntervalHistogram
from loadlens.store.layout import REPORT_HTML, REPORT_MARKDOWN, SCHEMA_VERSION
from loadlens.store.reading import RunRecord, TrialRecord, latest_run, open_run
from loadlens.store.writing import (
    RunWriter,
    TrialEnd,
    TrialWriter,
    create_run,
    differences,
    new_run_path,
    resume_run,
)

__all__ = [
    "REPORT_HTML",
    "REPORT_MARKDOWN",
    "SCHEMA_VERSION",
    "IntervalHistogram",
    "RunRecord",
    "RunWriter",
    "TrialEnd",
    "TrialRecord",
    "TrialWriter",
    "create_run",
    "differences",
    "latest_run",
    "new_run_path",
    "open_run",
    "resume_run",
]
