"""Killed at random moments, a run loses what was under way and nothing else (goals S2 and S3)."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from loadlens.model.trial import TrialStatus
from loadlens.record import is_record, open_run
from tests import tiny
from tests.calm import calmly
from tests.end_to_end import running

KILLS = 30
SEED = 20_26


def test_thirty_kills_lose_nothing_that_was_sealed_and_leave_nothing_behind(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    calmly(lambda: nothing_is_lost_or_left(tmp_path_factory.mktemp("kills")))


def nothing_is_lost_or_left(tmp_path: Path) -> None:
    """Kill a run, and those that go on with it, at random moments."""
    dice = random.Random(SEED)
    study = tiny.write_study(tmp_path / "study", trials=3, duration="200ms")
    trial_s = _seconds_a_trial(study, tmp_path / "whole")
    kills = runs = 0

    while kills < KILLS:
        runs += 1
        record = tmp_path / f"kills-{os.getpid()}-{runs}"
        seen: set[str] = set()
        ended = False
        while not ended:
            lab = running.start(study, record)
            # on average one trial is sealed between two kills
            ended = _ends_by_itself(lab, dice.uniform(0.0, 2.5 * trial_s) if kills < KILLS else 120.0, record)
            kills += not ended
            assert running.left_after(record, within_s=3.0) == []
            if is_record(record):
                opened = open_run(record)
                running.assert_sound(opened, but=seen)
                sealed = {str(t.path) for t in opened.trials if t.is_sealed}
                assert sealed >= seen, "what was sealed is gone"
                seen = sealed
        opened = open_run(record)
        assert opened.is_complete
        running.assert_sound(opened)
    assert not list(Path(tempfile.gettempdir()).glob(f"loadlens-kills-{os.getpid()}-*"))  # scratch folders


def _seconds_a_trial(study: Path, record: Path) -> float:
    """Seconds that a trial takes on this machine now, from a run that is not killed."""
    assert _ends_by_itself(running.start(study, record), 120.0, record)
    trials = open_run(record).trials
    return max(t.ended_unix_ns - t.began_unix_ns for t in trials[1:]) / 1e9


def _ends_by_itself(lab: BaseProcess, after_s: float, record: Path) -> bool:
    """Wait until there is a record, let so much time pass, and kill; true if the run was over before."""
    until = time.monotonic() + 30
    while lab.is_alive() and not is_record(record) and time.monotonic() < until:
        time.sleep(0.01)
    lab.join(after_s)
    if lab.is_alive():
        lab.kill()
        lab.join(30)
        return False
    assert lab.exitcode == 0
    return True


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_in_order_and_the_rest_runs_later(tmp_path: Path, number: int, code: int) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="20s")
    lab = running.start(study, tmp_path / "run")
    running.wait_for_samples(tmp_path / "run")

    began = time.monotonic()
    running.send(number, lab)
    lab.join(30)
    took = time.monotonic() - began

    record = open_run(tmp_path / "run")
    assert lab.exitcode == code
    assert took < 12  # 2 s and the grace period that a service has to end
    assert [t.status for t in record.trials] == [TrialStatus.ABORTED]
    assert record.trials[0].is_sealed
    assert record.trials[0].samples().height > 0
    running.assert_sound(record)
    assert running.left_after(tmp_path / "run", within_s=3.0) == []


def test_a_second_signal_ends_at_once_and_the_record_opens(tmp_path: Path) -> None:
    study = tiny.write_study(tmp_path / "study", trials=1, duration="20s", service="stop: {within: 90s}")
    server = tmp_path / "study" / "server.py"
    asked = tmp_path / "asked"
    deaf = f"import signal; signal.signal(signal.SIGTERM, lambda *_: open({str(asked)!r}, 'w').close())\n"
    server.write_text(deaf + server.read_text())
    lab = running.start(study, tmp_path / "run")
    running.wait_for_samples(tmp_path / "run")

    running.send(signal.SIGINT, lab)
    until = time.monotonic() + 30
    while not asked.exists():  # then it waits for a service that does not want to end
        assert time.monotonic() < until, "the service was not asked to end"
        time.sleep(0.02)
    assert lab.is_alive()
    running.send(signal.SIGINT, lab)
    lab.join(30)

    assert lab.exitcode == 130
    assert running.left_after(tmp_path / "run", within_s=3.0) == []
    running.assert_sound(open_run(tmp_path / "run"))
