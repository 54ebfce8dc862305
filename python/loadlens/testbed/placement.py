"""Resource limits of a replica: CPU set, CPU quota, memory.

A CPU set needs no privilege. The other limits need a control group (version 1 or 2) that we may create; where
that is impossible, the study is refused, because a limit that does not hold is worse than none. The quota
period is short (10 ms) by default: with the kernel's 100 ms, a throttled service shows latency steps of up to
100 ms that the lab itself causes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from loadlens.errors import TestbedError
from loadlens.machine.cgroups import around, cpu_quota, words
from loadlens.model.topology import Limits

_LEAST_QUOTA_US = 1_000  # the kernel's minimum
_MEMORY_BOUNDS = ("memory.max", "memory.limit_in_bytes")
_REMOVE_WITHIN_S = 1.0  # a group can be removed once its last process has been reaped


@dataclass(frozen=True, slots=True)
class Place:
    """CPU set and control groups of one replica."""

    cpus: tuple[int, ...] | None = None
    groups: tuple[Path, ...] = ()  # folders of control groups

    @property
    def doors(self) -> tuple[Path, ...]:
        """The `cgroup.procs` files through which a process joins the groups."""
        return tuple(folder / "cgroup.procs" for folder in self.groups)


@dataclass(frozen=True, slots=True)
class _Control:
    """One controller, and the files and values of its limit, by control group version."""

    name: str
    v1: tuple[tuple[str, str], ...]
    v2: tuple[tuple[str, str], ...]


class Placement:
    """The control groups of one testbed."""

    def __init__(self, *, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._token = secrets.token_hex(4)
        self._made: list[Path] = []

    def place(self, name: str, limits: Limits, *, where: str) -> Place:
        """Create the control groups that the limits need.

        Raises:
            TestbedError: A limit cannot be enforced here.
        """
        if limits.cpus is not None:
            _check_cpus(name, limits.cpus, where)
        controls = _controls(name, limits, where)
        groups = dict.fromkeys(self._group(name, control, where) for control in controls)
        return Place(limits.cpus, tuple(groups))

    def remove(self) -> None:
        """Remove the groups, whose processes have ended."""
        until = time.monotonic() + _REMOVE_WITHIN_S
        while self._made:
            try:
                self._made[-1].rmdir()
            except FileNotFoundError:
                pass  # the keeper was faster
            except OSError:
                if time.monotonic() < until:
                    time.sleep(0.01)
                    continue
            self._made.pop()

    def _group(self, name: str, control: _Control, where: str) -> Path:
        why = "no control group hierarchy has this controller"
        for version, parent in around(control.name, proc=self._proc):
            folder = parent / f"loadlens-{self._token}-{name}"
            # Version 2 has one group for all controllers: a process belongs to exactly one.
            is_new = folder not in self._made
            try:
                if is_new:
                    _make_folder(folder)
            except OSError as error:
                why = f"{folder}: {error.strerror}"
                continue
            try:
                _fill(folder, control, version)
            except OSError as error:
                why = f"{error.filename or folder}: {error.strerror}"
                if is_new:
                    with contextlib.suppress(OSError):
                        folder.rmdir()
                continue
            if is_new:
                self._made.append(folder)
            return folder
        raise TestbedError(
            f"{name} cannot be limited in {control.name}: {why}",
            where=f"{where}.{control.name}",
            hint="run as root, or in a container with control groups of its own; a CPU set needs neither",
        )


@dataclass(frozen=True, slots=True)
class Held:
    """Limits in force for a running process, read from the kernel; None: not set by us, or unreadable."""

    cpus: tuple[int, ...] | None  # CPUs that it may run on
    cpu: float | None  # quota, in cores
    memory_bytes: int | None
    groups: tuple[str, ...]  # folders of its control groups, of those we made


def held(pid: int, groups: Iterable[str]) -> Held:
    """Read back the limits of one of our processes.

    Args:
        pid: The process.
        groups: Folders of the control groups made for it; groups that it did not join do not count.
    """
    own = [folder for folder in map(Path, groups) if str(pid) in words(folder / "cgroup.procs")]
    cpu = memory = None
    for folder in own:
        quota, period = cpu_quota(folder)
        cpu = quota / period if quota and period else cpu
        bounds = [word for name in _MEMORY_BOUNDS for word in words(folder / name) if word.isdecimal()]
        memory = int(bounds[0]) if bounds else memory
    try:
        cpus = tuple(sorted(os.sched_getaffinity(pid)))
    except OSError:
        cpus = None
    return Held(cpus, cpu, memory, tuple(map(str, own)))


def _check_cpus(name: str, cpus: tuple[int, ...], where: str) -> None:
    allowed = os.sched_getaffinity(0)
    if not cpus or not set(cpus) <= allowed:
        shown = ", ".join(map(str, cpus)) or "none"
        raise TestbedError(
            f"{name} cannot be placed on CPUs {shown}",
            where=f"{where}.cpus",
            hint=f"the lab may use CPUs {', '.join(map(str, sorted(allowed)))}",
        )


def _controls(name: str, limits: Limits, where: str) -> tuple[_Control, ...]:
    controls = []
    if limits.cpu is not None:
        period = round(limits.period_s * 1e6)
        quota = round(limits.cpu * period)
        if quota < _LEAST_QUOTA_US:
            raise TestbedError(
                f"{name}: {limits.cpu:g} cores in periods of {limits.period_s * 1e3:g} ms is less than the "
                f"kernel's least quota of {_LEAST_QUOTA_US / 1e3:g} ms",
                where=f"{where}.period",
                hint=f"a period of at least {_LEAST_QUOTA_US / 1e3 / limits.cpu:g} ms",
            )
        controls.append(
            _Control(
                "cpu",
                v1=(("cpu.cfs_period_us", str(period)), ("cpu.cfs_quota_us", str(quota))),
                v2=(("cpu.max", f"{quota} {period}"),),
            )
        )
    if limits.memory_bytes is not None:
        size = str(limits.memory_bytes)
        controls.append(_Control("memory", v1=(("memory.limit_in_bytes", size),), v2=(("memory.max", size),)))
    return tuple(controls)


def _fill(folder: Path, control: _Control, version: int) -> None:
    if version == 2 and not (folder / control.v2[0][0]).exists():
        _write(folder.parent / "cgroup.subtree_control", f"+{control.name}")
    for file, text in control.v1 if version == 1 else control.v2:
        _write(folder / file, text)


def _make_folder(folder: Path) -> None:
    folder.mkdir()


def _write(path: Path, text: str) -> None:
    """Write to a kernel file, without ever creating one."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)
