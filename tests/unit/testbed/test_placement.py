"""Limits of a service, on control groups of both versions as the kernel would make them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadlens.errors import TestbedError
from loadlens.model.topology import Limits
from loadlens.testbed import placement
from loadlens.testbed.placement import Placement

KERNEL_FILES = {
    "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us"),
    "memory": ("memory.limit_in_bytes",),
    "unified": ("cpu.max", "memory.max"),
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which a new group has the files of its hierarchy, as the kernel makes them."""
    monkeypatch.setattr(placement, "_make_folder", _as_the_kernel_makes_it(tmp_path))
    return tmp_path


def _as_the_kernel_makes_it(machine: Path):  # type: ignore[no-untyped-def]
    def make(folder: Path) -> None:
        folder.mkdir()
        hierarchy = folder.relative_to(machine / "cgroup").parts[0]
        for name in (*KERNEL_FILES[hierarchy], "cgroup.procs"):
            (folder / name).touch()

    return make


def version_1(machine: Path) -> Placement:
    _describe(
        machine,
        mounts={"cpu": "cgroup rw,cpu,cpuacct", "memory": "cgroup rw,memory"},
        own="2:cpu,cpuacct:/\n1:memory:/box/inner\n",
    )
    (machine / "cgroup" / "memory" / "box" / "inner").mkdir(parents=True)
    return Placement(proc=machine / "proc")


def version_2(machine: Path, controllers: str) -> Placement:
    _describe(machine, mounts={"unified": "cgroup2 rw"}, own="0::/\n")
    (machine / "cgroup" / "unified" / "cgroup.controllers").write_text(controllers)
    return Placement(proc=machine / "proc")


def test_what_holds_is_read_back_from_the_groups_that_the_process_is_in(machine: Path) -> None:
    made = version_2(machine, "cpu memory")
    place = made.place("api", Limits(cpu=0.3, memory_bytes=1 << 28), where="services.api.limits")
    groups = [str(folder) for folder in place.groups]
    before = placement.held(os.getpid(), groups)
    for folder in place.groups:
        (folder / "cgroup.procs").write_text(f"1\n{os.getpid()}\n")

    held = placement.held(os.getpid(), groups)

    assert (before.cpu, before.memory_bytes, before.groups) == (None, None, ())  # it had not joined
    assert (held.cpu, held.memory_bytes, held.groups) == (0.3, 1 << 28, tuple(groups))
    assert held.cpus == tuple(sorted(os.sched_getaffinity(0)))


def test_groups_of_version_1_and_a_process_that_is_gone_are_read_too(machine: Path) -> None:
    place = version_1(machine).place("api", Limits(cpu=1.5), where="services.api.limits")
    (folder,) = place.groups
    (folder / "cgroup.procs").write_text("4194305\n")  # beyond the kernel's largest process number

    held = placement.held(4_194_305, [str(folder)])

    assert (held.cpu, held.cpus) == (1.5, None)


def _describe(machine: Path, *, mounts: dict[str, str], own: str) -> None:
    (machine / "proc" / "self").mkdir(parents=True)
    (machine / "proc" / "self" / "cgroup").write_text(own)
    lines = []
    for name, kind_and_options in mounts.items():
        (machine / "cgroup" / name).mkdir(parents=True)
        lines.append(f"cgroup {machine}/cgroup/{name} {kind_and_options} 0 0\n")
    (machine / "proc" / "mounts").write_text("".join(lines))


def test_a_share_of_cpu_time_becomes_a_quota_in_short_periods(machine: Path) -> None:
    place = version_1(machine).place("api", Limits(cpu=0.3), where="services.api.limits")

    (folder,) = place.groups
    assert folder.parent == machine / "cgroup" / "cpu"
    assert (folder / "cpu.cfs_period_us").read_text() == "10000"  # 10 ms
    assert (folder / "cpu.cfs_quota_us").read_text() == "3000"  # 0.3 of them
    assert place.doors == (folder / "cgroup.procs",)


def test_on_version_1_each_limit_has_a_group_inside_our_own(machine: Path) -> None:
    place = version_1(machine).place("api", Limits(cpu=1.5, memory_bytes=1 << 28), where="limits")

    _, memory = place.groups
    assert memory.parent == machine / "cgroup" / "memory" / "box" / "inner"
    assert (memory / "memory.limit_in_bytes").read_text() == "268435456"


def test_on_version_2_the_same_limits_are_written_in_its_own_words(machine: Path) -> None:
    place = version_2(machine, "cpu memory").place("api", Limits(cpu=2.0, period_s=0.1), where="limits")

    (folder,) = place.groups
    assert (folder / "cpu.max").read_text() == "200000 100000"


def test_on_version_2_a_service_with_two_limits_is_in_one_group(machine: Path) -> None:
    limits = Limits(cpu=2.0, period_s=0.1, memory_bytes=1 << 28)

    (folder,) = version_2(machine, "cpu memory").place("api", limits, where="limits").groups

    assert (folder / "cpu.max").read_text() == "200000 100000"
    assert (folder / "memory.max").read_text() == "268435456"


def test_a_controller_that_the_machine_does_not_offer_is_refused_by_name(machine: Path) -> None:
    with pytest.raises(TestbedError, match="api cannot be limited in memory: no control group") as raised:
        version_2(machine, "hugetlb").place("api", Limits(memory_bytes=1 << 28), where="services.api.limits")

    assert raised.value.where == "services.api.limits.memory"


def test_a_group_that_we_may_not_make_is_refused_with_the_reason(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(placement, "_make_folder", refuse)

    with pytest.raises(TestbedError, match=r"cannot be limited in cpu: .*: Permission denied"):
        version_1(machine).place("api", Limits(cpu=0.3), where="limits")


def test_a_quota_below_the_kernels_least_is_refused_with_the_period_that_would_do(machine: Path) -> None:
    with pytest.raises(TestbedError, match=r"0\.05 cores in periods of 10 ms") as raised:
        version_1(machine).place("api", Limits(cpu=0.05), where="limits")

    assert raised.value.hint == "a period of at least 20 ms"


def test_cpus_that_we_may_not_use_are_refused(machine: Path) -> None:
    beyond = max(os.sched_getaffinity(0)) + 1

    with pytest.raises(TestbedError, match=f"api cannot be placed on CPUs {beyond}"):
        version_1(machine).place("api", Limits(cpus=(beyond,)), where="limits")


def test_groups_are_removed_at_the_end(machine: Path) -> None:
    placed = version_1(machine)
    (folder,) = placed.place("api", Limits(cpu=0.3), where="limits").groups
    for file in folder.iterdir():  # the kernel's files go with the folder
        file.unlink()

    placed.remove()

    assert not folder.exists()
