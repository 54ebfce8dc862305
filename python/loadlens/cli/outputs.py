"""Places for results: `-o DIR` is the record, `--out json=F,csv=F,md=F,junit=F` are files for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens.cli.options import refuse_bytes_in
from loadlens.errors import RecordError, UsageError, nearest

FORMATS: Final = ("json", "csv", "md", "junit")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The folder of the record, if one is kept, and a file for each format asked for."""

    record: Path | None
    files: Mapping[str, Path]

    def write(self, writers: Mapping[str, Callable[[], str]]) -> None:
        """Write each file.

        Raises:
            RecordError: A file cannot be written.
        """
        for name, path in self.files.items():
            try:
                path.write_text(writers[name](), encoding="utf-8")
            except OSError as fault:
                why = (fault.strerror or str(fault)).lower()
                raise RecordError(f"cannot write {path}: {why}", where="--out") from None


def outputs_of(texts: Sequence[str]) -> Outputs:
    """Parse every --out.

    Raises:
        UsageError: A format that does not exist, a file in no folder, or a folder that holds something.
    """
    record: Path | None = None
    files: dict[str, Path] = {}
    for text in texts:
        if "=" not in text:
            if record is not None:
                raise UsageError("two records", where="--out", hint=f"-o {text}, or -o {record}")
            record = Path(text)
            refuse_bytes_in(record, "--out")
            continue
        for part in text.split(","):
            name, equals, file = part.partition("=")
            if name not in FORMATS or not equals or not file:
                near = nearest(name, FORMATS)
                hint = f"{', '.join(f'{each}=FILE' for each in FORMATS)}" if near is None else f"{near}=FILE"
                raise UsageError(f"not a format and its file: {part!r}", where="--out", hint=hint)
            files[name] = Path(file)
    for path in files.values():
        if not path.parent.is_dir():
            raise UsageError(f"no folder {path.parent}", where="--out", hint=f"mkdir -p {path.parent}")
    if record is not None and record.exists() and (not record.is_dir() or any(record.iterdir())):
        raise UsageError(f"{record} already holds something", where="--out", hint="another folder, -o NEW")
    return Outputs(record, files)
