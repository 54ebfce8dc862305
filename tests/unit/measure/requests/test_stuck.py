"""Requests without an answer, counted by hand from a log: those that are open when the load ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from loadlens.measure.requests.stuck import stuck
from loadlens.model.facts import StuckWatch
from loadlens.model.trial import Outcome

LONGEST_S, END_S = 0.5, 6.0  # of the answers; of the load, 1 s of it warm-up


def watched(*rows: tuple[float, float, Outcome], thinned: int = 0) -> StuckWatch | None:
    """Return what one trial of a level shows; each request: sent, ended, outcome."""
    frame = pl.DataFrame(
        {
            "stream": [0] * len(rows),
            "outcome": [int(outcome) for _, _, outcome in rows],
            "sent_ns": [int(sent * 1e9) for sent, _, _ in rows],
            "done_ns": [int(done * 1e9) for _, done, _ in rows],
            "thinned": [thinned] * len(rows),
        }
    )
    ends = [outcome for _, _, outcome in rows]
    errors = {"timeout": SimpleNamespace(count=1)} if Outcome.TIMEOUT in ends else {}
    result = SimpleNamespace(
        load=SimpleNamespace(
            requests=SimpleNamespace(in_flight=ends.count(Outcome.IN_FLIGHT)),
            errors=errors,
            service_time_s=SimpleNamespace(max=LONGEST_S),
        ),
        warmup_s=1.0,
        measured_s=END_S - 1.0,
    )
    trial = SimpleNamespace(source=SimpleNamespace(result=result, samples=frame.select))
    case: Any = SimpleNamespace(reference=SimpleNamespace(plan=SimpleNamespace(index=0)), usable=[trial])
    return stuck(case)


OTHERS = [(3.0, 3.5, Outcome.OK), (5.0, 5.1, Outcome.OK), (1.0, 1.1, Outcome.OK)]


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (7.0, Outcome.IN_FLIGHT),  # open when the trial ended
        (12.0, Outcome.TIMEOUT),  # ended by our time-out while the last answers were awaited
    ],
)
def test_a_request_that_was_open_when_the_load_ended_is_stuck(end: float, outcome: Outcome) -> None:
    stuck = watched((2.0, end, outcome), *OTHERS)

    assert stuck is not None
    assert (stuck.counts, stuck.longest_s) == ((1,), LONGEST_S)
    assert stuck.age_s == pytest.approx(end - 2.0)
    assert stuck.answered_since == 2


@pytest.mark.parametrize(
    ("sent", "end", "outcome"),
    [
        (1.0, 5.9, Outcome.TIMEOUT),  # its user went on before the end
        (4.6, 6.09, Outcome.IN_FLIGHT),  # 1.49 s: not three times the longest answer
        (6.01, 16.0, Outcome.TIMEOUT),  # sent after the end
        (2.0, 7.0, Outcome.OK),
        (2.0, 7.0, Outcome.RESET),
    ],
)
def test_others_are_not(sent: float, end: float, outcome: Outcome) -> None:
    stuck = watched((sent, end, outcome), *OTHERS)

    assert stuck == StuckWatch((0,), 0.0, LONGEST_S, 0)


def test_each_row_of_a_thinned_log_stands_for_several() -> None:
    stuck = watched((2.0, 7.0, Outcome.IN_FLIGHT), *OTHERS, thinned=2)

    assert stuck is not None
    assert (stuck.counts, stuck.answered_since) == ((4,), 8)
