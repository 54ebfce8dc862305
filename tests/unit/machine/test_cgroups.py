"""The group that bounds a process, on folders laid out by hand as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

from loadlens.machine import cgroups


def machine(tmp_path: Path, *, own: str, mounts: str) -> Path:
    proc = tmp_path / "proc"
    (proc / "41").mkdir(parents=True)
    (proc / "41" / "cgroup").write_text(own)
    (proc / "mounts").write_text(mounts.format(root=tmp_path))
    return proc


def quota(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.max").write_text(text)
    (folder / "cgroup.controllers").write_text("cpu memory")


def test_the_tightest_of_the_groups_around_a_process_binds_it(tmp_path: Path) -> None:
    proc = machine(tmp_path, own="0::/pod/web\n", mounts="cgroup {root}/unified cgroup2 rw 0 0\n")
    quota(tmp_path / "unified", "max 100000")
    quota(tmp_path / "unified/pod", "50000 100000")  # half a core
    quota(tmp_path / "unified/pod/web", "150000 100000")

    assert cgroups.binding(41, proc=proc) == tmp_path / "unified/pod"


def test_version_1_is_found_by_its_controller(tmp_path: Path) -> None:
    proc = machine(
        tmp_path, own="3:memory:/\n1:cpu,cpuacct:/web\n", mounts="c {root}/cpu cgroup rw,cpu,cpuacct 0 0\n"
    )
    folder = tmp_path / "cpu" / "web"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text("30000")
    (folder / "cpu.cfs_period_us").write_text("100000")

    assert cgroups.binding(41, proc=proc) == folder
    assert cgroups.cpu_quota(folder) == (30_000, 100_000)


def test_a_process_without_a_quota_or_that_is_gone_has_none(tmp_path: Path) -> None:
    proc = machine(tmp_path, own="0::/\n", mounts="cgroup {root}/unified cgroup2 rw 0 0\n")
    quota(tmp_path / "unified", "max 100000")

    assert cgroups.binding(41, proc=proc) is None
    assert cgroups.binding(42, proc=proc) is None


def test_of_version_1_one_group_bounds_cpu_time_and_another_one_memory(tmp_path: Path) -> None:
    mounts = "c {root}/cpu cgroup rw,cpu 0 0\nc {root}/memory cgroup rw,memory 0 0\n"
    proc = machine(tmp_path, own="3:memory:/web/one\n1:cpu:/web\n", mounts=mounts)
    cpu, memory = tmp_path / "cpu/web", tmp_path / "memory/web/one"
    for folder in (cpu, memory):
        folder.mkdir(parents=True)
    (cpu / "cpu.cfs_quota_us").write_text("30000")
    (cpu / "cpu.cfs_period_us").write_text("100000")
    (memory / "memory.limit_in_bytes").write_text(str(64 << 20))
    (memory.parent / "memory.limit_in_bytes").write_text(str(32 << 20))  # tighter, around it
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712")  # none

    assert cgroups.bounds(41, proc=proc) == (cpu, memory.parent)
    assert cgroups.memory_bound(tmp_path / "memory") is None


def test_of_version_2_one_group_tells_of_both(tmp_path: Path) -> None:
    proc = machine(tmp_path, own="0::/pod/web\n", mounts="cgroup {root}/unified cgroup2 rw 0 0\n")
    quota(tmp_path / "unified/pod", "max 100000")
    quota(tmp_path / "unified/pod/web", "max 100000")
    (tmp_path / "unified/pod/memory.max").write_text(str(32 << 20))

    of_memory = cgroups.bounds(41, proc=proc)
    quota(tmp_path / "unified/pod/web", "150000 100000")

    assert of_memory == (tmp_path / "unified/pod",)
    assert cgroups.bounds(41, proc=proc) == (tmp_path / "unified/pod/web",)
    assert cgroups.bounds(42, proc=proc) == ()
