"""Samples of the stacks of threads, read back from the readings of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from loadlens.model.readings import StacksMetrics
from loadlens.model.stacks import (
    Frame,
    SamplingFailure,
    SourceLine,
    Stack,
    StackSamples,
    ThreadSample,
    Wait,
)
from loadlens.signals.read.trial_series import rows_of

if TYPE_CHECKING:
    import polars as pl


def read(table: pl.DataFrame, *, load: float, is_closed: bool, begin_s: float, end_s: float) -> StackSamples:
    """Return the samples of a trial.

    Args:
        table: Its readings.
        load: Users, or offered requests per second.
        is_closed: True for users.
        begin_s: Of the measured part, seconds since t0.
        end_s: Of it.
    """
    stacks = {labels.id: _stack(labels.frames) for _, labels, _ in rows_of(table, StacksMetrics.stack_frames)}
    samples = tuple(
        ThreadSample(
            time_s=time_ns / 1e9,
            pid=int(labels.pid),
            process=labels.process,
            tid=int(labels.tid),
            thread=labels.thread,
            is_running=value > 0,
            wait=cast("Wait", labels.wait),
            stack=stacks.get(labels.stack, ()),
            to=labels.to,
        )
        for time_ns, labels, value in rows_of(table, StacksMetrics.thread_sample)
    )
    lines = tuple(
        SourceLine(labels.file, int(labels.line), labels.text)
        for _, labels, _ in rows_of(table, StacksMetrics.source_line)
    )
    failures = tuple(
        SamplingFailure(labels.process, labels.why, round(value))
        for _, labels, value in rows_of(table, StacksMetrics.stack_failures)
    )
    settings = tuple(
        SourceLine(labels.file, int(labels.line), labels.text)
        for _, labels, _ in rows_of(table, StacksMetrics.setting_line)
    )
    return StackSamples(load, is_closed, begin_s, end_s, samples, lines, failures, _cores(table), settings)


def _stack(text: str) -> Stack:
    return tuple(Frame.of(line) for line in text.split("\n") if line)


def _cores(table: pl.DataFrame) -> float | None:
    """Return the CPU time of the sampling per second, from its first to its last reading."""
    rows = [(time_ns, value) for time_ns, _, value in rows_of(table, StacksMetrics.sampling_cpu_s)]
    if len(rows) < 2 or rows[-1][0] <= rows[0][0]:
        return None
    return (rows[-1][1] - rows[0][1]) / ((rows[-1][0] - rows[0][0]) / 1e9)
