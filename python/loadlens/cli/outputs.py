"""Places for results: `-o DIR` is the record, `--out FORMAT=FILE|URL` are files and systems."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from loadlens import named_pipes, temporary
from loadlens.cli.options import refuse_bytes_in
from loadlens.errors import ExitCode, RecordError, UsageError, joined, nearest, reason_of

if TYPE_CHECKING:
    from loadlens.export.deliver import Export
    from loadlens.report.write.result import Result

FORMATS: Final = ("json", "csv", "md", "junit", "smaller", "bigger", "bencher")
SENT: Final = ("prometheus", "otlp", "influx", "parquet")  # made of the record, by `export`
# Endings of file names that other tools take after -o, and the format that is meant.
ENDINGS: Final = {".json": "json", ".csv": "csv", ".md": "md", ".xml": "junit"}
FILES: Final = ", ".join(f"{name}=FILE" for name in FORMATS)
PLACES: Final = f"{FILES}, parquet=FILE, prometheus=:9464, otlp=URL, influx=URL"
ABOUT_FILES: Final = (
    "json, csv, md, junit (one test per objective), smaller and bigger (github-action-benchmark), bencher, "
    "parquet (a row per request); or to other systems: prometheus=:PORT|URL, otlp=URL, influx=URL|FILE"
)
OUTPUTS: Final = (
    "-o --out DIR|FORMAT=FILE",
    (
        f"Write the record to DIR, a new folder; or the result to files: {ABOUT_FILES}. Repeatable. "
        "Example: -o run1, --out json=run1.json,junit=run1.xml"
    ),
    (),
)


@dataclass(frozen=True, slots=True)
class Outputs:
    """The folder of the record, if one is kept, and a file for each format asked for."""

    record: Path | None
    files: Mapping[str, Path]
    export: Export | None = None  # what is made of the record, while it is written or afterwards
    sent: tuple[str, ...] = ()  # the same as given: `otlp=http://...`
    _scratch: ExitStack = field(default_factory=ExitStack, compare=False)

    def record_of(self, name: str) -> Path | None:
        """Return the folder of the record: --out, a temporary one if an export reads it, or none."""
        return self.record if self.export is None else self.folder(name, self._scratch)

    @property
    def places(self) -> tuple[str, ...]:
        """Everything but the record, as it can be given to --out."""
        return (*(f"{name}={file}" for name, file in self.files.items()), *self.sent)

    def end_exports(self) -> None:
        """Export what is left of a run that has no result."""
        if self.export is not None:
            self.export.finish(None)

    def of(self, run: Path) -> None:
        """Set the run that exports read, if it is complete already."""
        if self.export is not None:
            self.export.of(run)

    @contextmanager
    def exporting(self, run: Path | None) -> Iterator[None]:
        """Export what is written to a run's folder meanwhile."""
        if self.export is None or run is None:
            yield
            return
        with self.export.following(run):
            yield

    def folder(self, name: str, stack: ExitStack) -> Path:
        """Return the folder of the record: --out, or a temporary one that goes with the stack."""
        if self.record is not None:
            return self.record
        unique = f"{name}-{secrets.token_hex(4)}"  # it marks processes: no other run may be called so
        folder = stack.enter_context(temporary.folder(unique)) / unique
        refuse_bytes_in(folder, "TMPDIR")
        return folder

    def write(self, as_json: Callable[[], str], result: Callable[[], Result]) -> None:
        """Write each file, and end the exports; what fails keeps nothing from the others.

        Args:
            as_json: Returns what --json prints.
            result: Returns the result for the other formats.

        Raises:
            RecordError: A file cannot be written.
        """
        with self._scratch:
            faults = self._write_files(as_json, result)
            if self.export is not None:
                try:
                    self.export.finish(result())
                except RecordError as fault:
                    faults.append(fault)
        if faults:
            raise joined(faults)

    def _write_files(self, as_json: Callable[[], str], result: Callable[[], Result]) -> list[RecordError]:
        """Write each file, and return why some could not be."""
        if not self.files:
            return []
        from loadlens.report.write import benchmarks
        from loadlens.report.write.result import as_csv, as_junit, as_markdown

        writers = {
            "csv": as_csv,
            "md": as_markdown,
            "junit": as_junit,
            "smaller": benchmarks.as_smaller_is_better,
            "bigger": benchmarks.as_bigger_is_better,
            "bencher": benchmarks.as_bencher,
        }
        faults = []
        for name, path in self.files.items():
            text = f"{as_json()}\n" if name == "json" else writers[name](result())
            try:
                named_pipes.write(path, text)
            except OSError as fault:
                faults.append(RecordError(f"cannot write {path}: {reason_of(fault)}", where="--out"))
        return faults


@dataclass(frozen=True, slots=True)
class Received:
    """The answer of a verb that Python called."""

    content: object  # an Explanation, a Comparison or a Report
    as_json: Callable[[], str]
    result: Result
    record: Path | None


_RECEIVED: Final[ContextVar[list[Received] | None]] = ContextVar("received", default=None)


@contextmanager
def received() -> Iterator[list[Received]]:
    """Hand the answers of verbs that are called meanwhile to the caller, in place of the terminal."""
    answers: list[Received] = []
    token = _RECEIVED.set(answers)
    try:
        yield answers
    finally:
        _RECEIVED.reset(token)


@dataclass(frozen=True, slots=True)
class Show:
    """Forms of the answer of a verb: text, brief text or JSON, and files."""

    outputs: Outputs
    as_json: bool
    quiet: bool
    ui: bool = False  # also a page in the browser while it runs
    page: Path | None = None  # the file of --page

    @property
    def is_silent(self) -> bool:
        """True if nothing may be printed before the answer."""
        return self.as_json or self.quiet

    @property
    def is_kept(self) -> bool:
        """True if the record outlives the answer."""
        return self.outputs.record is not None

    def answer(
        self,
        content: object,
        as_json: Callable[[], str],
        printed: Callable[[], None],
        result: Callable[[], Result],
        *,
        is_missed: bool,
        page: Callable[[], str] | None = None,
    ) -> ExitCode:
        """Show an answer, write its files and its page, and return the exit code of its objectives."""
        try:
            if (answers := _RECEIVED.get()) is not None:
                answers.append(Received(content, as_json, result(), self.outputs.record))
            elif self.as_json:
                print(as_json())
            else:
                printed()
            self.outputs.write(as_json, result)
        finally:  # a file that cannot be written keeps no other from being written
            if self.page is not None and page is not None:
                _write_page(self.page, page())
        return ExitCode.OBJECTIVE if is_missed else ExitCode.OK


def _write_page(path: Path, page: str) -> None:
    """Write the file of --page.

    Raises:
        RecordError: It cannot be written.
    """
    try:
        named_pipes.write(path, page)
    except OSError as fault:
        why = reason_of(fault)
        raise RecordError(f"cannot write {path}: {why}", where="--page") from None


def outputs_of(
    texts: Sequence[str], *, may_hold: bool = False, instead: str = "another folder, -o NEW"
) -> Outputs:
    """Parse every --out.

    Args:
        texts: As given.
        may_hold: The folder may hold something, such as a record to continue.
        instead: What to try where it may not.

    Raises:
        UsageError: A format that does not exist, a file in no folder, or a folder that holds something or
            cannot be made.
    """
    record: Path | None = None
    files: dict[str, Path] = {}
    sent: list[str] = []
    for text in texts:
        if not text:
            raise UsageError("an empty name", where="--out", hint="-o DIR, a new folder")
        if text == "-":
            raise UsageError("a record is a folder", where="--out -", hint="--json, which prints the result")
        if "=" not in text and text not in (*FORMATS, *SENT):
            if record is not None:
                raise UsageError("two records", where="--out", hint=f"-o {text}, or -o {record}")
            record = Path(text)
            refuse_bytes_in(record, "--out")
            continue
        for part in text.split(","):
            name, equals, file = part.partition("=")
            if name in SENT and file:
                sent.append(part)
                continue
            if name not in FORMATS or not equals or not file:
                formats = (*FORMATS, *SENT)
                near = nearest(name, formats) if name[:1] in {each[0] for each in formats} else None
                meant = name if name in formats else near
                hint = PLACES if meant is None else f"{meant}=FILE"
                raise UsageError(f"not a format and its file: {part!r}", where="--out", hint=hint)
            if name in files:
                raise UsageError(
                    f"two files of one format: {name}",
                    where="--out",
                    hint=f"cp {files[name]} {file}, afterwards",
                )
            files[name] = Path(file)
    for path in files.values():
        if not path.parent.is_dir():
            raise UsageError(f"no folder {path.parent}", where="--out", hint=f"mkdir -p {path.parent}")
        if path.is_dir():
            raise UsageError(f"{path} is a folder", where="--out", hint=f"a file, such as {path}/result")
    if record is not None:
        _refuse_record(record, None if may_hold else instead)
    return Outputs(record, files, _export_of(sent), tuple(sent))


def _export_of(sent: Sequence[str]) -> Export | None:
    """Open the destinations of exports.

    Raises:
        UsageError: One that cannot be used, or packages are missing.
    """
    if not sent:
        return None
    from loadlens.cli.lab import demand

    demand(f"--out {sent[0].partition('=')[0]}", draws=False)
    from loadlens.export.deliver import Export, sink_of

    parts = (text.partition("=") for text in sent)
    return Export([sink_of(kind, place, _say) for kind, _, place in parts])


def _say(words: str) -> None:
    sys.stderr.write(f"loadlens: {words}\n")


def _refuse_record(record: Path, instead: str | None) -> None:
    """Refuse a folder for the record that cannot be made, before anything starts."""
    if record.suffix.lower() in ENDINGS and not record.exists():
        hint = f"--out {ENDINGS[record.suffix.lower()]}={record}"
        raise UsageError(f"-o takes the folder of the record, not a file: {record}", hint=hint)
    if instead is not None and record.exists() and (not record.is_dir() or any(record.iterdir())):
        raise UsageError(f"{record} already holds something", where="--out", hint=instead)
    try:
        place = record.absolute()
    except FileNotFoundError:
        hint = "cd to a folder that is there, or an absolute -o DIR"
        raise UsageError("the working directory is gone", where="--out", hint=hint) from None
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    if not there.is_dir():
        raise UsageError(f"{there} is a file", where="--out", hint="another folder, -o NEW")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"{there} cannot be written to", where="--out", hint="another folder, -o NEW")
