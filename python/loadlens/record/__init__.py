"""The record directory: the waist of Loadlens, and the only module that knows its paths.

`run` writes through RunWriter and TrialWriter; everything after reads through `open_run` and nothing else.
The layout is docs/reference/record.md.
"""

from loadlens.record.follow import (
    FollowedEvents,
    FollowedLoad,
    FollowedTrial,
    PlanOfRun,
    Reading,
    bad_samples,
    block_of,
    interrupt_writer,
    live_trial,
    read_plan_of_run,
    sealed_readings,
    sealed_trial,
    writer_of,
)
from loadlens.record.histogram_log import IntervalHistogram
from loadlens.record.layout import REPORT_HTML, REPORT_MARKDOWN, SCHEMA_VERSION, run_id, trial_folders
from loadlens.record.reader import (
    RunRecord,
    TrialRecord,
    is_record,
    latest_run,
    open_run,
    open_trial,
    records_below,
    records_in,
    runs_of,
)
from loadlens.record.traces import Trace
from loadlens.record.writer import (
    Moment,
    RunWriter,
    TrialEnd,
    TrialWriter,
    create_run,
    differences,
    new_run_path,
    refuse_taken,
    report_headline,
    resume_run,
    write_report,
)

__all__ = [
    "REPORT_HTML",
    "REPORT_MARKDOWN",
    "SCHEMA_VERSION",
    "FollowedEvents",
    "FollowedLoad",
    "FollowedTrial",
    "IntervalHistogram",
    "Moment",
    "PlanOfRun",
    "Reading",
    "RunRecord",
    "RunWriter",
    "Trace",
    "TrialEnd",
    "TrialRecord",
    "TrialWriter",
    "bad_samples",
    "block_of",
    "create_run",
    "differences",
    "interrupt_writer",
    "is_record",
    "latest_run",
    "live_trial",
    "new_run_path",
    "open_run",
    "open_trial",
    "read_plan_of_run",
    "records_below",
    "records_in",
    "refuse_taken",
    "report_headline",
    "resume_run",
    "run_id",
    "runs_of",
    "sealed_readings",
    "sealed_trial",
    "trial_folders",
    "write_report",
    "writer_of",
]
