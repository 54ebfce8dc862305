"""A service that traces itself with OpenTelemetry's own SDK: each flaw is found, its twin is not."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from loadlens.diagnose import assess
from loadlens.measure.whole_run import facts
from loadlens.model.facts import Curve, Facts
from loadlens.model.finding import Estimate
from loadlens.record import open_run
from tests.calm import Machine, calmly
from tests.end_to_end.running import run_or_resume

STUDY = Path(__file__).parent / "traced" / "study.yaml"
OF_SPANS = {"calls.one-by-one", "calls.wait-before", "downstream.slow"}
FOUND: dict[str, set[str]] = {
    "rows": {"calls.one-by-one"},
    "join": set(),
    "narrow": {"calls.wait-before"},
    "wide": set(),
    "crowded": {"downstream.slow"},
    "roomy": set(),
}


@dataclass(frozen=True)
class Measurement:
    """A measurement, and why its times do not count; none: nothing disturbed it."""

    facts: Facts
    why_not: str | None


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Measurement:
    with Machine() as machine:
        facts = measured(tmp_path_factory.mktemp("traced"))
    return Measurement(facts, machine.why_not())


@pytest.fixture
def seen(look: Measurement) -> Facts:
    return look.facts


def measured(folder: Path) -> Facts:
    """All paths of the service under one user and under twelve."""
    run_or_resume(STUDY, folder / "record")
    return facts(open_run(folder / "record"))


def curve_of(seen: Facts, path: str) -> Curve:
    return next(curve for curve in seen.curves if curve.label == f"path={path}")


def test_a_flaw_is_found_by_its_spans_and_its_twin_is_silent(look: Measurement, tmp_path: Path) -> None:
    looks = iter([look.facts])

    def check() -> None:
        facts = next(looks, None) or measured(Path(tempfile.mkdtemp(dir=tmp_path)))
        ids = {}
        for path in FOUND:
            verdict = assess(replace(facts, curves=(curve_of(facts, path),)))
            ids[path] = {finding.rule for finding in verdict.findings} & OF_SPANS
        assert ids == FOUND

    calmly(check, why=lambda: look.why_not)


def test_own_times_of_spans_add_up_to_the_time_of_the_request(seen: Facts) -> None:
    for curve in seen.curves:
        for step in curve.steps:
            (kind,) = (kind for kind in step.spans if not kind.name.endswith("/ready"))
            own_s = [part.own.point for part in kind.parts if isinstance(part.own, Estimate)]
            assert isinstance(kind.time, Estimate)
            assert sum(own_s) == pytest.approx(kind.time.point)


def test_a_request_lasts_as_long_for_its_client_as_its_span_and_the_way(
    look: Measurement, tmp_path: Path
) -> None:
    """A slow request on the edge of the measured part counts in one mean alone: then all is measured anew."""
    looks = iter([look.facts])

    def check() -> None:
        for curve in (next(looks, None) or measured(Path(tempfile.mkdtemp(dir=tmp_path)))).curves:
            first = curve.steps[0]
            (kind,) = (kind for kind in first.spans if not kind.name.endswith("/ready"))
            assert isinstance(kind.time, Estimate)
            assert isinstance(first.response.mean, Estimate)
            assert kind.time.point <= first.response.mean.point * 1.05  # spans that came late are left out

    calmly(check, why=lambda: look.why_not)
