"""Facts about this machine that need no privileges; what cannot be read is null.

Not known is not the same as not there. No environment variable is taken.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

CPU = Path("/sys/devices/system/cpu")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def facts() -> dict[str, Any]:
    """Return the facts that stay the same during a run."""
    return {
        "cpu_model": _cpu_model(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "threads_per_core": _threads_per_core(),
        "memory_bytes": _memory_bytes(),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "kernel_version": platform.version(),
        "virtual": "hypervisor" in _cpu_flags(),
        "clocksource": _text(CLOCK_SOURCE),
        "governor": _text(CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "mitigations": _mitigations(),
        "ephemeral_ports": _ephemeral_ports(),
        "max_descriptors": _max_descriptors(),
        "listen_backlog": _number(Path("/proc/sys/net/core/somaxconn")),
    }


def identity() -> dict[str, Any]:
    """Return the facts whose change makes a calibration void."""
    return {
        "cpu_model": _cpu_model(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "cpu_quota": limits()["cpu_cores"],
        "memory_bytes": _memory_bytes(),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "clocksource": _text(CLOCK_SOURCE),
        "governor": _text(CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
    }


def changing_facts() -> dict[str, Any]:
    """Return the facts that may change between trials and are cheap to read."""
    return {
        "cores_allowed": len(os.sched_getaffinity(0)),
        "clocksource": _text(CLOCK_SOURCE),
        "governor": _text(CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdecimal() else None


def _cpu_lines() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        name, colon, value = line.partition(":")
        if not colon and fields:
            break
        fields.setdefault(name.strip(), value.strip())
    return fields


def _cpu_model() -> str | None:
    fields = _cpu_lines()
    return fields.get("model name") or fields.get("Model") or platform.processor() or None


def _cpu_flags() -> set[str]:
    return set(_cpu_lines().get("flags", "").split())


def _threads_per_core() -> int | None:
    siblings = _text(CPU / "cpu0/topology/thread_siblings_list")
    if siblings is None:
        return None
    count = 0
    for part in siblings.split(","):
        low, _, high = part.partition("-")
        count += int(high or low) - int(low) + 1
    return count


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None


def _turbo() -> str | None:
    off = _text(CPU / "intel_pstate/no_turbo")
    if off is not None:
        return "off" if off == "1" else "on"
    boost = _text(CPU / "cpufreq/boost")
    return None if boost is None else ("on" if boost == "1" else "off")


def _mitigations() -> dict[str, str]:
    folder = CPU / "vulnerabilities"
    files = {path.name: _text(path) for path in sorted(folder.glob("*"))}
    return {name: words for name, words in files.items() if words is not None}


def _ephemeral_ports() -> list[int] | None:
    text = _text(Path("/proc/sys/net/ipv4/ip_local_port_range"))
    return None if text is None else [int(part) for part in text.split()]


def _max_descriptors() -> list[int]:
    import resource

    return list(resource.getrlimit(resource.RLIMIT_NOFILE))


def limits() -> dict[str, Any]:
    """The tightest CPU quota and memory limit on the way from our cgroup to the root."""
    unified, cpu, memory = _cgroup_paths()
    quotas: list[float] = []
    limits: list[int] = []
    for folder in _upwards(unified):
        parts = (_text(folder / "cpu.max") or "max").split()
        if len(parts) == 2 and parts[0] != "max":
            quotas.append(int(parts[0]) / int(parts[1]))
        limits += [n for n in [_number(folder / "memory.max")] if n is not None]
    for folder in _upwards(cpu):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        quotas += [quota / period] if quota and period else []
    for folder in _upwards(memory):
        limit = _number(folder / "memory.limit_in_bytes")
        limits += [limit] if limit is not None and limit < 1 << 60 else []
    return {
        "cgroup": 2 if unified is not None else (1 if cpu or memory else None),
        "cpu_cores": min(quotas, default=None),
        "memory_bytes": min(limits, default=None),
    }


def _cgroup_paths() -> tuple[Path | None, Path | None, Path | None]:
    root = Path("/sys/fs/cgroup")
    unified = cpu = memory = None
    for line in (_text(Path("/proc/self/cgroup")) or "").splitlines():
        _, controllers, place = line.split(":", 2)
        if not controllers and (root / "cgroup.controllers").exists():
            unified = root / place.lstrip("/")
        if "cpu" in controllers.split(","):
            cpu = root / "cpu" / place.lstrip("/")
        if "memory" in controllers.split(","):
            memory = root / "memory" / place.lstrip("/")
    return unified, cpu, memory


def _upwards(folder: Path | None) -> list[Path]:
    root = Path("/sys/fs/cgroup")
    return [] if folder is None else [p for p in (folder, *folder.parents) if p.is_relative_to(root)]
