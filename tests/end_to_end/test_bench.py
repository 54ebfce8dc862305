"""The bench itself, small: it must not be found broken on the day when figures are wanted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from benches.measuring import ROOT
from benches.results import newest, read

from tests.end_to_end.hitting import environment

pytestmark = [
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors"),
]


def bench(*arguments: str) -> str:
    """Run the bench, which must exit 0; gives what it said while it ran."""
    command = [sys.executable, "-m", "benches", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=6000)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_costs_and_truth_become_data_and_a_page(tmp_path: Path) -> None:
    data, docs = tmp_path / "data", tmp_path / "docs"
    (docs / "appendix").mkdir(parents=True)
    for name in ("benchmarks.md", "appendix/benchmarks.md"):
        shutil.copy(ROOT / "docs" / name, docs / name)
    peers = ["--peers", "loadlens,floor", "--results", str(data)]
    cases = "get-12,tls-1,flow-100"

    printed = bench("cost", "--cases", cases, "--rounds", "1", "--long", "2", "--busy", "0", *peers)
    bench("truth", "--cases", "mix-2-open", "--seconds", "1", *peers)
    bench("page", "--results", str(data), "--docs", str(docs))

    path = newest(data)
    assert path is not None
    results = read(path)
    measured = {(row.work, row.generator) for row in results.cost if row.long.requests}
    alone = {(work, "loadlens") for work in cases.split(",")}
    assert measured == alone | {("get-12", "floor")}
    assert "skipped floor for tls-1, flow-100" in printed
    assert {row.long.violations for row in results.cost} == {0}
    assert {(row.generator, row.long.unexplained) for row in results.cost} == {
        ("loadlens", 0),
        ("floor", None),
    }
    runs = 2 * sum(row.generator == "loadlens" for row in results.cost)  # a crowded machine repeats some
    assert runs >= 6
    sentence = f" requests that the server answered to Loadlens in {runs} runs, 0 "
    assert sentence in (docs / "benchmarks.md").read_text()
    assert {claim.generator for claim in results.claims} == {"loadlens", "the server's own log"}
    assert all(claim.p50_s >= 0.010 for claim in results.claims if claim.p50_s is not None)
    assert (docs / "images" / "benchmarks.svg").stat().st_size > 1000
    assert "mix-2-open" in (docs / "appendix" / "benchmarks.md").read_text()
    assert json.loads(path.read_text())["schema_version"] == 2


def test_an_unknown_peer_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benches", "cost", "--peers", "wrkk", "--results", str(tmp_path)]

    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=600)

    assert done.returncode == 2
    assert "no such generator: wrkk" in done.stderr
