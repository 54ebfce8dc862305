"""Tables of a case: sums over its trials by hand, quantiles of phases that were planted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loadlens.model.finding import Estimate, NotMeasured
from loadlens.model.plain import read
from loadlens.model.recorded import Placement, ServiceProcess
from loadlens.model.report import CaseDetail, Table
from loadlens.report import build
from tests.records import no_times
from tests.unit.measure import records
from tests.unit.whatif import services

UNTRUSTED = "the certificate's issuer is not trusted: give its CA (--cacert), or --insecure"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the engine adds to each load's result in every trial; a test fills it."""
    added: dict[str, Any] = {}
    original = records.Trial._stream_result

    def with_added(trial: records.Trial, index: int) -> dict[str, Any]:
        made = original(trial, index)
        if index == 0:
            made |= {name: value for name, value in added.items() if name != "checks"}
            made["steps"][0]["checks"] = added.get("checks", [])
        return made

    monkeypatch.setattr(records.Trial, "_stream_result", with_added)
    return added


def well(load: services.Load, _: int) -> services.Trace:
    """A service with cores to spare."""
    return services.fair_threads(load, cores=4, work_s=0.05)


def detail(trials: int = 2) -> CaseDetail:
    """One case of a service that answers well."""
    (found,) = build.report(records.record(well, users=(5,), trials=trials)).details
    return found


def row(table: Table | None, first: str) -> dict[str, Any]:
    """A row by its first cell, by the titles of its columns."""
    assert table is not None
    cells = next(cells for cells in table.rows if cells[0] == first)
    return dict(zip((column.title for column in table.columns), cells, strict=True))


def test_checks_are_summed_over_trials_and_the_first_failure_is_kept(engine: dict[str, Any]) -> None:
    sample = "0.210 s, user 1: status 500"
    counts = {
        "passed": 90,
        "failed": 10,
        "not_judged": 3,
        "first_s": 0.2,
        "last_s": 0.3,
        "samples": [sample, "later"],
    }
    never: dict[str, Any] = {
        "passed": 0,
        "failed": 0,
        "not_judged": 103,
        "first_s": None,
        "last_s": None,
        "samples": [],
    }
    engine["checks"] = [{"name": "contains x", **counts}, {"name": "size > 0", **never}]

    table = detail(trials=2).checks

    assert table is not None
    assert [cells[1] for cells in table.rows] == ["contains x", "size > 0"]
    _, _, passed, failed, share, apart, first = table.rows[0]
    assert (passed, failed, apart) == (180, 20, 6)
    assert isinstance(share, Estimate)
    assert share.point == pytest.approx(0.1)  # 20 of 200 judged
    assert first == f"block-1: {sample}"
    assert isinstance(table.rows[1][4], NotMeasured)


def test_a_case_without_checks_or_failures_has_no_such_tables(engine: dict[str, Any]) -> None:
    found = detail()

    assert (found.checks, found.reasons) == (None, None)


def test_why_requests_failed_is_said_with_keys_of_a_study(engine: dict[str, Any]) -> None:
    samples = [f"0.010 s, step order, user 1: {UNTRUSTED}", f"0.020 s, step order, user 2: {UNTRUSTED}"]
    block = {"count": 7, "first_s": 0.0, "last_s": 1.0, "samples": samples}
    engine["errors"] = {"tls": block, "refused": block | {"samples": ["0.010 s, step order, user 1: no"]}}

    table = detail(trials=1).reasons

    assert table is not None
    ((outcome, why, share, first, advice),) = table.rows
    assert (outcome, why) == ("TLS failed", "the certificate's issuer is not trusted")
    assert (share, first) == ("all", "0.010 s, step order, user 1")
    assert "tls: {ca: FILE}" in str(advice)
    assert "--" not in str(advice)


def placed(**placement: Any) -> list[dict[str, Any]]:
    """Rows of the set-up of one case whose service is limited to 0.3 cores."""
    made = records.record(well, users=(5,), trials=1)
    asked = {"cpus": None, "cpu": 0.3, "period_s": 0.01, "memory_bytes": 1 << 28}
    (trial,) = made.trials
    content = {
        "cores_allowed": [0, 1],
        "generator_threads": 1,
        "generator_cpus": None,
        "services": {"web": asked | {"held": placement.pop("held", [])}},
        "refused": None,
    } | placement
    trial.placement = read(Placement, content)
    trial.services = (ServiceProcess("web", variant="small", pid=7),)
    table = build.report(made).setup
    assert table is not None
    return [dict(zip((c.title for c in table.columns), cells, strict=True)) for cells in table.rows]


def test_limits_that_the_kernel_confirms_are_held() -> None:
    held = {"replica": 1, "cpus": [0, 1], "cpu": 0.3, "memory_bytes": 1 << 28, "groups": ["/x"]}

    generator, service = placed(held=[held, held | {"replica": 2, "groups": ["/y"]}])

    assert (generator["part"], generator["runs"], generator["CPUs"]) == ("generator", "1 thread", "0, 1")
    assert (service["part"], service["runs"]) == ("web, 2 replicas each", "variant small")
    assert (service["CPU time"], service["memory"]) == ("0.3 cores, periods of 10 ms", "256 MiB")
    assert (service["limits"], service["cases"]) == ("held", "all")


def test_a_limit_that_does_not_hold_or_was_refused_is_called_so() -> None:
    loose = {"replica": 1, "cpus": [0, 1], "cpu": None, "memory_bytes": 1 << 28, "groups": []}
    why = "services.web.limits.cpu: web cannot be limited in cpu: Read-only file system"

    assert placed(held=[loose])[1]["limits"] == "asked and not held: cpu"
    assert placed(refused=why)[1]["limits"] == "refused: web cannot be limited in cpu: Read-only file system"
    assert placed()[1]["limits"] == "asked; whether they held was not recorded"


def test_parts_of_a_request_are_quantiles_of_what_was_recorded(
    engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine["phases_s"] = {"resolve": 0.004}
    original = records.Trial.intervals

    def with_first_bytes(trial: records.Trial, but: object = ()) -> list[records.Histogram]:
        found = original(trial)
        added = [replace(h, kind="first_byte") for h in found if h.kind == "service"]
        for h in added:  # a first byte after 2 ms, each
            h.values, h.counts = np.array([2_000_000]), np.array([int(h.counts.sum())])
        return found + added

    monkeypatch.setattr(records.Trial, "intervals", with_first_bytes)

    table = detail(trials=1).phases

    whole = row(table, "all")
    for title, seconds in (("name lookup", 0.004), ("first byte p50", 0.002)):
        assert isinstance(whole[title], Estimate)
        assert whole[title].point == pytest.approx(seconds, rel=0.01)
    assert "first byte p99" not in whole  # 250 requests bear no p99
    (high,) = [title for title in whole if title.startswith("first byte p") and not title.endswith("p50")]
    assert isinstance(whole[high], Estimate)
    assert whole["successes"] == 250
    assert isinstance(whole["last byte p50"], NotMeasured)
    assert not [title for title in whole if title.startswith("connect")]  # of none nothing is said
    assert table is not None
    assert "no connection was made in the measured part" in table.note


def test_runs_of_groups_are_summed_over_trials_and_their_times_are_those_recorded(
    engine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = {"due": 130, "completed": 120, "failed": 7, "unfinished": 3}
    engine["groups"] = [
        {
            "name": "my basket",
            "scenario": "buy",
            "runs": counts,
            "response_time_s": no_times(),
            "service_time_s": no_times(),
        }
    ]
    of_trial, of_plan = records.Trial.intervals, records._plan

    def with_runs(trial: records.Trial, but: object = ()) -> list[records.Histogram]:
        found = of_trial(trial)
        added = [replace(h, step="my_basket", kind="group_response") for h in found if h.kind == "response"]
        for h in added:  # runs of 3 s, each
            h.values, h.counts = np.array([3_000_000_000]), np.array([int(h.counts.sum())])
        return found + added

    def with_group(names: records.Names, load: services.Load) -> dict[str, Any]:
        plan = of_plan(names, load)
        plan["streams"][0]["scenarios"][0]["groups"] = [
            {"name": "", "first": 0, "steps": 1, "repeat": 1},
            {"name": "my basket", "first": 0, "steps": 1, "repeat": 1},
        ]
        return plan

    monkeypatch.setattr(records.Trial, "intervals", with_runs)
    monkeypatch.setattr(records, "_plan", with_group)

    found = row(detail(trials=3).groups, "my basket")

    assert (found["completed"], found["failed"], found["unfinished"]) == (360, 21, 9)
    middle = found["response p50"]
    assert isinstance(middle, Estimate)
    assert middle.point == pytest.approx(3.0, rel=0.01)


def test_a_case_without_groups_has_no_table_of_them(engine: dict[str, Any]) -> None:
    assert detail().groups is None
