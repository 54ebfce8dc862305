"""Single requests are read for one trial at a time: what stays of a trial does not grow with them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest

from loadlens.measure import whole_run
from loadlens.measure.requests import samples, slow_paths
from loadlens.measure.requests.kept import AT_ONCE, Requests, counted, step_rows
from loadlens.measure.requests.samples import Rows, _read
from loadlens.measure.source import StepPlan, StreamPlan
from loadlens.model.counters import Counters
from tests.unit.measure.records import record
from tests.unit.whatif.services import Load, Request, Trace

EDGES = np.arange(0.0, 10.25, 0.25)
LOAD = StreamPlan(0, "load", False, False, 1.0, 0.0, "keep", 5.0, (StepPlan(0, "a", "GET", "/a"),))


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Every array that can be reached from a value."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_of(part)
    elif isinstance(value, partial):
        yield from arrays_of([*value.args, *value.keywords.values()])
    elif is_dataclass(value):
        for attribute in fields(value):
            yield from arrays_of(getattr(value, attribute.name))


def answered(requests: int) -> pl.DataFrame:
    """Requests spread over 10 s, of 1, 2 or 5 ms."""
    due = np.linspace(0, 9.9e9, requests).astype(np.int64)
    took = np.resize([1_000_000, 2_000_000, 5_000_000], requests)
    same = np.zeros(requests, dtype=np.int64)
    return pl.DataFrame(
        {"due_ns": due, "done_ns": due + took, "first_ns": due + took, "stream": same, "step": same,
         "outcome": same, "flags": same, "body_bytes": same, "thinned": same}
    )  # fmt: skip


def test_what_is_kept_of_a_trial_does_not_grow_with_its_requests() -> None:
    def kept(requests: int) -> int:
        rows = _read(lambda: [answered(requests)], (LOAD,), Counters(), EDGES)
        assert isinstance(rows, Rows)
        assert rows.steps[0].usual.observed == rows.requests(0).due_s.size == requests
        buckets: object = rows.steps[0].usual.buckets
        return sum(int(array.size) for array in arrays_of(rows) if array is not buckets)

    # three values in each of 40 intervals, whatever the number of requests
    assert kept(40_000) == kept(10_000)


def varied(load: Load, _: int) -> Trace:
    """Users who do not queue; 10 % of their requests take 300 ms in place of 10."""
    rng = np.random.default_rng(load.seed)
    trace = Trace(busy=[[]])
    for stream, users in ((0, load.users), (1, 1)):
        for user in range(users):
            at = 0.05 * user
            while at < load.seconds:
                took = 0.001 if stream else 0.3 if rng.random() < 0.1 else 0.01 * rng.uniform(0.9, 1.1)
                trace.requests.append(Request(stream, 0, at, at + took, 200 if stream else 201, took))
                at += took + (0.05 if stream else load.think_s)
    return trace


class Watched:
    """Columns and requests that are alive, by how many were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read, self.alive, self.most = 0, 0, 0
        for module, name in ((samples, "_columns"), (samples, "_usual")):
            monkeypatch.setattr(module, name, partial(self.made, getattr(module, name)))

    def made(self, make: Any, *given: Any) -> Any:
        result = make(*given)
        self.read, self.alive = self.read + 1, self.alive + 1
        self.most = max(self.most, self.alive)
        weakref.finalize(result, self.gone)
        return result

    def gone(self) -> None:
        self.alive -= 1


def test_the_requests_of_a_trial_are_gone_before_those_of_the_next_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slow_paths, "READ_ONCE", 0)
    run = record(varied, users=(4, 16), trials=3, seconds=9.0)
    watched = Watched(monkeypatch)

    facts = whole_run.facts(run)

    (path,) = facts.curves[0].slow_paths
    assert path.alone is not None  # so that requests were read again
    assert watched.read > 2 * len(run.trials)
    assert watched.most == 2  # the columns of one trial, and the requests of its step
    assert watched.alive == 0


def test_few_requests_of_a_level_are_read_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = record(varied, users=(4, 16), trials=3, seconds=9.0)
    often: list[Any] = []
    once: list[Any] = []
    for room, reads in ((0, often), (1_000_000, once)):
        with monkeypatch.context() as patched:
            patched.setattr(slow_paths, "READ_ONCE", room)
            watched = Watched(patched)
            paths = whole_run.facts(run).curves[0].slow_paths
            reads += [watched.read, paths]

    # columns and requests: when a trial is measured, for its slow ones, and for those that can be followed
    assert (often[0], once[0]) == (3 * 2 * len(run.trials), 2 * 2 * len(run.trials))
    assert often[1] == once[1]


def test_requests_that_are_counted_in_parts_are_counted_as_one() -> None:
    size = 2 * AT_ONCE + 5
    took = np.random.default_rng(3).exponential(0.01, size)
    done = np.sort(np.random.default_rng(4).uniform(0, 10, size))

    whole = counted(done, took, EDGES)
    halves = [counted(part_done, part_took, EDGES) for part_done, part_took in
              zip(np.array_split(done, 40), np.array_split(took, 40), strict=True)]  # fmt: skip

    assert whole.observed == size
    assert np.array_equal(whole.observed_per_interval(), np.histogram(done, EDGES)[0])
    assert np.array_equal(whole.observed_per_interval(), sum(h.observed_per_interval() for h in halves))
    keys = whole.interval * 2**16 + whole.place
    assert (np.diff(keys) > 0).all()  # equal values of an interval share a cell
    width = whole.upper - whole.lower
    assert (width <= whole.lower / 1024 + 1e-9).all()


def test_answers_that_waited_for_an_acknowledgement_keep_their_places() -> None:
    body = np.array([0.001, 0.041, 0.02, 0.044, 0.06])
    none = np.zeros(0)

    kept = step_rows(Requests(np.arange(5.0), body + 0.001, body), counted(none, none, EDGES), 0, EDGES)

    # within 38 to 46.5 ms, or as far outside as that range is wide
    assert (kept.delayed.of, kept.delayed.place.tolist()) == (5, [1, 3])
    assert kept.delayed.body_s.tolist() == [0.041, 0.044]
