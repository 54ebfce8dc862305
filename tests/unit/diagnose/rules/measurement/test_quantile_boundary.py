"""A quantile between two kinds of requests, and one that is merely uncertain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from loadlens.diagnose.rules.measurement.quantile_boundary import assess
from loadlens.model.facts import Facts
from loadlens.model.finding import Absent, Estimate, Finding, Grade, NotAssessed
from loadlens.model.quality import Quality, QuantileWatch, Variation
from tests.unit.diagnose.build import curve, estimate, facts, step

ALIKE = Variation(3, 0.01, 0.0, 0.06, 0.02, 0.2, 1.0, 0.01)
P90 = Estimate("p90", "s", 0.061, 0.045, 0.512, 3, 900, "built")
JUMP = QuantileWatch(0.9, P90, 30.0, estimate(0.044), estimate(0.511), 0.02)


def quoted(*watched: QuantileWatch, varies: Variation | None = ALIKE, **more: Any) -> Facts:
    return facts(curve(step(8, 100.0, 0.08, quality=Quality(quantiles=watched, variation=varies), **more)))


def test_ten_per_cent_of_slow_requests_make_p90_a_boundary() -> None:
    finding = assess(quoted(JUMP))

    assert isinstance(finding, Finding)
    assert finding.grade is Grade.STRONG
    assert finding.statement == "p90 lies between two kinds of requests: 44.0 ms below it, 511 ms above"
    assert finding.advice == "Quote p88 (44.0 ms) and p92 (511 ms) in place of p90."


def test_a_quantile_that_is_known_well_is_none_whatever_its_neighbours() -> None:
    assert isinstance(assess(quoted(replace(JUMP, figure=estimate(0.061)))), Absent)


def test_neighbours_as_uncertain_as_the_quantile_are_few_requests() -> None:
    assert isinstance(assess(quoted(replace(JUMP, upper=estimate(0.511, half=0.3)))), Absent)
    assert isinstance(assess(quoted(replace(JUMP, upper=None))), Absent)


def test_a_long_tail_of_one_kind_has_no_boundary() -> None:
    # Exponential: p98.5 and p99.5 lie at 4.2 and 5.3 means.
    tail = QuantileWatch(0.99, P90, 5.0, estimate(4.2), estimate(5.3), 0.005)

    assert isinstance(assess(quoted(tail)), Absent)


def test_runs_that_differ_or_a_single_run_lower_or_remove_it() -> None:
    assert isinstance(assess(quoted(JUMP, varies=replace(ALIKE, between=0.3))), Absent)
    single = assess(quoted(JUMP, varies=None))
    assert isinstance(single, Finding)
    assert single.grade is Grade.PROBABLE


def test_without_quantiles_it_is_not_assessed() -> None:
    assert isinstance(assess(quoted()), NotAssessed)
