"""Trials that join a search, after one that could not be measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from loadlens.search.explore import _Search
from loadlens.search.ladder import Next, Outcome
from loadlens.search.provisional import Judge
from tests.unit.search.test_step_cases import AIM

DENSE = Next("dense", 1, 1.0, 10.0)


def test_after_a_broken_trial_it_is_planned_again_and_another_one_is_new() -> None:
    runner: Any = SimpleNamespace(writer=SimpleNamespace(extend=lambda study, planned: None))
    search = _Search(AIM, False, runner, lambda: 0.0, 0.0, Judge(Path("record")))
    first = search._join(DENSE)
    search.seen.append(Outcome("dense", 1, "broken"))

    assert search._join(DENSE) is first
    other = search._join(Next("stacks", 8, 0.3, 1.5))
    assert other is not first
    assert [trial.position for trial in search.planned] == [1, 2]
