"""The environment of a measurement: enough to distinguish two environments, and to distrust one."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benches.generators.loadlens import DRIVE
from benches.measuring import ROOT, pressure

QUIET_BELOW = 0.05  # pressure above it at the start means that something else is running


def facts() -> dict[str, Any]:
    """Facts that stay the same while nothing is installed or rebooted."""
    return {
        "processor": _found(r"^model name\s*:\s*(.+)$", "/proc/cpuinfo") or platform.machine(),
        "processors": os.cpu_count(),
        "memory_gib": round(int(_found(r"^MemTotal:\s*(\d+)", "/proc/meminfo") or 0) / 2**20),
        "kernel": platform.release(),
        "distribution": _found(r'^PRETTY_NAME="(.+)"$', "/etc/os-release"),
        "hypervisor": bool(_found(r"^flags\s*:.*\b(hypervisor)\b", "/proc/cpuinfo")),
        "mitigations": _word("/sys/devices/system/cpu/vulnerabilities/spectre_v2"),
        "congestion_control": _word("/proc/sys/net/ipv4/tcp_congestion_control"),
    }


def state() -> dict[str, Any]:
    """Conditions that change from minute to minute and spoil measurements."""
    at_start = pressure()
    return {
        "pressure_at_start": at_start,
        "is_quiet": at_start is None or at_start < QUIET_BELOW,
        "autogroup_enabled": _word("/proc/sys/kernel/sched_autogroup_enabled"),
        "autogroup": _word("/proc/self/autogroup"),
        "load_average": os.getloadavg()[0],
    }


def subject() -> dict[str, str]:
    """The subject of measurement: the engine as built, and the commit of the tree."""
    engine = sorted((DRIVE.parent.parent / "python" / "loadlens").glob("_engine*.so"))
    if not engine:
        sys.exit("no engine: build it with `make install`")
    digest = hashlib.sha256(engine[0].read_bytes() + repr(sorted(facts().items())).encode())
    commit = _git("rev-parse", "--short=8", "HEAD")
    changed = " and local changes" if _git("status", "--porcelain", "--untracked-files=no", "crates") else ""
    return {"digest": digest.hexdigest()[:8], "commit": f"{commit}{changed}"}


def raise_priority() -> None:
    """Give this session's group the larger share: nice values alone count only inside a session."""
    try:
        Path("/proc/self/autogroup").write_text("-15")
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except OSError as error:
        print(f"priority not raised: {error}", file=sys.stderr)


def _word(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _found(pattern: str, path: str) -> str | None:
    match = re.search(pattern, _word(path) or "", re.MULTILINE)
    return match[1].strip() if match else None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
