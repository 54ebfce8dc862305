"""Nodes that are cut off, behind a slow link or without disk, in network namespaces, while a study runs.

Every way ends in a record that opens, nothing is left on a node, and the run goes on with both nodes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches.fleet import HERE, Cluster, Way, cluster, engines, namespaces
from benches.measuring import Origin, origin

from loadlens.api import verbs
from loadlens.model.trial import TrialStatus
from loadlens.record import open_run
from tests.end_to_end import hitting, running
from tests.end_to_end.fleets import reached

BROKEN = "llfleet2"
STUDY = """\
schema: 1
study: cut
question: does it end?
entry: http://{host}:{port}/
trials: 1
fleet: {{nodes: 2}}
experiments:
  alone:
    load: {{rate: 400/s, warmup: 0s, duration: 3s, timeout: 2s}}
"""


def has_namespaces() -> bool:
    """Return whether a network namespace can be made here."""
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
        return False
    name = f"llmay{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode:
        return False
    return subprocess.run(["ip", "netns", "delete", name], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not has_namespaces(), reason="no network namespaces (root, ip, tc)")


@pytest.fixture(scope="module")
def server() -> Iterator[Origin]:
    with origin(hitting.origin_program(), 0, "--address", "0.0.0.0") as made:
        yield made


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with namespaces(2) as names, cluster(names) as made:
        yield made


@pytest.mark.parametrize("way", ["cut off", "hears nothing", "is not heard", "disk full", "slow link"])
def test_a_run_ends_in_a_record_and_goes_on(way: Way, nodes: Cluster, server: Origin, tmp_path: Path) -> None:
    study, record = tmp_path / "study.yaml", tmp_path / "record"
    study.write_text(STUDY.format(host=HERE, port=server.port))
    server.new_books()
    lab = running.begun(verbs.run, study, out=record, fleet=nodes.address, insecure_fleet=True)
    assert reached(lambda: server.books()["received"] > 200, within_s=60)

    nodes.strike(BROKEN, way)
    try:
        has_ended = reached(lambda: bool(list(record.glob("trials/*/block-1/trial.json"))), within_s=60)
        lab.kill()  # before it repeats the trial
        lab.join()
        assert has_ended
        assert reached(lambda: not engines(), within_s=5)
        (broken, *_) = open_run(record).trials
    finally:
        nodes.heal(BROKEN, way)
    assert broken.status is TrialStatus.INVALID
    assert any(BROKEN in reason for reason in broken.reasons)

    server.new_books()
    resumed_ns = time.time_ns()
    verbs.run(study, out=record, fleet=nodes.address, insecure_fleet=True, resume=True)

    # On a busy machine the first may have come late, and is made again.
    since = [trial for trial in open_run(record).trials if (trial.t0_unix_ns or 0) > resumed_ns]
    results = [trial.result for trial in since if trial.result is not None]
    assert [node.share for node in results[-1].nodes] == [(0, 1, 2), (1, 2, 2)]
    requests = [result.streams[0].requests for result in results]
    assert requests[-1].due == 3 * 400
    assert sum(each.issued for each in requests) == hitting.settled_books(server)["received"]
