"""Failures of levels that were ended: counted and quoted, and none of them a figure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loadlens.measure import whole_run
from loadlens.model.facts import Curve
from loadlens.model.finding import Estimate
from loadlens.model.trial import TrialStatus
from tests.unit.measure.records import Run, record
from tests.unit.whatif import services

WORDS = "no free connection"
LOST_S = 3.0


def run() -> Run:
    """Return the record of a service that fails with 20 users, and from then on with 5 as well."""

    def service(load: services.Load, _: int) -> services.Trace:
        trace = services.behind_lock(load, hold_s=0.02)
        if load.users == 20 or (load.users == 5 and load.seed % 10 == 2):
            failed = [
                request._replace(done=request.due + LOST_S, status=503) if request.stream == 0 else request
                for request in trace.requests
            ]
            return replace(trace, requests=failed, log=f"{WORDS}\n{WORDS}\n")
        return trace

    made = record(service, users=(1, 5, 20), trials=2)
    for trial in made.trials:
        is_after = trial.case.slug == made.trials[2].case.slug and trial.block == 2
        trial.began_unix_ns, trial.t0_monotonic_ns = 100 if is_after else trial.position, 1
        if is_after or trial.case.slug == made.trials[-1].case.slug:
            trial.status = TrialStatus.ABORTED
    return made


def curve() -> Curve:
    (built,) = whole_run.facts(run()).curves
    return built


def test_failures_of_ended_trials_are_counted_with_their_time_and_words() -> None:
    five, twenty = curve().ended

    assert (five.load, twenty.load) == (5, 20)
    for level in (five, twenty):
        (mode,) = level.failures
        assert (mode.status, mode.count, mode.pile) == (503, level.issued, 1.0)
        assert mode.median_s is not None
        assert abs(mode.median_s - LOST_S) < 1e-6
        sign = level.sign("pool")
        assert sign is not None
        assert sign.sample == WORDS


def test_loads_that_were_served_before_and_are_no_more_are_lost() -> None:
    """Three trials of 1 and 5 users are served; those of 20 are not, and nor is the last one of 5."""
    made = run()
    served = [trial.result.load.requests.ok for trial in made.trials if trial.result and trial.result.load]
    (built,) = whole_run.facts(made).curves

    lost = built.lost
    assert lost is not None
    assert (lost.load, lost.mode.status, lost.mode.pile) == (5, 503, 1.0)
    assert (lost.served, lost.failed) == (sum(served), sum(level.issued for level in built.ended))
    assert lost.sign("pool") is not None


def with_calls(made: Run, since: float | None) -> Run:
    """Add calls to a database: 0.5 at a time while requests are served, from one that an idle service has.

    Args:
        made: The record.
        since: Calls at a time once nothing succeeds; none: they could not be read then.
    """
    for trial in made.trials:
        is_lost = trial.began_unix_ns == 100
        held = since if is_lost else 0.5
        before = 1.0 if held is None or not is_lost else held  # what hangs does so before this trial, too
        for second in range(-1, 31) if held is not None else ():
            under_way = before if second < 0 else 1.0 + (held or 0.0)
            made_calls = 0.0 if is_lost else 10.0 * second
            trial.further_readings += [
                (second * 10**9, "tcp", metric, '{"to": "db:5432"}', "", value)
                for metric, value in (("calls", made_calls), ("calls_under_way", under_way))
            ]
    return made


@pytest.mark.parametrize(("since", "calls"), [(0.0, 0.0), (3.0, 3.0), (None, None)])
def test_calls_under_way_since_then_are_those_beyond_an_idle_service(
    since: float | None, calls: float | None
) -> None:
    made = run()
    made.trials = [trial for trial in made.trials if trial.result is not None]
    later = [trial for trial in made.trials if trial.case.slug == made.trials[-1].case.slug]
    for trial in later:
        trial.began_unix_ns = 100  # those of 20 users, of which none is served
    (built,) = whole_run.facts(with_calls(made, since)).curves

    assert built.lost is not None
    assert built.lost.calls == (None if calls is None else pytest.approx(calls))


def test_nothing_is_lost_where_services_begin_anew_or_serve_later() -> None:
    """The last trial has a start of its own; or another, such as one for stacks, succeeds after it."""
    anew, later = run(), run()
    (last,) = (trial for trial in anew.trials if trial.began_unix_ns == 100)
    last.t0_monotonic_ns = None
    first = later.trials[0]
    later.trials.append(replace(first, case=replace(first.case, slug="stacks"), began_unix_ns=101))

    for made in (anew, later):
        (built,) = whole_run.facts(made).curves
        assert built.lost is None


def test_nothing_is_lost_where_only_loads_fail_that_were_never_served() -> None:
    """Without the last trial of 5 users."""
    made = run()
    made.trials = [trial for trial in made.trials if trial.began_unix_ns != 100]
    (built,) = whole_run.facts(made).curves

    assert built.ended
    assert built.lost is None


def test_a_trial_for_samples_shows_that_a_light_load_fails_as_well() -> None:
    """The search samples threads with one user after it backed off, and tries no lower level."""
    made = run()
    (last,) = (trial for trial in made.trials if trial.began_unix_ns == 100)
    last.case = replace(last.case, slug="stacks-users-5")  # no level of the curve
    (built,) = whole_run.facts(made).curves

    assert built.lost is not None
    assert built.lost.load == 5


def test_ended_trials_give_no_figures() -> None:
    assert [(step.load, step.trials) for step in curve().steps] == [(1, 2), (5, 1)]
    assert not any(step.failures for step in curve().steps)


def test_requests_that_fail_after_the_measured_part_are_in_the_share_that_failed() -> None:
    """Three requests of 5 users are under way at the end, 15 s, and end with 504 up to 10 s later."""

    def gives_up(load: services.Load, _: int) -> services.Trace:
        trace = services.behind_lock(load, hold_s=0.02)
        if load.users != 5:
            return trace
        late = [services.Request(0, 0, 14.0 + number, 24.9 - number, 504, 10.9) for number in (0.1, 0.2, 0.3)]
        early = [request for request in trace.requests if request.done < 14.0]
        return replace(trace, requests=[*early, *late])

    made = record(gives_up, users=(1, 5), trials=1)
    (built,) = whole_run.facts(made).curves
    trace = made.trials[1].trace
    assert trace is not None
    measured = sum(5.0 <= request.done < 14.0 and request.stream == 0 for request in trace.requests)

    assert [step.failed_count for step in built.steps] == [0, 0]
    lightest, five = (step.failed for step in built.steps)
    assert isinstance(lightest, Estimate)
    assert isinstance(five, Estimate)
    assert (lightest.point, five.samples) == (0.0, measured + 3)
    assert five.point == pytest.approx(3 / (measured + 3))
