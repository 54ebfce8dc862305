"""Sizes of answers as expected, to a quarter of an octave, as the engine keeps a body of each.

Under load, answers of sizes that the lightest level lacks are others, though their status is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loadlens.estimate.interval import Floats, Ints
from loadlens.model.result import UsualAnswer
from loadlens.model.shapes import AnswerSize
from loadlens.present.quotes import quote

LARGEST_CLASS = 63
SMALLEST_BYTES = 4


@dataclass(frozen=True, slots=True)
class SizeRows:
    """Answers of one step of a trial whose sizes are of one class."""

    size_class: int
    count: int
    least_bytes: int
    most_bytes: int
    took_s: float  # all together


def size_class(body_bytes: Ints) -> Ints:
    """Return the class of each size: four to an octave, 0 for up to 4 bytes, 63 from 224 KiB on."""
    size = np.maximum(body_bytes.astype(np.int64), SMALLEST_BYTES)
    octave = np.frexp(size.astype(np.float64))[1].astype(np.int64) - 1
    quarter = (size >> (octave - 2)) & 3
    return np.asarray(np.minimum(4 * (octave - 2) + quarter, LARGEST_CLASS), dtype=np.int64)


def by_class(body_bytes: Ints, took_s: Floats) -> tuple[SizeRows, ...]:
    """Return the classes of some answers, ascending; both of shape (requests,)."""
    classes = size_class(body_bytes)
    counts = np.bincount(classes)
    sums = np.bincount(classes, weights=took_s)
    rows = []
    for each in np.flatnonzero(counts):
        own = body_bytes[classes == each]
        rows.append(SizeRows(int(each), int(counts[each]), int(own.min()), int(own.max()), float(sums[each])))
    return tuple(rows)


def together(
    trials: Sequence[Sequence[SizeRows]], kept: Sequence[UsualAnswer] = ()
) -> tuple[AnswerSize, ...]:
    """Return the sizes of the answers of one class of requests over the trials of a level, ascending.

    Args:
        trials: Sizes in each trial.
        kept: Beginnings of such answers.
    """
    every: dict[int, list[SizeRows]] = {}
    for rows in trials:
        for row in rows:
            every.setdefault(row.size_class, []).append(row)
    bodies: dict[int, str] = {}
    for answer in kept:
        place = int(size_class(np.array([answer.body_bytes]))[0])
        bodies.setdefault(place, quote(answer.body))
    return tuple(
        AnswerSize(
            size_class=place,
            count=sum(row.count for row in rows),
            least_bytes=min(row.least_bytes for row in rows),
            most_bytes=max(row.most_bytes for row in rows),
            mean_s=sum(row.took_s for row in rows) / sum(row.count for row in rows),
            body=bodies.get(place, ""),
        )
        for place, rows in sorted(every.items())
    )
