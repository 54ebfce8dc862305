"""Check licences and known vulnerabilities of dependencies: cargo-deny for Rust, pip-audit for the lock.

A check whose program is not installed, or whose database cannot be reached, is skipped by name.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the root and capture its output."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def program(name: str) -> str | None:
    """The program from .venv or from PATH."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def rust(check: str) -> str:
    """Outcome of one check of cargo-deny: ok, skipped or FAILED, with the reason."""
    deny = program("cargo-deny")
    if deny is None:
        return "skipped: cargo-deny is not installed (cargo install --locked cargo-deny)"
    done = run(deny, "--log-level", "error", "check", check)
    if done.returncode == 0:
        return "ok"
    if check == "advisories" and "failed to fetch advisory database" in done.stderr:
        return "skipped: the advisory database cannot be reached"
    return f"FAILED\n{done.stdout}{done.stderr}"


def python(lock: str) -> str:
    """Outcome of pip-audit over a lock: ok, skipped or FAILED, with the reason."""
    audit = program("pip-audit")
    if audit is None:
        return "skipped: pip-audit is not installed (pip install pip-audit)"
    options = ("--format", "json", "--progress-spinner", "off", "--require-hashes", "--disable-pip")
    done = run(audit, *options, "--requirement", lock)
    if not done.stdout.strip():
        return f"skipped: the vulnerability database cannot be reached\n{done.stderr.strip()[-500:]}"
    packages = json.loads(done.stdout)["dependencies"]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    if len(unknown) == len(packages):
        return "skipped: this package index has no vulnerability database"
    vulnerable = [
        f"{package['name']} {package['version']}: {fault['id']}, fixed in {fault['fix_versions']}"
        for package in packages
        for fault in package.get("vulns", [])
    ]
    if vulnerable:
        return "FAILED\n" + "\n".join(vulnerable)
    return f"ok, unknown there: {', '.join(unknown)}" if unknown else "ok"


def main() -> int:
    """Print one line per check; exit 1 if one failed."""
    outcomes = {
        **{f"rust {check}": rust(check) for check in ("licenses", "bans", "sources", "advisories")},
        "python vulnerabilities": python("requirements/dev.txt"),
    }
    for name, outcome in outcomes.items():
        print(f"{name}: {outcome}")
    return int(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
