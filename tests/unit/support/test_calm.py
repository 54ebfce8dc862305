"""A check that fails is made again where the machine was not calm, and nowhere else."""

from __future__ import annotations

import inspect
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benches.measuring import Host

from tests import calm


def failing(times: int, during: float = 0.0) -> tuple[list[int], Callable[[], None]]:
    """A check that fails so often, each try lasting a while; and the tries so far."""
    tries: list[int] = []

    def check() -> None:
        tries.append(len(tries))
        time.sleep(during)
        assert len(tries) > times

    return tries, check


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What the host is said to have done, try by try; at the end nothing."""
    reasons: list[str | None] = []
    monkeypatch.setattr(Host, "why_not", lambda _: reasons.pop(0) if reasons else None)
    monkeypatch.setattr(calm, "REPEATED", [])  # those of these tests do not count
    monkeypatch.setattr(calm, "MOST_LATE_S", 60.0)
    monkeypatch.setattr(calm, "others_busy", lambda _: 0.0)
    return reasons


def test_on_a_calm_machine_a_failure_is_one_at_once(host: list[str | None]) -> None:
    tries, check = failing(1)

    with pytest.raises(AssertionError):
        calm.calmly(check)

    assert len(tries) == 1


def test_what_fails_while_the_host_is_away_is_asked_again(host: list[str | None]) -> None:
    host += ["the host gave 9 % to others"] * 2
    tries, check = failing(2)

    calm.calmly(check)

    assert len(tries) == 3
    why_not = "the host gave 9 % to others"
    assert [f"{why_not} (AssertionError: assert {number} > 2)" for number in (1, 2)] == calm.REPEATED


def test_what_fails_again_and_again_fails_whatever_the_machine_does(host: list[str | None]) -> None:
    host += ["the host gave 9 % to others"] * 9
    tries, check = failing(9)

    with pytest.raises(AssertionError):
        calm.calmly(check)

    assert len(tries) == calm.TRIES


def test_what_fails_while_others_use_the_processors_is_asked_again(
    host: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # behind the first failure; three calm looks in a row before the repeat; behind the second failure
    used = [0.6, 0.1, 0.5, 0.1, 0.1, 0.1, 0.1]
    monkeypatch.setattr(calm, "others_busy", lambda _: used.pop(0))
    tries, check = failing(2)

    with pytest.raises(AssertionError):
        calm.calmly(check)

    assert len(tries) == 2
    assert used == []


def test_what_breaks_for_want_of_a_figure_is_asked_again_too(host: list[str | None]) -> None:
    host += ["the host gave 9 % to others"]
    figures: list[Any] = [None, 2.0]

    def check() -> None:
        float(figures.pop(0))

    calm.calmly(check)

    assert figures == []


def test_a_command_that_was_refused_is_not_run_again(host: list[str | None]) -> None:
    host += ["the host gave 9 % to others"] * 9
    codes = [2, 0]

    with pytest.raises(pytest.fail.Exception, match="too short"):
        calm.calmly(
            lambda: calm.assert_ran(subprocess.CompletedProcess([], codes.pop(0), "", "10 s is too short"))
        )

    assert codes == [0]
    assert calm.REPEATED == []


@pytest.mark.parametrize("more", [1])
def test_a_test_is_given_what_it_asks_for_at_each_try(
    host: list[str | None], tmp_path: Path, more: int
) -> None:
    host += ["the host gave 9 % to others"]

    @calm.where_calm
    def judged(tmp_path: Path, *, more: int) -> None:
        (tmp_path / str(len(list(tmp_path.iterdir())))).touch()
        assert len(list(tmp_path.iterdir())) > more

    judged(tmp_path, more=more)

    assert len(list(tmp_path.iterdir())) == 2
    assert list(inspect.signature(judged).parameters) == ["tmp_path", "more"]  # fixtures are found by it


def test_what_holds_is_asked_once(host: list[str | None]) -> None:
    host += ["the host gave 9 % to others"]
    tries, check = failing(0)

    calm.calmly(check)

    assert len(tries) == 1


def test_a_thread_that_wakes_late_is_seen(host: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calm, "MOST_LATE_S", 0.1)
    wait = threading.Event.wait

    def late(event: threading.Event, timeout: float | None = None) -> bool:
        return wait(event, None if timeout is None else timeout + 0.2)

    monkeypatch.setattr(threading.Event, "wait", late)
    with calm.Machine() as machine:
        time.sleep(0.5)

    assert (machine.why_not() or "").startswith("a thread woke ")


def test_who_asks_to_be_alone_waits_for_the_running_test_and_holds_up_the_next() -> None:
    running, asking, coming = calm.Turns(), calm.Turns(), calm.Turns()  # one for each process
    order: list[str] = []

    def ask() -> None:
        with asking.beside_others(), asking.alone():
            order.append("alone")

    def come() -> None:
        with coming.beside_others():
            order.append("next")

    threads = [threading.Thread(target=each) for each in (ask, come)]
    with running.beside_others():
        for thread in threads:
            thread.start()
            time.sleep(0.1)  # until it waits
        assert order == []
    for thread in threads:
        thread.join(10)

    assert order == ["alone", "next"]
