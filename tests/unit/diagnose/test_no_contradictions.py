"""Whatever the facts are, no answer contradicts them: random services, most of which cannot exist."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from loadlens import diagnose
from loadlens.estimate.interval import Insufficient
from loadlens.measure.curve import capacity_of, completed
from loadlens.measure.other_answers import first_cheaper
from loadlens.model.facts import ConcurrencyLimit, Curve, FailureMode, Gauge, LabelSplit, StuckWatch
from loadlens.model.finding import Estimate, Finding, Grade
from loadlens.model.shapes import AnswerSize, FailedAtOnce
from tests.unit.diagnose.build import curve, estimate, facts, probe, process, step
from tests.unit.diagnose.parts import hill, hills, one_full, part

EXAMPLES = 300
CORES = 4
USERS = (1, 2, 4, 8, 16, 32)


@st.composite
def places(draw: st.DrawFn) -> tuple[ConcurrencyLimit, ...]:
    """Draw what gauges and stacks show of threads, locks and pools."""
    drawn = []
    for _ in range(draw(st.integers(0, 2))):
        held, waiting, bound = (
            Gauge(name, estimate(draw(st.floats(0, 64)), unit="threads", trials=1), 64.0)
            for name in ("held", "waiting", "bound")
        )
        kinds: list[Literal["threads", "lock", "pool", "unknown"]] = ["threads", "lock", "pool", "unknown"]
        sources: list[Literal["gauges", "stacks"]] = ["gauges", "stacks"]
        kind, source = draw(st.sampled_from(kinds)), draw(st.sampled_from(sources))
        drawn.append(ConcurrencyLimit(kind, held, waiting, bound, seen_in=source))
    return tuple(drawn)


@st.composite
def splits(draw: st.DrawFn, rate: float) -> tuple[LabelSplit, ...]:
    """Draw what a metric counts by the values of a label, with times or without."""
    if draw(st.booleans()):
        return ()
    is_timed, values = draw(st.booleans()), "abcd"[: draw(st.integers(2, 4))]
    return (
        LabelSplit(
            "calls",
            "shard",
            tuple(
                part(value, rate * draw(st.floats(0, 1.5)), draw(st.floats(1e-4, 10)) if is_timed else None)
                for value in values
            ),
        ),
    )


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    """Draw levels whose rates, times, failures, probes and CPU have nothing to do with each other."""
    trials = draw(st.sampled_from([1, 3]))
    steps, failed = [], []
    for users in USERS[: draw(st.integers(1, len(USERS)))]:
        rate, response = draw(st.floats(0.5, 5_000)), draw(st.floats(1e-4, 10))
        built = step(users, rate, response, trials=trials)
        assert built.issued is not None
        status = draw(st.sampled_from([0, 429, 500, 503]))
        count = round(draw(st.sampled_from([0.0, 0.001, 0.05, 0.5, 0.92])) * built.issued)
        mode = FailureMode(
            "b", "unexpected_status" if status else "timeout", status, count, response, 0.9, response
        )
        share = count / built.issued if built.issued else 0.0
        if count:
            served = draw(st.integers(0, 9))
            failed.append(
                FailedAtOnce(
                    users,
                    mode.outcome,
                    status,
                    count,
                    built.issued - count,
                    draw(st.floats(1e-4, 1)),
                    draw(st.floats(1e-3, 1)),
                    served,
                    draw(st.floats(0, 1)),
                    (float(served),) * trials,
                    draw(st.floats(0, 1)),
                )
            )
        sizes = draw(st.sampled_from([(), (36,), (6, 36), (50,)]))
        answers = tuple(
            AnswerSize(place, draw(st.integers(1, 500)), place, place, draw(st.floats(1e-4, 10)))
            for place in sizes
        )
        steps.append(
            replace(
                built,
                classes=tuple(replace(each, answers=answers) for each in built.classes),
                failures=(mode,) if count else (),
                failed=Estimate("f", "share", share, share, share, trials, built.issued, "drawn"),
                failed_count=count,
                statuses=((200, built.issued - count), (status, count)) if status else ((200, built.issued),),
                processes=(
                    process(
                        draw(st.floats(0, CORES)), waiting=draw(st.floats(0, 9)), hot=draw(st.integers(0, 9))
                    ),
                ),
                probes=(probe(draw(st.floats(1e-3, 1)), delayed=draw(st.floats(0, 1))),),
                places=draw(places()),
                splits=draw(splits(rate)),
                host_cpu=estimate(draw(st.floats(0.1, CORES)), unit="cores"),
                stuck=StuckWatch(
                    (draw(st.integers(0, 2)),) * trials, 2.0, response, draw(st.integers(0, 99))
                ),
            )
        )
    work = estimate(draw(st.floats(1e-4, 0.5)), trials=trials)
    levels = tuple(
        hill(level.load, draw(st.floats(0.005, 0.99)), quick_s * draw(st.floats(3, 50)), quick_s)
        for level in steps
        if draw(st.booleans()) and (quick_s := draw(st.floats(1e-4, 1)))
    )
    slow = (replace(hills(), levels=levels, parted=levels),) if levels else ()
    return curve(*steps, work=work, think=0.0, failed=tuple(failed), slow_paths=slow)


@st.composite
def in_parts(draw: st.DrawFn) -> Curve:
    """Draw a service of which one part is full, next to places and probes that have nothing to do with it."""
    share, labels = draw(st.floats(0.01, 0.9)), draw(st.booleans())
    built = one_full(labels=labels, timed=draw(st.booleans()), times=draw(st.booleans()), share=share)
    steps = tuple(
        replace(
            level,
            places=draw(places()),
            probes=(probe(draw(st.floats(1e-3, 1)), delayed=draw(st.floats(0, 1))),),
            splits=(*level.splits, *draw(splits(level.throughput_trials[0]))),
        )
        for level in built.steps
    )
    return replace(built, steps=steps)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(st.one_of(curves(), in_parts()))
def test_no_finding_contradicts_what_was_measured(built: Curve) -> None:
    verdict = diagnose.assess(facts(built, cores=CORES))
    by_rule = {finding.rule: finding for finding in verdict.findings}
    most_failed = max(level.failed_count / (level.issued or 1) for level in built.steps)

    for finding in verdict.findings:
        assert 0 <= finding.impact <= 1, finding
        assert not re.match(r"0(?:\.0+)? %", finding.statement), finding.statement
        assert not re.search(r"undecided|not measured", finding.statement), finding.statement
        assert_shares_are_shares(finding)
    if diagnose.HEALTHY in by_rule:
        assert most_failed <= 0.01, f"healthy, and {most_failed:.0%} of a level fail"
    if (limit := by_rule.get("requests.in-flight-limit")) is not None:
        room = int(limit.statement.split()[0])
        assert all(level.failed_count <= 0.001 * (level.issued or 1) for level in built.steps[:1] if room)
        assert room < max(level.load for level in built.steps), limit.statement
    if first_cheaper(built) is not None:
        assert "answers.changed" in by_rule
        # Nothing is extrapolated across a change of the answers.
        assert {diagnose.HEALTHY, "saturation.plateau"}.isdisjoint(by_rule)
        assert isinstance(capacity_of(built), Insufficient)
    saturated = by_rule.get("cpu.saturated")
    if saturated is not None and "CPU per request" in saturated.statement:
        top = built.steps[-1]
        assert isinstance(built.work, Estimate)
        assert completed(top) * built.work.point <= 1.2 * CORES, saturated.statement
    if (full := by_rule.get("part.full")) is not None:
        assert_part_has_room_beside(full)
        assert "downstream.serialised" not in by_rule or full.grade is Grade.SUSPECTED
    capacity = capacity_of(built)
    if hasattr(capacity, "saturation"):
        rates = [sum(level.throughput_trials) / len(level.throughput_trials) for level in built.steps]
        assert capacity.saturation.capacity >= 0.5 * max(rates)


def assert_part_has_room_beside(finding: Finding) -> None:
    """A full part has a share of the requests and of the waiting, and never all of the requests."""
    values = {evidence.signal: evidence.value or 0.0 for evidence in finding.evidence}
    assert 0 < values["part.share"] <= 0.8
    assert 0 < values["part.waiting"] <= 1


def assert_shares_are_shares(finding: Finding) -> None:
    """No share that a finding states as evidence is above 1."""
    for evidence in finding.evidence:
        for number in re.findall(r"(\d[\d,.]*) %", evidence.text):
            is_of_use = "limit" not in evidence.text.partition(number)[0][-8:]
            if evidence.passed and is_of_use and " used" in evidence.chip:
                assert float(number.replace(",", "")) <= 100, evidence.text
