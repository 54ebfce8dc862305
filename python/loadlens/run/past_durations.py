"""Durations of earlier runs of a study on this machine: the best estimate for the next run."""

from __future__ import annotations

from pathlib import Path

from loadlens import record
from loadlens.errors import RecordError
from loadlens.model.trial import TrialStatus
from loadlens.study.plan import PastTrial

MOST_RUNS = 5  # older runs may be of another study with the same name, or of another machine


def seen(runs: Path, study: str) -> tuple[PastTrial, ...]:
    """Return the complete trials of a study's last runs under a folder; unreadable records are skipped."""
    past: list[PastTrial] = []
    for path in record.runs_of(runs, study)[:MOST_RUNS]:
        try:
            trials = record.open_run(path).trials
        except RecordError:
            continue
        past += [done for trial in trials if (done := _of(trial)) is not None]
    return tuple(past)


def _of(trial: record.TrialRecord) -> PastTrial | None:
    result = trial.result
    if trial.status is not TrialStatus.COMPLETE or result is None or result.load_s <= 0:
        return None
    if result.external is not None:  # no external tool reports how many requests it sent
        issued = result.external.requests.ended
    else:
        issued = sum(stream.requests.issued for stream in result.streams if stream.role == "load")
    load_s = result.load_s
    took_s = (trial.ended_unix_ns - trial.began_unix_ns) / 1e9
    case = trial.case
    return PastTrial(case.slug, case.experiment, issued / load_s, max(0.0, took_s - load_s))
