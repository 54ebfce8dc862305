"""A study on Node behind nginx, from its file to its report: what was planted is seen from inside."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadlens.model.finding import Estimate
from loadlens.model.report import CaseDetail
from loadlens.record import RunRecord, open_run
from loadlens.report import build
from tests.calm import Machine

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="no node here"),
    pytest.mark.skipif(not Path("/usr/sbin/nginx").exists(), reason="no nginx here"),
]
BLOCK_S = 0.15
APP = f"""
require("node:http").createServer((request, answer) => {{
  if (request.url === "/block") for (const end = Date.now() + {BLOCK_S * 1e3}; Date.now() < end;);
  answer.end("done");
}}).listen(Number(process.env.PORT), "127.0.0.1");
"""
STUDY = """
schema: 1
study: looked-into
question: Is what happens inside seen?
services:
  app:
    start: node $here/app.js
    env: {PORT: $port}
    replicas: 2
    runtime: node
    ready: {get: /, status: 200, within: 60s}
  lb: {use: nginx, over: app}
entry: lb
scenarios:
  both: [{name: quick, get: /}, {name: slow, get: /block}]
trials: 1
experiments:
  once: {mix: both, load: {users: 2, think: 100ms, duration: 6s, warmup: 1s}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run that shows what was planted, or the third; another only where the machine was away meanwhile."""
    for left in (2, 1, 0):
        with Machine() as machine:
            record = run_in(tmp_path_factory.mktemp("study"))
        detail = build.report(record).details[0]
        is_as_planted = busy(detail) == blocked(record) and balanced(detail) == issued(record)
        if is_as_planted or not left or machine.why_not() is None:
            break
    return record


def run_in(folder: Path) -> RunRecord:
    (folder / "app.js").write_text(APP)
    (folder / "study.yaml").write_text(STUDY.replace("$here", str(folder)))
    done = subprocess.run(
        (sys.executable, "-m", "loadlens", "run", str(folder), "-q", "-o", str(folder / "run")),
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return open_run(folder / "run")


@pytest.fixture(scope="module")
def detail(run: RunRecord) -> CaseDetail:
    return build.report(run).details[0]


def seen(detail: CaseDetail, part: str, what: str) -> tuple[object, object]:
    assert detail.inside is not None
    (line,) = [cells for cells in detail.inside.rows if cells[:2] == (part, what)]
    return line[2], line[3]


def test_the_block_shows_as_the_worst_lag(detail: CaseDetail) -> None:
    highest = [seen(detail, part, "event-loop lag, worst")[1] for part in ("app.1", "app.2")]

    # round robin may give one replica all that blocks
    assert max(h.point for h in highest if isinstance(h, Estimate)) >= BLOCK_S - 0.020  # a look each 20 ms


def busy(detail: CaseDetail) -> float:
    """Of both loops together."""
    shares = [seen(detail, part, "event loop busy")[0] for part in ("app.1", "app.2")]
    return sum(share.point for share in shares if isinstance(share, Estimate))


def blocked(run: RunRecord) -> Any:
    """The blocks of the whole load over its length, shared by two loops; a loop does little else."""
    (trial,) = run.trials
    assert trial.result is not None
    blocks = next(step for step in trial.result.streams[0].steps if step.name == "slow").requests.ok
    return pytest.approx(blocks * BLOCK_S / trial.result.elapsed_s, rel=0.35)


def balanced(detail: CaseDetail) -> int:
    """Requests that the balancer has counted."""
    assert detail.backends is not None
    return sum(int(str(cells[2])) for cells in detail.backends.rows)


def issued(run: RunRecord) -> int:
    (trial,) = run.trials
    assert trial.result is not None
    return sum(stream.requests.issued for stream in trial.result.streams)


def test_the_loops_are_busy_for_as_long_as_they_were_blocked(detail: CaseDetail, run: RunRecord) -> None:
    assert busy(detail) == blocked(run)


def test_the_balancers_counts_are_the_clients_to_the_last_request(detail: CaseDetail, run: RunRecord) -> None:
    assert detail.backends is not None
    assert {cells[1] for cells in detail.backends.rows} == {"app.1", "app.2"}
    assert balanced(detail) == issued(run)


def test_samples_fall_into_the_trial_and_each_process_has_its_own(run: RunRecord) -> None:
    (trial,) = run.trials
    rows = trial.readings().filter(source="node", metric="loop_active_s")
    pids = {json.loads(text)["pid"] for text in rows["labels"]}

    assert pids == {str(p.pid) for p in trial.services if p.service == "app"}
    # by another clock they would be days away; services may take a while to come up
    assert -60 < rows["time_ns"].min() / 1e9 < 1.5  # type: ignore[operator]
    assert 5 < rows["time_ns"].max() / 1e9 < 60  # type: ignore[operator]
