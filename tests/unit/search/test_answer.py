"""The answer's words and figures, from facts made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadlens import diagnose
from loadlens.model.explanation import Explanation
from loadlens.model.facts import CallsWatch, Curve, Facts, Gate, Gauge
from loadlens.model.finding import Estimate, Finding, Grade, NotMeasured, Undecided
from loadlens.model.search import Bounds
from loadlens.model.shapes import AnswerSize
from loadlens.present import numbers
from loadlens.search import answer
from loadlens.whatif import diagnosis, remedies
from loadlens.whatif.diagnosis import Diagnosis
from tests.unit.diagnose import build
from tests.unit.search.services import (
    Searched,
    Service,
    endless,
    limited,
    one_server,
    pool,
    search,
    several_servers,
)

STUDY = {
    "name": "explain",
    "seed": 7,
    "cases": [
        {
            "slug": "ladder-users-1",
            "entry": {"url": "http://127.0.0.1:8080"},
            "services": [],
            "outside": {"name": "service", "host": "127.0.0.1", "scrape": None},
            "scenarios": [
                {"name": "b", "weight": 1, "steps": [{"name": "b", "method": "POST", "path": "/b"}]}
            ],
            "workload": {"kind": "closed", "users": 1},
            "connection": {},
        }
    ],
}
TOLD = {
    "event": "explained",
    "because": "saturated",
    "words": "the last doubling of the load gave 0 %",
    "budget_s": 90.0,
    "used_s": 61.5,
    "rate_cap_per_s": 20_000.0,
    "most_users": 1024,
    "probe": {"name": "/ok", "path": "/ok", "is_load": False},
    "cautions": ["2 cores: other programs"],
}


def explained(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, *, study: dict[str, Any] = STUDY, **told: Any
) -> Explanation:
    """The answer to these facts, as if they had been read from a record."""
    seen = Diagnosis(facts, remedies.with_predictions(facts, diagnose.assess(facts)), ())
    monkeypatch.setattr(diagnosis, "diagnosis_of", lambda _: seen)
    record: Any = SimpleNamespace(
        events=lambda _: [TOLD | told], study=study, trials=(), path=Path("/records/one")
    )
    return answer.explanation(record)


def plateau(rate: float = 100.0, *, trials: int = 1, upto: int = 8, **more: Any) -> Curve:
    """One server with D = 1 / rate: full from one user on."""
    steps = []
    users = 1
    while users <= upto:
        steps.append(build.step(users, rate, users / rate, trials=trials, **more))
        users *= 2
    return build.curve(*steps, think=0.0, label="ladder")


def growing(upto: int = 8) -> Curve:
    steps = [build.step(n, n / 0.05, 0.05, trials=1) for n in (1, 2, 4, 8, 16, 32) if n <= upto]
    return build.curve(*steps, think=0.0, label="ladder")


# --- capacity ----------------------------------------------------------------------------------------------


def test_the_capacity_is_taken_over_all_trials_beyond_the_knee() -> None:
    curve = plateau()
    rates = (98.0, 101.0, 100.0, 103.0)  # 98 is at the knee of one user
    steps = tuple(replace(s, throughput_trials=(r,)) for s, r in zip(curve.steps, rates, strict=True))

    reach = answer.reach_of(replace(curve, steps=steps))

    # By hand: t on logs of the three trials; the last doubling brought 3 % more.
    logs = np.log(rates[1:])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / 3**0.5
    assert isinstance(reach.capacity, Estimate)
    point = np.exp(logs.mean())
    ends = np.exp(logs.mean() + np.array([-half, half]))
    below, above = np.hypot(np.abs(ends - point), point / 100)
    assert reach.capacity.point == pytest.approx(point)
    assert reach.capacity.low == pytest.approx(point - below)
    assert reach.capacity.high == pytest.approx((point + above) * 1.03)
    assert reach.capacity.trials == 3


def test_a_curve_that_still_grows_has_no_capacity_but_what_it_reached() -> None:
    reach = answer.reach_of(growing())

    assert isinstance(reach.capacity, Undecided)
    assert "100 %" in reach.capacity.reason
    assert reach.at_least == 160.0


def test_what_a_probe_of_the_same_request_got_belongs_to_the_capacity() -> None:
    probe = replace(build.probe(0.05), count=100, request="POST /b")  # 100 in 20 s: 5/s
    curve = plateau(rate=95.0, probes=(probe,))

    alone, together = answer.reach_of(curve), answer.reach_of(curve, probe_is_load=True)

    assert isinstance(alone.capacity, Estimate)
    assert isinstance(together.capacity, Estimate)
    assert alone.capacity.point == pytest.approx(95.0)
    assert together.capacity.point == pytest.approx(100.0, rel=0.001)


def curve_of(answered: Searched) -> Curve:
    """Return the levels of a search over a service made by formula, as the last think time found them."""
    pause_s = max(seen.pause_s for seen in answered.seen)
    climbed = [seen for seen in answered.seen if seen.kind == "climb" and seen.pause_s == pause_s]
    rates: dict[int, list[float]] = {}
    for seen in climbed:
        rates.setdefault(seen.users, []).append(seen.ok_per_s)
    steps = [
        replace(
            build.step(users, rate[0], users / rate[0] - pause_s, trials=len(rate)),
            throughput_trials=tuple(rate),
        )
        for users, rate in sorted(rates.items())
    ]
    return build.curve(*steps, think=pause_s, label="ladder")


@pytest.mark.parametrize(
    ("service", "capacity"),
    [
        (one_server(0.010, 0.002), 100.0),  # 1 / D
        (several_servers(0.040, 0.010, 4), 100.0),  # c / D
        (pool(8, 0.050), 160.0),  # W / S
        (limited(100.0, 0.010), 100.0),  # the rest is refused at once
    ],
    ids=["M/M/1", "M/M/4", "pool of 8", "rate limit"],
)
def test_a_search_finds_the_capacity_of_a_service_made_by_formula(service: Service, capacity: float) -> None:
    answered = search(service, Bounds(budget_s=90.0, rate_cap_per_s=20_000.0, most_users=1024))

    reach = answer.reach_of(curve_of(answered))

    assert isinstance(reach.capacity, Estimate)
    assert reach.capacity.point == pytest.approx(capacity, rel=0.05)


def test_a_search_of_a_service_that_never_fills_gives_what_it_reached() -> None:
    answered = search(endless(0.4), Bounds(budget_s=20.0, rate_cap_per_s=20_000.0, most_users=1024))

    reach = answer.reach_of(curve_of(answered))

    assert answered.stop.because == "budget"
    assert isinstance(reach.capacity, Undecided)
    assert reach.at_least == pytest.approx(max(answered.users) / 0.4)  # N / R


def dropped(share: float, *, of: int = 8, **more: Any) -> Curve:
    """A plateau on whose last levels clients waited to ask again, for so much of the response time."""
    curve = plateau(upto=8, **more)

    def seen(n: float) -> Any:
        return build.connections(10_000, 10_000, connects=10_000, resent=round(100 * n * share))

    steps = [replace(s, connections=seen(s.load)) if s.load >= of else s for s in curve.steps]
    return replace(curve, steps=tuple(steps))


def test_clients_who_waited_to_ask_again_leave_the_capacity_open_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = explained(build.facts(dropped(0.5, of=4)), monkeypatch)

    assert isinstance(answered.capacity, Estimate)
    assert numbers.is_lower_bound(answered.capacity)
    assert answered.capacity.point == pytest.approx(
        99.0, rel=1e-4
    )  # three trials agree: 1 % for the next start
    assert answered.unknown[0].what.startswith("how much more than 99.0 /s it can do: clients waited to ask")
    assert answered.unknown[0].decided_by.startswith("a backlog four times as large")


@pytest.mark.parametrize(("share", "of"), [(0.04, 4), (0.5, 8)])
def test_few_who_waited_or_only_beyond_two_full_levels_leave_it_closed(
    monkeypatch: pytest.MonkeyPatch, share: float, of: int
) -> None:
    answered = explained(build.facts(dropped(share, of=of)), monkeypatch)

    assert isinstance(answered.capacity, Estimate)
    assert answered.capacity.high is not None
    assert not any(item.what.startswith("how much more") for item in answered.unknown)


def test_a_lower_bound_without_a_cause_is_said_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where no rule speaks of a limit."""
    curve = dropped(0.5, of=2)
    monkeypatch.setattr(answer, "root_of", lambda _: None)
    monkeypatch.setattr(answer, "limits_of", lambda _: [])

    answered = explained(build.facts(curve), monkeypatch)

    assert answered.sentence == "It does at least 99.0 /s, and what holds it there could not be seen."


def test_without_a_curve_nothing_is_made_up() -> None:
    reach = answer.reach_of(None)

    assert reach.capacity == Undecided("capacity", "1/s", "no level of load was measured")
    assert reach.at_least is None


# --- the sentence and what follows -------------------------------------------------------------------------


def test_the_limit_comes_first_with_its_number_and_grade(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(build.facts(plateau()), monkeypatch)

    assert answered.limit == "saturation.plateau"
    assert answered.sentence == f"{answered.findings[0].statement} (probable)."
    assert "100 /s" in answered.sentence
    assert answered.do.startswith("Keep at most 1 in flight")
    assert answered.brings == (
        "a mean of 10.0 ms (measured at 1 user) in place of 80.0 ms at 8, at the same throughput"
    )


def test_the_rate_of_the_usual_answers_follows_a_limit_that_others_hide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page, busy = AnswerSize(36, 60, 2_048, 2_048, 0.08), AnswerSize(6, 240, 12, 12, 0.001)
    steps = build.step(1, 12.5, 0.08), build.step(20, 100, 0.08)
    sizes: tuple[tuple[AnswerSize, ...], ...] = ((page,), (page, busy))
    seen = [
        replace(step, classes=(replace(step.classes[0], answers=answers),))
        for step, answers in zip(steps, sizes, strict=True)
    ]

    answered = explained(build.facts(build.curve(*seen, think=0.0)), monkeypatch)

    assert answered.limit == "answers.changed"
    assert answered.sentence.endswith("At most 20.0 /s of the usual answers came.")  # 60 of 300 at 100 /s


def test_what_a_remedy_brings_is_said_with_its_interval_and_what_is_taken_for_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = explained(build.facts(build.blocked(0.2)), monkeypatch)

    # 2 / 0.2 s; 20 / 10 - 0.15 s
    assert answered.brings.startswith("2 processes in place of 1: capacity 5.00 /s now, ")
    assert " mean at 20 users 3.85 s now, 1.8" in answered.brings
    assert " then. the work in threads: capacity 5.00 /s now, 19." in answered.brings
    assert answered.brings.count("(") > 6
    assert "Assumed: each takes requests as one does now; it runs on all cores there" in answered.brings
    assert answered.brings.endswith("; nothing limits before that was not seen.")


def test_a_model_that_does_not_fit_brings_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = build.blocked(0.2)
    first, middle, last = whole.steps
    odd = replace(middle, response=build.times(1.7))

    answered = explained(build.facts(replace(whole, steps=(first, odd, last))), monkeypatch)

    assert answered.limit == "eventloop.blocked"
    assert answered.brings.startswith("undecided: at 5 users the model has a mean (s) of 0.8")
    assert answered.brings.endswith("measured were 1.7.")


def test_from_outside_a_plateau_asks_for_the_processes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(build.facts(plateau()), monkeypatch)

    assert answered.tier == "A"
    assert answered.unknown[0].what.startswith("what holds the throughput there")
    assert "--pid" in answered.unknown[0].decided_by


def test_with_processes_watched_it_asks_for_the_services_own_gauges(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(build.facts(plateau(processes=(build.process(0.1),))), monkeypatch)

    assert answered.tier == "B"
    assert "--metrics" in answered.unknown[0].decided_by


def test_a_probe_that_is_the_load_asks_for_a_cheap_url(monkeypatch: pytest.MonkeyPatch) -> None:
    same = {"name": "/b (probe)", "path": "/b", "is_load": True}
    answered = explained(
        build.facts(plateau(processes=(build.process(0.1),), probes=(build.probe(0.02),))),
        monkeypatch,
        probe=same,
    )

    assert "--probe" in answered.unknown[0].decided_by
    assert "no cheaper URL was given" in answered.others
    assert any("no cheap URL was given" in caution for caution in answered.cautions)


def test_what_the_cheap_endpoint_pays_is_said_with_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    light, heavy = build.probe(0.002), build.probe(0.080)
    curve = plateau()
    first, *middle, last = curve.steps
    steps = (replace(first, probes=(light,)), *middle, replace(last, probes=(heavy,)))

    waits = explained(build.facts(replace(curve, steps=steps)), monkeypatch)
    fine = explained(
        build.facts(replace(curve, steps=(steps[0], *middle, replace(last, probes=(light,))))), monkeypatch
    )

    assert waits.others.startswith("GET /a takes 80.0 ms")
    assert waits.others.endswith("at 8 users, 2.00 ms at 1: it waits for the others.")
    assert fine.others.endswith("it hardly waits for the others.")


@pytest.mark.parametrize(
    ("because", "says", "decided"),
    [
        ("budget", "the budget ended first", "--budget 180s"),
        ("rate_cap", "the rate cap stood in the way", "--rate-cap 40000"),
        ("most_users", "more users were not allowed", "--max-users 2048"),
        ("interrupted", "it was ended on request", "without Ctrl-C"),
    ],
)
def test_a_ladder_that_did_not_reach_the_end_is_undecided_and_says_what_stood_in_its_way(
    monkeypatch: pytest.MonkeyPatch, because: str, says: str, decided: str
) -> None:
    answered = explained(build.facts(growing()), monkeypatch, because=because)

    assert answered.limit is None
    assert answered.sentence.startswith("Undecided: the capacity is not reached")
    assert says in answered.sentence
    assert answered.sentence.endswith("160 /s were reached.")
    assert decided in answered.unknown[0].decided_by


def test_a_suspicion_comes_after_a_limit_that_was_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = growing()
    stolen = replace(curve, steps=tuple(replace(step, steal=0.06) for step in curve.steps))

    answered = explained(build.facts(stolen), monkeypatch, because="interrupted")

    assert answered.sentence.startswith("Undecided: the capacity is not reached")
    assert "it was ended on request; 160 /s were reached. Suspected, not confirmed: " in answered.sentence
    assert answered.sentence.endswith("took 6.0 % of its time.")


def test_requests_that_fail_are_the_answer_when_they_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(
        build.facts(growing()), monkeypatch, because="harm", words="40 % of the requests of 16 users fail"
    )

    assert answered.sentence == (
        "Undecided, too many requests failed and the load was ended: 40 % of the requests of 16 users fail; "
        "160 /s were reached."
    )


def test_failures_without_a_cause_are_quoted_in_the_first_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_quotes", lambda _: ('503, 151 answers: "no seat"', '500, 1 answer: "no"'))

    answered = explained(build.facts(growing()), monkeypatch, because="refused", words="all are refused")

    assert '"no seat"' in answered.sentence
    assert answered.sentence.startswith(
        'Undecided, every request is refused: all are refused (503, 151 answers: "no seat")'
    )


def test_without_any_level_it_is_undecided_and_nothing_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(build.facts(), monkeypatch, because="fails_alone", words="all fail", probe=None)

    assert answered.limit is None
    assert answered.sentence.startswith("Undecided, requests fail without any load")
    assert answered.ladder == ()
    assert answered.has_no_service
    assert answered.requests == ("POST /b",)
    (unknown,) = answered.unknown
    assert "curl" in unknown.decided_by
    assert not [caution for caution in answered.cautions if caution.startswith("not looked at")]


@pytest.mark.parametrize(("gate", "grade"), [(True, "probable"), (None, "suspected")])
def test_a_search_that_saw_a_healthy_service_says_first_that_it_reached_no_limit(
    monkeypatch: pytest.MonkeyPatch, gate: bool | None, grade: str
) -> None:
    curve = growing()
    top = replace(curve.steps[-1], processes=(build.process(0.2),), probes=(build.probe(0.002, delayed=0.0),))
    busy = replace(curve, steps=(*curve.steps[:-1], top), work=build.estimate(0.001))

    answered = explained(
        build.facts(busy, gates=(Gate("generator", gate, "kept up"),)), monkeypatch, because="rate_cap"
    )

    assert answered.limit is None
    assert answered.sentence.startswith("Undecided: the capacity is not reached")
    assert (
        "the rate cap stood in the way; 160 /s were reached. Underdriven: nothing limits up to"
        in answered.sentence
    )
    assert answered.sentence.endswith(f"({grade}).")


def test_failed_gates_and_what_was_foreseen_are_cautions(monkeypatch: pytest.MonkeyPatch) -> None:
    gates = (
        Gate("generator", True, "the generator kept up"),
        Gate("little", False, "Little's law is broken"),
        Gate("accounting", None, "the service does not count its requests"),
    )

    answered = explained(build.facts(plateau(), gates=gates), monkeypatch)

    assert answered.cautions == (
        "Little's law is broken",
        "2 cores: other programs",
        "not looked at: the service does not count its requests",
    )


def test_every_unknown_is_said_once_those_that_can_be_decided_first(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = explained(build.facts(plateau()), monkeypatch)

    whats = [item.what for item in answered.unknown]
    decided = [bool(item.decided_by) for item in answered.unknown]
    assert len(whats) == len(set(whats))
    assert decided == sorted(decided, reverse=True)


def test_any_study_has_an_answer_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = build.facts(build.blocked())
    seen = Diagnosis(facts, diagnose.assess(facts), ())
    monkeypatch.setattr(diagnosis, "diagnosis_of", lambda _: seen)
    record: Any = SimpleNamespace(events=lambda _: [], study=STUDY, trials=(), path=Path("/r"))

    answered = answer.explanation(record)

    assert answered.limit == "eventloop.blocked"
    assert (answered.stopped_because, answered.budget_s) == ("record", None)
    assert any(f.explained_by == "eventloop.blocked" for f in answered.findings)
    assert not isinstance(answered.capacity, NotMeasured)


# --- failures ----------------------------------------------------------------------------------------------


def test_failures_that_ended_the_load_stand_next_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = "87 % of the requests of 8 users fail (status 500)"

    answered = explained(build.facts(plateau()), monkeypatch, because="harm", words=ended)

    assert answered.limit == "saturation.plateau"
    assert answered.sentence.endswith(f"(probable). The load was ended: {ended}.")


def test_a_service_of_which_some_requests_fail_alone_is_there_if_the_cause_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = explained(build.facts(plateau()), monkeypatch, because="fails_alone", words="some fail")

    assert answered.limit is not None
    assert not answered.has_no_service


def test_a_service_that_ended_is_the_answer_whatever_limited_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = "with 16 users: every watched process of it is gone"

    answered = explained(build.facts(plateau()), monkeypatch, because="service_ended", words=ended)

    assert answered.limit is None
    assert answered.sentence.startswith(f"The service ended under load, {ended}.")
    assert answered.has_no_service
    assert "saturation.plateau" in [finding.rule for finding in answered.findings]


def test_a_note_does_not_choose_the_curve_of_the_answer() -> None:
    short = build.curve(build.step(1, 12_900.0, 0.000_08), label="ladder")
    several = build.curve(*(build.step(n, 2_000.0 * n, 0.000_1) for n in (1, 4, 8)), label="patient")
    seen = Facts(2, (short, several))

    def named(rule: str) -> Finding:
        return Finding(rule, Grade.PROBABLE, 0.5, "ladder", "x", "", (), (), "", "", curves=("ladder",))

    assert answer.main_curve(seen, (named("quantile.insufficient"),)) is several
    assert answer.main_curve(seen, (named("db.lock"),)) is short


# --- where the time goes -----------------------------------------------------------------------------------


def calling(curve: Curve, call_s: float) -> Curve:
    """The same with a call of so many seconds in each request, by Little's law."""
    steps = []
    for step in curve.steps:
        mean = Estimate("calls", "", call_s * step.throughput_trials[0], None, None, 1, 9, "built")
        calls = CallsWatch("db:5432", Gauge("calls to db:5432", mean, mean.point, 0.0), 1.0, 8.0)
        steps.append(replace(step, calls=(calls,)))
    return replace(curve, steps=tuple(steps))


@pytest.mark.parametrize(
    ("curve", "call_s", "words"),
    [
        (growing(), 0.03, "50.0 ms with 1 user: about 30.0 ms in calls to db:5432"),
        (growing(), 0.048, "50.0 ms with 1 user: nearly all in calls to db:5432"),
        (growing(), 0.07, "50.0 ms with 1 user: all the time in calls to db:5432, several at once"),
        (growing(), 0.009, ""),
        (
            plateau(),
            0.004,
            (
                "10.0 ms with 1 user: about 4.00 ms in calls to db:5432; 80.0 ms with 8 users: "
                "about 4.00 ms in calls to db:5432"
            ),
        ),
    ],
)
def test_calls_show_where_the_time_of_a_request_goes(
    monkeypatch: pytest.MonkeyPatch, curve: Curve, call_s: float, words: str
) -> None:
    assert explained(build.facts(calling(curve, call_s)), monkeypatch).time == words
