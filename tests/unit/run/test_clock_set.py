"""The clock of the machine is set in the middle of a trial: no duration and no window follows it."""

from __future__ import annotations

import csv
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.study import Query, ReportSettings
from loadlens.model.trial import TrialStatus
from loadlens.record import Moment, TrialEnd
from loadlens.run import prometheus_queries
from loadlens.run.external import locust
from loadlens.testbed import Testbed

HOUR_NS = 3600 * 10**9


@pytest.mark.parametrize("set_ns", [HOUR_NS, -HOUR_NS])
def test_a_trial_takes_what_passed(set_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    began = Moment(unix_ns=10 * HOUR_NS, monotonic_ns=5)
    monkeypatch.setattr(time, "time_ns", lambda: 10 * HOUR_NS + 700 + set_ns)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 705)

    end = TrialEnd.of(None, TrialStatus.COMPLETE, (), began)

    assert end.ended_unix_ns - end.began_unix_ns == 700


class _Bed(Testbed):
    """One whose Prometheus must not be asked."""

    def __init__(self) -> None:
        self.asked = False

    def metric_servers(self) -> dict[str, str]:
        self.asked = True
        return {"prometheus": "http://127.0.0.1:1"}

    def close(self) -> tuple[str, ...]:
        return ()


def ask(set_s: float) -> dict[str, Any]:
    t0_unix_ns, t0_monotonic_ns = time.time_ns() - round(set_s * 1e9), time.monotonic_ns()
    result: Any = {
        "measured_s": 2.0,
        "warmup_s": 1.0,
        "t0_unix_ns": t0_unix_ns,
        "t0_monotonic_ns": t0_monotonic_ns,
    }
    settings = replace(ReportSettings(), promql=(Query("up", "up", step_s=1.0),))
    answers = prometheus_queries.ask(settings, _Bed(), result)
    assert answers is not None
    return answers


@pytest.mark.parametrize("set_s", [3600.0, -3600.0, 0.5])
def test_a_server_is_not_asked_for_a_window_on_two_clocks(set_s: float) -> None:
    answers = ask(set_s)

    assert answers["by"] is None
    assert answers["why"] == f"the clock was set by {set_s:.1f} s in the trial"


def test_a_server_is_asked_where_the_clock_was_kept() -> None:
    assert "did not answer" in ask(0.001)["why"]


def test_the_locustfile_takes_no_time_from_the_clock_that_is_set(tmp_path: Path) -> None:
    """Its listener is called 40 ms after the request was sent, whatever locust calls its start."""
    source = re.search(r"def request_ended.*?(?=\n@events)", locust._FILE, re.DOTALL)
    assert source is not None
    scope: dict[str, Any] = {"time": time, "ended": 0, "LEFT": None}
    with (tmp_path / "rows").open("w", newline="") as out:
        scope["rows"] = csv.writer(out)
        exec(source[0].format(answered="answered"), scope)
        before = time.monotonic()
        scope["request_ended"](
            response_time=40.0,
            response_length=2,
            response=type("Answer", (), {"status_code": 200}),
            exception=None,
            start_time=time.time() + 3600,
        )
    sent = float((tmp_path / "rows").read_text().split(",")[0])

    assert before - 0.040 <= sent <= time.monotonic() - 0.040
