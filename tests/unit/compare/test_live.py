"""Course of a live comparison: its load, its looks, the order of its pairs. Trials are simulated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from loadlens.cli.compare.options import CompareFlags, task_of
from loadlens.compare.live import _Pairs
from loadlens.compare.plan import Load, Task, case_of, open_load, planned
from loadlens.errors import TestbedError, UsageError
from loadlens.estimate.looks import LOOKS
from loadlens.model.comparison import Comparison
from loadlens.model.trial import TrialStatus
from loadlens.model.workload import Closed, Open
from loadlens.run.progress import Silent
from loadlens.run.trial_runner import TrialOutcome

URLS = ("http://127.0.0.1:8080/", "http://127.0.0.1:8081/")
EVERY_S = 0.02  # a request of one user


def task(**changes: Any) -> Task:
    return replace(task_of(CompareFlags(URLS, rate="50", seed=3), ()), **changes)


class Runner(SimpleNamespace):
    """Parts of a runner that a comparison needs besides its trials."""

    def __init__(self) -> None:
        nothing = SimpleNamespace(is_set=False, check=lambda: None, allowed=None)
        writer = SimpleNamespace(event=lambda *_, **__: None, path="record")
        super().__init__(interrupts=nothing, writer=writer)


@dataclass(slots=True)
class Simulated(_Pairs):
    """A comparison whose trials give the counts of two queues: users over a time, up to a capacity."""

    capacities: tuple[float, float] = (100.0, 100.0)
    decided_after: int = 99
    invalid: set[int] = field(default_factory=set)  # numbers of trials, from 1
    takes_s: float = 0.0  # of the budget, a trial
    ran: list[tuple[int, Load, int]] = field(default_factory=list)

    def _run(self, arm: int, load: Load, block: int) -> TrialOutcome:
        self.ran.append((arm, load, block))
        self.began -= self.takes_s
        status = TrialStatus.INVALID if len(self.ran) in self.invalid else TrialStatus.COMPLETE
        rate = self.capacities[arm]
        if isinstance(load.workload, Closed):
            rate = min(load.workload.users / EVERY_S, rate)
        counts = SimpleNamespace(ok=round(rate * load.measured_s), bad=0)
        result = SimpleNamespace(streams=[SimpleNamespace(requests=counts)], measured_s=load.measured_s)
        return cast(TrialOutcome, SimpleNamespace(result=result, status=status, reasons=[]))

    def _discover(self) -> None:
        """Nothing runs that could be found."""

    def _pilot(self, load: Load) -> None:
        """The scatter is not of interest here."""

    def judged(self) -> Comparison:
        return cast(
            Comparison, SimpleNamespace(sentence="so far", is_decided=self.pairs >= self.decided_after)
        )


class _Allowed:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def simulated(monkeypatch: pytest.MonkeyPatch, given: Task | None = None, **settings: Any) -> Simulated:
    """A comparison that begins now, on a clock that stands still."""
    monkeypatch.setattr("loadlens.compare.pairing.time.monotonic", lambda: 0.0)
    runner = Runner()
    runner.interrupts.allowed = _Allowed
    wanted = given or task()
    runner.progress = Silent()
    return Simulated(wanted, cast(Any, runner), began=0.0, task=wanted, **settings)


def test_pairs_come_in_random_order_with_both_versions_in_each(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch)
    run.go()

    arms = [arm for arm, _, _ in run.ran]
    pairs = list(zip(arms[::2], arms[1::2], strict=True))
    assert len(pairs) == LOOKS[-1]
    assert set(pairs) == {(0, 1), (1, 0)}
    assert [block for _, _, block in run.ran] == [block for block in range(1, 14) for _ in (0, 1)]


def test_a_comparison_ends_at_the_first_look_that_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    for decided_after, pairs in ((1, 3), (4, 5), (6, 8), (9, 13)):
        run = simulated(monkeypatch, decided_after=decided_after)
        run.go()

        assert run.pairs == pairs


def test_an_invalid_trial_is_run_again_and_its_pair_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch, decided_after=3, invalid={2})
    run.go()

    assert (run.pairs, len(run.ran)) == (3, 7)
    assert run.ran[1] == run.ran[2]


def test_three_pairs_in_a_row_without_two_valid_trials_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch, invalid=set(range(1, 100)))

    with pytest.raises(TestbedError, match="3 pairs in a row without two valid trials"):
        run.go()
    assert len(run.ran) == 6  # of each pair the first trial twice


def test_both_trials_of_a_pair_have_the_same_arrivals() -> None:
    load = Load("pairs", open_load(50.0), 0.4, 5.0, "load")
    trials = [
        [planned(task(), case_of(task(), arm, load, 2), block, 1) for arm in (0, 1)] for block in (1, 2)
    ]

    assert [first.seed == second.seed for first, second in trials] == [True, True]
    assert trials[0][0].seed != trials[1][0].seed


def test_the_load_is_half_of_what_the_slower_version_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch, task(rate_per_s=None), capacities=(130.0, 88.0))
    run.go()

    assert isinstance(workload := run.ran[-1][1].workload, Open)
    assert workload.rate_per_s == pytest.approx(44.0)  # half of 88/s in two digits
    # one user gives 50/s and four users the capacity; sixteen add less than a quarter
    users = [load.workload.users for _, load, _ in run.ran if isinstance(load.workload, Closed)]
    assert users == [1, 4, 16, 1, 4, 16]


def test_a_rate_that_a_fast_service_could_carry_ends_at_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch, task(rate_per_s=None), capacities=(1e5, 1e5))
    run.go()

    assert isinstance(workload := run.ran[-1][1].workload, Open)
    assert workload.rate_per_s == 1000.0


def test_trials_are_as_long_as_the_budget_allows_for_most_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(monkeypatch, task(budget_s=120.0))
    run.go()

    # 13 pairs and two trials before them share 95 % of 120 s; each has 1 s of start and end, 0.4 s of warm-up
    assert run.ran[-1][1].measured_s == pytest.approx(114 / 28 - 1.4)
    assert run.looks == LOOKS


def test_a_short_budget_has_fewer_looks_and_one_that_is_too_short_names_what_suffices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = simulated(monkeypatch, task(budget_s=45.0))
    run.go()
    # Twelve trials of 2 s and 1.4 s around them take 41 s of 42.75 s, eighteen 61 s.
    assert run.looks == (3, 5)

    with pytest.raises(UsageError) as fault:
        simulated(monkeypatch, task(budget_s=20.0)).go()
    enough_s = float(str(fault.value.hint).removeprefix("--budget ").removesuffix("s"))
    run = simulated(monkeypatch, task(budget_s=enough_s))
    run.go()
    assert run.looks == (3,)


@pytest.mark.parametrize(
    ("takes_s", "pairs"),
    [
        (4.0, 5),  # five pairs take 40 s
        (5.0, 3),  # 50 s: no pair is begun that leads to no look
        (9.0, 3),  # three take 54 s: for the first look a quarter more is allowed, up to 56 s
        (10.0, 1),  # 60 s
    ],
)
def test_pairs_that_take_longer_than_planned_end_at_the_last_look_within_the_budget(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, pairs: int
) -> None:
    run = simulated(monkeypatch, task(budget_s=45.0), takes_s=takes_s)
    run.go()

    assert run.looks == (3, 5)
    assert run.pairs == pairs
