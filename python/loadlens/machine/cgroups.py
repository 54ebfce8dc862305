"""Control groups as they stand, of version 1 and 2: where a process is, what bounds its CPU time and memory.

Reads only; `testbed.placement` makes groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
_UNBOUND = 1 << 60  # version 1 says that there is no bound by a number of bytes that no machine has


def around(controller: str, *, who: str = "self", proc: Path = PROC) -> Iterator[tuple[int, Path]]:
    """The groups of a process with this controller, its own first, then outwards; with the version.

    Args:
        controller: `cpu`, `memory` ...
        who: Its pid, or `self`.
        proc: The mounted proc file system.
    """
    own: dict[str, str] = {}
    for line in (proc / who / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own |= dict.fromkeys(controllers.split(","), path)
    for line in (proc / "mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and controller in options.split(","):
            yield from ((1, folder) for folder in _outwards(Path(mount), own.get(controller, "/")))
        if kind == "cgroup2":
            for folder in _outwards(Path(mount), own.get("", "/")):
                if controller in words(folder / "cgroup.controllers"):
                    yield 2, folder


def binding(pid: int, *, proc: Path = PROC) -> Path | None:
    """The group around a process that bounds its CPU time most; none: no bound that we can see."""
    try:
        folders = [folder for _, folder in around("cpu", who=str(pid), proc=proc)]
    except (OSError, ValueError):
        return None
    quotas = {folder: cpu_quota(folder) for folder in folders}
    bound = {folder: quota / period for folder, (quota, period) in quotas.items() if quota}
    return min(bound, key=lambda folder: bound[folder], default=None)


def bounds(pid: int, *, proc: Path = PROC) -> tuple[Path, ...]:
    """The groups around a process that bound its CPU time and its memory most.

    A version 2 group covers both: the group that bounds CPU time is taken, and no second one.
    """
    cpu = binding(pid, proc=proc)
    try:
        folders = list(around("memory", who=str(pid), proc=proc))
    except (OSError, ValueError):
        folders = []
    sizes = {folder: size for _, folder in folders if (size := memory_bound(folder)) is not None}
    memory = min(sizes, key=lambda folder: sizes[folder], default=None)
    if cpu is not None and (2, memory) in folders:
        memory = None
    return tuple(folder for folder in (cpu, memory) if folder is not None)


def memory_bound(folder: Path) -> int | None:
    """Bytes that a group may have, pages of files included; none: as many as there are."""
    fields = words(folder / "memory.max") or words(folder / "memory.limit_in_bytes")
    return int(fields[0]) if fields and fields[0].isdecimal() and int(fields[0]) < _UNBOUND else None


def cpu_quota(folder: Path) -> tuple[int, int]:
    """Microseconds of CPU time and of the period in which they may be used; zeros: no quota."""
    fields = words(folder / "cpu.max") or [
        *words(folder / "cpu.cfs_quota_us"),
        *words(folder / "cpu.cfs_period_us"),
    ]
    numbers = [int(word) for word in fields if word.isdecimal()]
    return (numbers[0], numbers[1]) if len(numbers) == 2 and all(numbers) else (0, 0)


def words(path: Path) -> list[str]:
    """The words of a file; none where it cannot be read."""
    try:
        return path.read_text().split()
    except OSError:
        return []


def _outwards(mount: Path, own: str) -> Iterator[Path]:
    """A group and those around it that can be seen; in a container the path may begin outside."""
    folder = mount / own.lstrip("/")
    while True:
        if folder.is_dir():
            yield folder
        if folder == mount or mount not in folder.parents:
            return
        folder = folder.parent
