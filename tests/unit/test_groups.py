"""Which group bounds a process, on folders laid out by hand as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

from loadlens import groups


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

    assert groups.binding(41, proc=proc) == tmp_path / "unified/pod"


def test_version_1_is_found_by_its_controller(tmp_path: Path) -> None:
    proc = machine(
        tmp_path, own="3:memory:/\n1:cpu,cpuacct:/web\n", mounts="c {root}/cpu cgroup rw,cpu,cpuacct 0 0\n"
    )
    folder = tmp_path / "cpu" / "web"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text("30000")
    (folder / "cpu.cfs_period_us").write_text("100000")

    assert groups.binding(41, proc=proc) == folder
    assert groups.cpu_quota(folder) == (30_000, 100_000)


def test_a_process_without_a_quota_or_that_is_gone_has_none(tmp_path: Path) -> None:
    proc = machine(tmp_path, own="0::/\n", mounts="cgroup {root}/unified cgroup2 rw 0 0\n")
    quota(tmp_path / "unified", "max 100000")

    assert groups.binding(41, proc=proc) is None
    assert groups.binding(42, proc=proc) is None
