"""Where and on what was measured: enough to tell two environments apart, and to distrust one."""

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
    """What stays the same while nothing is installed or rebooted."""
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
    """What can change from one minute to the next and spoils measurements."""
    at_start = pressure()
    return {
        "pressure_at_start": at_start,
        "is_quiet": at_start is None or at_start < QUIET_BELOW,
        "autogroup_enabled": _word("/proc/sys/kernel/sched_autogroup_enabled"),
        "autogroup": _word("/proc/self/autogroup"),
        "load_average": os.getloadavg()[0],
    }


def subject() -> dict[str, str]:
    """What is measured: the engine as it was built, and the commit that the tree stands on."""
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
    found = re.search(pattern, _word(path) or "", re.MULTILINE)
    return found[1].strip() if found else None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
