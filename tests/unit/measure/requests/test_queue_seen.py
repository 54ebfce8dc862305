"""Requests in flight when a probe arrives: counted by hand, and over services whose queues are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

from loadlens.measure import whole_run
from loadlens.measure.requests.queue_seen import met
from loadlens.model.facts import AheadWatch
from loadlens.model.finding import Estimate, Undecided
from tests.unit.measure.records import Trial, record
from tests.unit.whatif import services

S = 1_000_000_000
LOAD, PROBE = 0, 1


def log(*rows: tuple[int, float, float, float, int]) -> Callable[[Sequence[str]], list[pl.DataFrame]]:
    """(stream, due, sent, done, outcome) in seconds; -1: never. Read in two parts."""

    def ns(seconds: float) -> int:
        return -1 if seconds < 0 else round(seconds * S)

    table = [(stream, ns(due), ns(sent), ns(done), outcome) for stream, due, sent, done, outcome in rows]
    names = ["stream", "due_ns", "sent_ns", "done_ns", "outcome"]
    whole = pl.DataFrame(table, schema=names, orient="row").with_columns(thinned=pl.lit(0))
    return lambda columns: list(whole.select(columns).iter_slices(whole.height // 2 + 1))


WORK = (
    (LOAD, 0.0, 0.0, 3.0, 0),
    (LOAD, 0.5, 1.5, 2.0, 0),  # due before it was sent
    (LOAD, 1.0, 1.0, -1.0, 30),  # still under way at the end
    (LOAD, 1.0, -1.0, -1.0, 31),  # never sent
    (LOAD, 2.5, 2.5, 4.0, 1),  # an error is under way as well
)


def test_what_was_sent_before_and_is_not_done_is_ahead() -> None:
    probes = ((PROBE, t, t, t + 0.25, 0) for t in (0.25, 1.25, 1.75, 2.25, 3.5, 5.0))

    queue = met(log(*WORK, *probes), LOAD, PROBE, 0.0, 10.0)

    assert queue is not None
    # the first; and the one that never ends; and the second; without it; that and the last; that alone
    assert queue.ahead.tolist() == [1, 2, 3, 2, 2, 1]
    assert queue.took_s.tolist() == pytest.approx([0.25] * 6)


def test_probes_outside_the_measured_part_or_without_an_answer_are_left_out() -> None:
    probes = (
        (PROBE, 0.5, 0.5, 0.6, 0),
        (PROBE, 1.5, 1.5, 1.6, 0),
        (PROBE, 1.6, 1.6, 1.7, 19),
        (PROBE, 2.6, 2.6, 2.7, 0),
    )

    queue = met(log(*WORK, *probes), LOAD, PROBE, 1.0, 2.0)

    assert queue is not None
    assert queue.ahead.tolist() == [3]
    assert met(log(*WORK, *probes), LOAD, PROBE, 6.0, 9.0) is None


def watched(service: Any, **more: Any) -> AheadWatch | None:
    run = record(service, trials=1, seconds=30.0, users=(1, 5, 10), **more)
    return whole_run.facts(run).curves[0].ahead


def test_behind_one_line_each_request_ahead_adds_its_work() -> None:
    queue = watched(lambda load, _: services.blocking_loop(load, work_s=0.2))

    assert queue is not None
    assert isinstance(queue.slope, Estimate)
    assert queue.slope.point == pytest.approx(0.2, rel=0.15)
    assert (queue.explained or 0.0) > 0.8
    assert queue.probes >= 500


def test_threads_that_share_cores_fairly_add_next_to_nothing() -> None:
    queue = watched(lambda load, _: services.fair_threads(load, work_s=0.2))

    assert queue is not None
    assert isinstance(queue.slope, Estimate)
    assert queue.slope.point < 0.25 * 0.2


def test_a_lock_that_probes_do_not_need_adds_nothing() -> None:
    queue = watched(lambda load, _: services.behind_lock(load, hold_s=0.2))

    assert queue is not None
    assert isinstance(queue.slope, Estimate)
    assert abs(queue.slope.point) < 0.002


def test_few_probes_and_a_thinned_log_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def service(load: services.Load, _: int) -> services.Trace:
        return services.blocking_loop(load)

    few = whole_run.facts(record(service, trials=1, seconds=5.0)).curves[0].ahead
    assert few is not None
    assert isinstance(few.slope, Undecided)
    assert "needs 500" in few.slope.reason

    whole = Trial.samples
    monkeypatch.setattr(
        Trial, "samples", lambda self, columns: whole(self, columns).with_columns(thinned=pl.lit(1))
    )
    assert watched(service) is None
