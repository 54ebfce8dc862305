"""Flags of `compare`, and what two versions may be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadlens import units
from loadlens.cli.hit_load import quantity
from loadlens.cli.options import argument, option
from loadlens.cli.outputs import OUTPUTS
from loadlens.errors import UsageError

# Groups of the help, in their order.
VERDICT: Final = "Verdict"
OUTPUT: Final = "Output"


@dataclass(frozen=True, slots=True)
class CompareFlags:
    """The text of each option; `None` if absent and without a default."""

    targets: tuple[str, ...] = argument(
        "A B", "Two records of one study; or one record, and two levels of a factor: FACTOR=LEVEL."
    )
    margin: str = option(
        "--margin SHARE",
        "Take changes below SHARE as no change. Default: 3%. Example: --margin 5%",
        default="3%",
        group=VERDICT,
    )
    page: Path | None = option(
        "--page FILE", "Write the picture and the table as an HTML page to FILE.", group=OUTPUT
    )
    out: tuple[str, ...] = option(*OUTPUTS, group=OUTPUT)
    as_json: bool = option(
        "--json", "Print the answer as JSON (docs/reference/compare-json.md).", group=OUTPUT
    )
    quiet: bool = option("-q --quiet", "Print only the verdict.", group=OUTPUT)


def margin_of(text: str) -> float:
    """Parse --margin: `3%` or `0.03`.

    Raises:
        UsageError: It is no share between 0 and 1.
    """
    margin = quantity(units.share, text, "--margin")
    if margin <= 0:
        raise UsageError("two versions are never exactly equal", where="--margin", hint="--margin 1%")
    return margin


def is_record_text(text: str) -> bool:
    """True if a target is meant as a record: no level of a factor, no URL."""
    return "://" not in text and ("=" not in text or Path(text).exists())
