"""The machine and the software that a run was made with, as far as they can be read without rights.

What cannot be read is null: not known is not the same as not there. No environment variable is taken.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ASK_WITHIN_S = 10.0
CPU = Path("/sys/devices/system/cpu")


def of_machine(study_folder: Path | None = None) -> dict[str, Any]:
    """Everything that stays the same through a run.

    Args:
        study_folder: Its version control state is recorded too.
    """
    from loadlens import __version__, engine

    return {
        "machine": {
            "cpu_model": _cpu_model(),
            "cores": os.cpu_count(),
            "cores_allowed": len(os.sched_getaffinity(0)),
            "threads_per_core": _threads_per_core(),
            "memory_bytes": _memory_bytes(),
            "architecture": platform.machine(),
            "kernel": platform.release(),
            "kernel_version": platform.version(),
            "virtual": "hypervisor" in _cpu_flags(),
            "clocksource": _text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
            "governor": _text(CPU / "cpu0/cpufreq/scaling_governor"),
            "turbo": _turbo(),
            "mitigations": _mitigations(),
            "ephemeral_ports": _ephemeral_ports(),
            "max_descriptors": _max_descriptors(),
            "listen_backlog": _number(Path("/proc/sys/net/core/somaxconn")),
        },
        "limits": _cgroup_limits(),
        "software": {
            "loadlens": __version__,
            "engine": engine.version(),
            "python": platform.python_version(),
            "python_implementation": platform.python_implementation(),
            "libc": " ".join(platform.libc_ver()).strip() or None,
        },
        "study_folder": None if study_folder is None else _versioned(study_folder),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What is not as it was at the start: `machine.governor` -> [before, now]."""
    found: dict[str, Any] = {}
    for group in ("machine", "limits", "software"):
        was, is_now = before.get(group) or {}, now.get(group) or {}
        for name in sorted({*was, *is_now}):
            if was.get(name) != is_now.get(name):
                found[f"{group}.{name}"] = [was.get(name), is_now.get(name)]
    return found


def changing() -> dict[str, Any]:
    """What may change from trial to trial and is cheap to read; the same places as in `of_machine`."""
    return {
        "machine": {
            "cores_allowed": len(os.sched_getaffinity(0)),
            "clocksource": _text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
            "governor": _text(CPU / "cpu0/cpufreq/scaling_governor"),
            "turbo": _turbo(),
        },
        "limits": _cgroup_limits(),
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
    found = {path.name: _text(path) for path in sorted(folder.glob("*"))}
    return {name: words for name, words in found.items() if words is not None}


def _ephemeral_ports() -> list[int] | None:
    text = _text(Path("/proc/sys/net/ipv4/ip_local_port_range"))
    return None if text is None else [int(part) for part in text.split()]


def _max_descriptors() -> list[int]:
    import resource

    return list(resource.getrlimit(resource.RLIMIT_NOFILE))


def _cgroup_limits() -> dict[str, Any]:
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


def _versioned(folder: Path) -> dict[str, Any]:
    """Where the study lies, its commit, and whether files differ from it."""
    commit = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--", ".") if commit else None
    return {
        "path": str(folder),
        "commit": commit or None,
        "changed_files": None if changed is None else [line[3:] for line in changed.splitlines()][:50],
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=ASK_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None
