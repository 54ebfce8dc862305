"""Effects of limits, from files of both versions of control groups written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadlens.model.topology import Service
from loadlens.signals.collect.cgroup import CgroupMonitor, Group, Groups, wanted
from loadlens.signals.collect.scene import Running, Scene
from tests.unit.signals.collect.test_monitor import read, value

VERSION_1 = {
    "cpu.stat": "nr_periods 100\nnr_throttled 40\nthrottled_time 2500000000\n",
    "memory.usage_in_bytes": "1048576\n",
    "memory.limit_in_bytes": "4194304\n",
    "memory.failcnt": "7\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
}
VERSION_2 = {
    "cpu.stat": "usage_usec 9\nsystem_usec 4\nnr_periods 100\nnr_throttled 40\nthrottled_usec 2500000\n",
    "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 total=9\n",
    "memory.current": "1048576\n",
    "memory.max": "4194304\n",
    "memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\nfull avg10=0.00 total=8\n",
    "memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n",
}


def group(folder: Path, files: dict[str, str]) -> CgroupMonitor:
    for name, content in files.items():
        (folder / name).write_text(content)
    monitor = CgroupMonitor()
    monitor.open(Groups((Group("api", 2, str(folder)),)))
    return monitor


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_both_versions_are_read_alike(tmp_path: Path, files: dict[str, str]) -> None:
    rows = read(group(tmp_path, files))

    is_told = "cpu.pressure" in files  # version 1 keeps none
    pressure = {"cpu_pressure_some_s": 1.5, "memory_pressure_some_s": 0.25} if is_told else {}
    assert {row.metric: row.value for row in rows} == pressure | {
        "cpu_periods": 100,
        "cpu_throttled_periods": 40,
        "cpu_throttled_s": 2.5,
        "memory_bytes": 1 << 20,
        "memory_limit_bytes": 1 << 22,
        "memory_at_limit": 7,
        "oom_kills": 1,
    }
    assert value(rows, "cpu_periods", service="api", replica="2") == 100


def test_a_group_without_a_quota_yields_no_rows_about_it(tmp_path: Path) -> None:
    rows = read(group(tmp_path, {"cpu.stat": "usage_usec 9\nuser_usec 5\nsystem_usec 4\n"}))

    assert rows == []


@pytest.mark.parametrize(
    "files",
    [
        {"cpu.cfs_quota_us": "40000\n", "cpu.cfs_period_us": "100000\n"},
        {"cpu.max": "40000 100000\n"},
    ],
    ids=["version 1", "version 2"],
)
def test_a_quota_is_told_in_cores_with_its_period(tmp_path: Path, files: dict[str, str]) -> None:
    rows = read(group(tmp_path, files | {"cpu.stat": VERSION_1["cpu.stat"]}))

    assert value(rows, "cpu_quota_cores") == 0.4  # 40 ms in each 100 ms
    assert value(rows, "cpu_period_s") == 0.1


@pytest.mark.parametrize(
    "files", [{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, {"cpu.max": "max 100000\n"}]
)
def test_no_quota_is_no_figure(tmp_path: Path, files: dict[str, str]) -> None:
    rows = read(group(tmp_path, files | {"cpu.stat": VERSION_1["cpu.stat"]}))

    assert "cpu_quota_cores" not in {row.metric for row in rows}


@pytest.mark.parametrize(
    "files", [{"memory.limit_in_bytes": "9223372036854771712\n"}, {"memory.max": "max\n"}]
)
def test_as_much_memory_as_there_is_is_no_bound(tmp_path: Path, files: dict[str, str]) -> None:
    rows = read(group(tmp_path, files | {"memory.current": "1048576\n"}))

    assert {row.metric for row in rows} == {"memory_bytes"}


def test_a_group_around_several_replicas_is_read_once() -> None:
    scene = Scene(
        tuple(
            Running("api", number, 40 + number, groups=("/g",), defined=Service("api", "serve"))
            for number in (1, 2)
        ),
        {},
    )

    assert wanted(scene) == Groups((Group("api", 1, "/g"),))
