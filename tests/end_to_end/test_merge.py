"""Two engines that share a load against the origin: merged, they count what the origin's books say."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benches.measuring import Origin

from loadlens import engine
from loadlens.model.workload import Open, Plan, RecordTo, Scenario, Share, Step, Stream, Target, shares_of
from loadlens.record import histogram_log
from tests.end_to_end.hitting import check_law, settled_books

SECOND = 1_000_000_000


def plan_for(server: Origin) -> Plan:
    """300 requests/s for a second, with a step that is always answered by 500."""
    steps = (
        Step("good", "GET", "/"),
        Step("bad", "GET", "/status?codes=500:1"),
    )
    target = Target("127.0.0.1", server.port, "localhost")
    stream = Stream(
        "load", "load", target, (Scenario("visit", 1.0, steps),), Open(150.0), timeout_ns=5 * SECOND
    )
    return Plan(3, (stream,), threads=1, duration_ns=SECOND, drain_ns=SECOND)


def run_shared(plan: Plan, shares: Sequence[Share], folder: Path) -> list[engine.Result]:
    """Run a plan on an engine for each share, which begin together; give their results, by share."""
    runs = []
    for number, share in enumerate(shares):
        place = folder / f"node-{number}"
        place.mkdir()
        runs.append(engine.Run(replace(plan, share=share, record=RecordTo(str(place), sums=True))))
    t0 = time.monotonic_ns() + SECOND // 2
    for run in runs:
        run.start(t0)
    for run in runs:
        assert run.wait(30)
    return [run.result() for run in runs]


def test_shares_of_a_load_are_merged_into_what_the_origin_saw(server: Origin, tmp_path: Path) -> None:
    server.new_books()
    plan = plan_for(server)
    nodes = run_shared(plan, shares_of([1, 2]), tmp_path)
    counts = settled_books(server)
    out = tmp_path / "all"
    out.mkdir()

    merged = engine.merge(plan, [tmp_path / "node-0", tmp_path / "node-1"], out)

    load = merged["streams"][0]
    check_law(load["requests"])
    assert load["law_holds"], load["law"]
    assert merged["status"] == "complete"
    assert load["requests"]["answered"] == counts["received"] == counts["answered"]
    assert load["status"] == {"200": load["requests"]["ok"], "500": load["requests"]["unexpected_status"]}
    for key in load["requests"]:
        assert load["requests"][key] == sum(node["streams"][0]["requests"][key] for node in nodes), key
    assert 0 < nodes[0]["streams"][0]["requests"]["due"] < nodes[1]["streams"][0]["requests"]["due"]
    assert len(load["failing_answers"]) == 3  # of each status the first three, of whichever node
    assert merged["generator"]["threads"] == 2
    log = histogram_log.read(out / "intervals.hlog")
    times = [line for line in log if (line.klass, line.kind) == ("ok", "response")]
    assert sum(int(line.counts.sum()) for line in times) == load["requests"]["ok"]


def test_a_node_that_is_lost_makes_the_merged_result_incomplete(server: Origin, tmp_path: Path) -> None:
    plan = plan_for(server)
    run_shared(plan, shares_of([1, 1]), tmp_path)
    sums = tmp_path / "node-1" / "sums.bin"
    sums.write_bytes(sums.read_bytes()[: sums.stat().st_size // 2])
    out = tmp_path / "all"
    out.mkdir()

    merged = engine.merge(plan, [tmp_path / "node-0", tmp_path / "node-1"], out)

    assert merged["status"] == "incomplete"
    assert "node-1: its counts end at" in merged["reasons"][0]
    assert merged["streams"][0]["law_holds"], merged["streams"][0]["law"]
