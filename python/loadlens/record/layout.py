"""Names and versions of everything in a record directory; the page is docs/reference/record.md."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadlens.errors import RecordError

SCHEMA_VERSION = 1
DRIVEN_VERSION = 2  # of trial.json if another program made the load: readers of 1 do not expect null counts
CHANGED_VERSION = 3  # of trial.json if the load was changed while it ran: readers of 2 would use its figures
TRIAL_VERSION = 4  # of trial.json if several machines made the load: readers of 3 would find no rows

STUDY = "study.yaml"
EFFECTIVE = "effective.yaml"
ENVIRONMENT = "environment.json"
EVENTS = "events.jsonl"
TRIALS = "trials"
PREDICTIONS = "predictions"
REPORT_HTML = "report.html"
REPORT_MARKDOWN = "report.md"

TRIAL = "trial.json"
PLAN = "plan.json"
LIVE = "live"
NODES = "nodes"  # a folder for each machine of a fleet
LOGS = "logs"
START = "start.json"
UNSEALED = "unsealed.txt"  # why the trial could not be sealed

SAMPLES_BIN = "samples.bin"
FAILURES_BIN = "failures.bin"  # of a machine of a fleet: its first failed requests, sent under load
CONNECTIONS_BIN = "connections.bin"
READINGS_JSONL = "readings.jsonl"
INTERVALS = "intervals.hlog"
COUNTERS = "counters.jsonl"
OF_ENGINE = (SAMPLES_BIN, CONNECTIONS_BIN, INTERVALS, COUNTERS)  # files that the engine appends to

SAMPLES = "samples.parquet"
CONNECTIONS = "connections.parquet"
READINGS = "readings.parquet"
PROMQL = "promql.json"

PARQUET_VERSION_KEY = "loadlens.schema_version"  # in the file's key-value metadata
HLOG_VERSION_LINE = "#[Loadlens schema_version: {version}]"  # first line of a sealed interval log


def run_id(run: Path) -> str:
    """Name a run by its folder's name and path: folders of one name in two places are two runs."""
    return f"{run.name}-{hashlib.sha256(os.fsencode(run.resolve())).hexdigest()[:8]}"


class NewerRecord(RecordError):
    """The record was written by a later Loadlens."""


def refuse_newer(version: object, path: Path, newest: int = SCHEMA_VERSION) -> None:
    """Raise unless the file's schema version is one that this Loadlens reads, `newest` at most."""
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordError(f"schema_version must be a whole number from 1, got {version!r}", where=str(path))
    if version > newest:
        raise NewerRecord(
            f"schema version {version} is newer than {newest}, the newest that this Loadlens reads",
            where=str(path),
            hint="open it with the Loadlens that wrote it, or a later one",
        )


def version_of(content: Mapping[str, Any], path: Path, newest: int = SCHEMA_VERSION) -> None:
    """Refuse a JSON file without a version, or with a newer one than `newest`."""
    refuse_newer(content.get("schema_version"), path, newest)


def prediction_name(slug: str) -> str:
    """Return the file with the prediction of a case: `predictions/CASE.json`."""
    return f"{PREDICTIONS}/{slug}.json"


def trial_folder_name(block: int, attempt: int) -> str:
    """Return the name of a trial's folder: `block-2`, or `block-2.2` for the second attempt."""
    return f"block-{block}" if attempt == 1 else f"block-{block}.{attempt}"


def trial_folders(run: Path) -> list[Path]:
    """Return the folders of a run's trials, sealed or not; a run that does not exist yet has none."""
    folders = (run / TRIALS).glob("*/*")
    return sorted(path for path in folders if parse_trial_folder_name(path.name) and path.is_dir())


def nodes_in(folder: Path) -> list[str]:
    """Return the names of the machines whose files a trial, or its live folder, holds."""
    nodes = folder / NODES
    return sorted(path.name for path in nodes.iterdir() if path.is_dir()) if nodes.is_dir() else []


def parse_trial_folder_name(name: str) -> tuple[int, int] | None:
    """Return block and attempt of a trial's folder name; None for other names."""
    head, _, rest = name.partition("-")
    block, _, attempt = rest.partition(".")
    if head != "block" or not block.isdecimal() or (attempt and not attempt.isdecimal()):
        return None
    return int(block), int(attempt or 1)
